"""Another text for a patch: the visitor's own with one word exchanged, token for token."""

from __future__ import annotations

import re
from collections.abc import Iterator

from transformer.inference.model import Model
from transformer.messages import mark
from transformer.runs.run import Run

_PAIRS = (
    ("cat", "dog"), ("boy", "girl"), ("boys", "girls"), ("man", "woman"), ("men", "women"),
    ("fox", "bear"), ("bird", "frog"), ("king", "queen"), ("mom", "dad"), ("black", "white"),
    ("red", "blue"), ("big", "little"), ("happy", "sad"), ("hot", "cold"), ("day", "night"),
    ("Tom", "Ben"), (mark("Lily"), "Lucy"), ("he", "she"), ("his", "her"), ("ball", "toy"),
    ("park", "forest"), ("train", "bus"), ("book", "letter"), ("car", "house"), ("new", "old"),
)  # fmt: skip
_OTHERS = {word: other for pair in _PAIRS for word, other in (pair, pair[::-1])}
_WORD = re.compile(r"[^\W\d_]+")

# A text for which one exchanged word changes what comes next, for each family of models.
TEACHING = {
    "decoder": "The boy saw a cat. He ran after the",
    "encoder-decoder": "The black cat is sleeping on the bed.",
}


def text_before(model: Model, run: Run, place: int) -> str:
    """What another text stands in for: a translator's source, else all before the token at `place`
    (the sign that begins every text left out)."""
    if run.source_ids:
        return run.request.text
    return model.tokenizer.decode(run.ids[run.trace_start : place])


def variant(model: Model, text: str) -> str | None:
    """The text with one word exchanged for another of its kind, as many tokens long; None if no
    word of it has one. The first of _PAIRS that fits is, wherever its word stands."""
    length = len(_ids(model, text))
    for word, other in _exchanges(text):
        changed = re.sub(rf"\b{re.escape(word)}\b", other, text)
        if len(_ids(model, changed)) == length:
            return changed
    return None


def _exchanges(text: str) -> Iterator[tuple[str, str]]:
    """Animals before colours and so on: in the order of _PAIRS."""
    words = set(_WORD.findall(text))
    for word, other in _OTHERS.items():
        for one, new in ((word, other), (word.capitalize(), other.capitalize())):
            if one in words:
                yield one, new


def _ids(model: Model, text: str) -> list[int]:
    prepared = model.prepare(text)
    return prepared.source or prepared.ids
