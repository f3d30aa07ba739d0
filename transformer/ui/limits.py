"""How much one visitor may ask of the server at once. Each refusal is one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformer.inference.request import check_each, check_text
from transformer.inference.sampling import check_whole

MAX_CHARACTERS = 2_000  # of one text
MAX_NEW_TOKENS = 200
MAX_TEXTS = 8  # in one batch
MAX_WAITING = 64  # requests in the queue
AT_ONCE = 2  # requests that run the network at the same time


def check_input(text: Any) -> str:
    """A text that may be read. Raises ValueError for an empty or too long one."""
    check_text(text)
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"the text must have at most {MAX_CHARACTERS:,} characters; got {len(text):,}"
        )
    return str(text)


def check_length(max_new_tokens: Any) -> int:
    """A number of tokens to generate. Raises ValueError outside 1 to MAX_NEW_TOKENS."""
    check_whole("max_new_tokens", max_new_tokens, 1, MAX_NEW_TOKENS)
    return int(max_new_tokens)


def check_texts(texts: Any) -> list[str]:
    """A batch. Raises ValueError unless it is 1 to MAX_TEXTS texts that may be read."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise ValueError(f"the texts must be a list of strings; got {type(texts).__name__}")
    if not 1 <= len(texts) <= MAX_TEXTS:
        raise ValueError(f"a batch must have from 1 to {MAX_TEXTS} texts; got {len(texts)}")
    check_each(texts, check_input)
    return list(texts)


def lines_of(text: Any) -> list[str]:
    """The batch that a visitor typed, one text a line; empty lines are left out."""
    if not isinstance(text, str):
        raise ValueError(f"the text must be a string; got {type(text).__name__}")
    if len(text) > MAX_CHARACTERS * MAX_TEXTS:
        raise ValueError(
            f"the batch must have at most {MAX_CHARACTERS * MAX_TEXTS:,} characters; "
            f"got {len(text):,}"
        )
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        raise ValueError("the batch needs at least one line with text in it; got none")
    return check_texts(lines)
