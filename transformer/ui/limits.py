"""How much one visitor may ask of the server at once. Each refusal is one sentence.

What is measured by the network's own settings (beams, temperature, seed) is refused by the request
itself; all of it stands in `table`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformer.inference.beam import MAX_BEAMS
from transformer.inference.request import check_each, check_text
from transformer.inference.sampling import check_whole

MAX_CHARACTERS = 2_000  # of one text
MAX_NEW_TOKENS = 200
MAX_TEXTS = 8  # in one batch
MAX_INTERVENTIONS = 64  # in one request
MAX_WAITING = 128  # requests in the queue
MAX_EXPERIMENTS = 8  # asked for at the same time; they run one after the other
AT_ONCE = 2  # requests that run the network at the same time
MAX_CALLS = 8  # of tools, under way at the same time
MAX_SECONDS = 20.0  # that one request may run the network; waiting is not counted
MAX_REQUEST_BYTES = 1_000_000  # of one request's body
MAX_RUNS = 256  # kept for the pictures
MAX_VISITOR_RUNS = 8  # of them of one visitor
# Of what was recorded of them. A run of 205 tokens, 200 of them new, takes 6.7 MB (stories) or, all
# 129 + 121 that fit, 5.5 MB (translate-en-fr): 60 visitors' newest take 403 MB. With 560 MB that a
# server holds at its start, and some 130 more under load, it stays below 1.2 GB. A text that fills
# the 512 tokens of stories takes 16 MB (31 visitors), one of 189 altered ones 20 MB (25 visitors).
MAX_RUN_BYTES = 500_000_000
# Of all together, above which those go that nobody looks at now: eight runs of one visitor with 200
# tokens each, or the newest of sixty with 60 each. More would let a server grow all morning.
MAX_OLD_RUN_BYTES = 64_000_000
MAX_AGE_S = 3600.0  # since a run was last looked at
LEFT_AGE_S = 60.0  # the same, once its visitor has left
MAX_EXPORT_BYTES = 30_000_000  # of a run's arrays, or of its page, that are made into a file
EXPORTS_AT_ONCE = 2  # files that are made at the same time
MAX_SESSIONS = 256  # visitors of whom the page's framework keeps what stands in their controls
MAX_SENTENCE = 500  # characters of a refusal

BUSY = f"The server is busy: {MAX_WAITING} requests are waiting; try again in a moment."
CALLS_BUSY = f"The server is busy: {MAX_CALLS} calls of tools are under way; try again in a moment."
POST_ONLY = "Tools are called here by POST, as the Model Context Protocol has it."
TOO_LARGE = f"A request must have at most {MAX_REQUEST_BYTES:,} bytes"
CLOSED = "This address is closed: the page takes no files and serves none but its own."


def table() -> dict[str, dict[str, Any]]:
    """Every limit by name: its number, its unit, and what happens beyond it."""
    rows = {
        "characters": (MAX_CHARACTERS, "characters of one text", "refused"),
        "new_tokens": (MAX_NEW_TOKENS, "tokens", "refused"),
        "beams": (MAX_BEAMS, "hypotheses", "refused"),
        "texts": (MAX_TEXTS, "texts in a batch", "refused"),
        "interventions": (MAX_INTERVENTIONS, "interventions in a request", "refused"),
        "experiments": (MAX_EXPERIMENTS, "experiments asked for at once", "refused"),
        "waiting": (MAX_WAITING, "requests in the queue", "refused"),
        "at_once": (AT_ONCE, "requests that run the network", "the others wait"),
        "calls": (MAX_CALLS, "calls of tools under way (if they are served)", "refused"),
        "seconds": (MAX_SECONDS, "seconds of the network", "stopped; what there is, is given"),
        "request_bytes": (MAX_REQUEST_BYTES, "bytes of one request", "refused"),
        "upload_bytes": (0, "bytes of an uploaded file", "refused: the page takes no files"),
        "runs": (MAX_RUNS, "kept runs", "the one longest not looked at goes"),
        "visitor_runs": (MAX_VISITOR_RUNS, "kept runs of a visitor", "its own oldest goes"),
        "run_bytes": (MAX_RUN_BYTES, "bytes of kept runs", "the one longest not looked at goes"),
        "old_run_bytes": (MAX_OLD_RUN_BYTES, "the same", "runs that nobody looks at now go"),
        "run_age": (MAX_AGE_S, "seconds since a run was last looked at", "it goes"),
        "export_bytes": (MAX_EXPORT_BYTES, "bytes of an exported file's arrays", "refused"),
        "exports_at_once": (EXPORTS_AT_ONCE, "files made at once", "the others wait"),
        "left_age": (LEFT_AGE_S, "the same, once its visitor has left", "it goes"),
    }
    return {
        name: {"limit": limit, "unit": unit, "beyond": beyond}
        for name, (limit, unit, beyond) in rows.items()
    }


def sentence_of(error: Exception) -> str:
    """What a visitor is told of a mistake: one line, and of a very long value its two ends."""
    if isinstance(error, RecursionError):
        return "the values are nested too deeply"
    line = " ".join(str(error).split())
    half = MAX_SENTENCE // 2
    return line if len(line) <= MAX_SENTENCE else f"{line[:half]} … {line[-half:]}"


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


def check_interventions(interventions: Any) -> None:
    """Raise ValueError for too many of them; what each may be is checked by the request."""
    if isinstance(interventions, Sequence) and len(interventions) > MAX_INTERVENTIONS:
        raise ValueError(
            f"a request must have at most {MAX_INTERVENTIONS} interventions; "
            f"got {len(interventions):,}"
        )


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
