"""How much one visitor may ask of the server at once.

Every limit is declared once, below, with its unit and what happens beyond it; /limits shows them
all. Ranges of a network's settings (temperature, seed) are checked by the request itself.
"""

from __future__ import annotations

from typing import Any, TypeVar

from transformer.runs.request import MAX_BEAMS
from transformer.views.export import MAX_EXPORT_BYTES

Limit = TypeVar("Limit", int, float)
FULL_REFUSAL = "refused: the newest of the address, then of the session, that has most of them"
WAIT, GOES, REFUSED = "the others wait", "the oldest goes", "refused"

_TABLE: dict[str, dict[str, Any]] = {}


def _limit(name: str, limit: Limit, unit: str, beyond: str) -> Limit:
    """Declare a limit; returns its number."""
    _TABLE[name] = {"limit": limit, "unit": unit, "beyond": beyond}
    return limit


def of_one_address(limit: int) -> int:
    """How much of a limit that all share one address may take."""
    return int(ADDRESS_SHARE * limit)


def table() -> dict[str, dict[str, Any]]:
    """Every limit by name: its number, its unit, and what happens beyond it."""
    return {name: dict(row) for name, row in _TABLE.items()}


# One request.
MAX_CHARACTERS = _limit("characters", 2_000, "characters of one text", REFUSED)
MAX_NEW_TOKENS = _limit("new_tokens", 200, "tokens", REFUSED)
_limit("beams", MAX_BEAMS, "hypotheses", REFUSED)
MAX_TEXTS = _limit("texts", 8, "texts in a batch", REFUSED)
MAX_INTERVENTIONS = _limit("interventions", 64, "interventions in a request", REFUSED)
# About 20 s of the network on two cores; a preview, of a head that is only pointed at, 0.5 s.
MAX_OPERATIONS = _limit(
    "operations", 2e12, "operations of one experiment; of a preview a fortieth", REFUSED
)
MAX_SECONDS = _limit(  # waiting is not counted
    "seconds", 20.0, "seconds of the network; an experiment or a file waits as long at most",
    "stopped: what there is, is given; what waits is refused",
)  # fmt: skip
PATIENCE_S = MAX_SECONDS
# The largest real one: a batch of 8 x 2,000 characters, each up to 12 bytes in JSON.
MAX_REQUEST_BYTES = _limit("request_bytes", 262_144, "bytes of one request", REFUSED)
MAX_REQUEST_VALUES = _limit(
    "request_values", 40_000, "commas and opening brackets in one request", REFUSED
)
MAX_CHUNKS = _limit("request_chunks", 1_000, "chunks of one request", REFUSED)
MAX_HEADER_BYTES = _limit("header_bytes", 16_384, "bytes of a request's line and headers", REFUSED)
# The page sends at most 1,500, of some ten parameters.
MAX_QUERY_BYTES = _limit("query_bytes", 4_096, "bytes of a request's query", REFUSED)
MAX_PARAMETERS = _limit("query_parameters", 64, "parameters of a request's query", REFUSED)
HEADERS_S = _limit("header_seconds", 10.0, "seconds in which headers must have come", "closed")
CLIENT_S = _limit(
    "client_seconds", 30, "seconds in which a request must have come, or a client accepts no data",
    "refused or closed",
)  # fmt: skip
# Sixty browsers that open the page behind one slow line leave 49 MB unread at most.
MAX_UNREAD_BYTES = _limit(
    "unread_bytes", 64_000_000, "bytes of answers that their clients have not read",
    "closed: of the address with most of them, the one that has waited longest",
)  # fmt: skip
ADDRESS_SHARE = _limit(
    "address_share", 2 / 3, "of connections, of what has begun, and of classes, for one address",
    "refused, or the others wait",
)  # fmt: skip
# Sixty browsers with six each are 360, behind one address too.
MAX_CONNECTIONS = _limit("connections", 600, "connections at once", REFUSED)
# The page and clients draw it at random.
MAX_HASH = _limit("session_hash", 64, "characters of a session's name", REFUSED)
MAX_RECORDED_BYTES = _limit(
    "recorded_bytes", 128_000_000, "bytes of a run's or batch's attention", REFUSED
)
_limit("export_bytes", MAX_EXPORT_BYTES, "bytes of an exported file's arrays", REFUSED)
# 128 x 128 take about a megabyte.
MAX_LISTED = _limit(
    "listed", 16_384, "numbers of a matrix as nested lists", "refused unless packed"
)
MAX_ASKED = _limit("asked", 256, "runs that a page may ask about at once", REFUSED)
MAX_MADE = _limit("made", 3, "runs that one question has made anew", REFUSED)

# Requests that run, and that wait: about a minute of them.
AT_ONCE = _limit("at_once", 2, "requests that run the network", WAIT)
# With those that stepped aside for others after their first second; of experiments, of which one
# runs at a time, half as many.
MAX_BEGUN = _limit("begun", 12, "requests that have begun to run it; half of experiments", WAIT)
MAX_WAITING = _limit("waiting", 80, "requests of each kind that wait", FULL_REFUSAL)
MAX_THREADS_WAITING = _limit(
    "threads_waiting", 8, "of those that hold a thread meanwhile", FULL_REFUSAL
)
MAX_VISITOR_WAITING = _limit("visitor_waiting", 16, "of each kind of one session", REFUSED)
# Behind more than that, a request would wait for minutes.
MAX_LONG_WAITING = _limit(
    "long_waiting",
    16,
    "experiments of programs, files, and trainings that wait, of each",
    FULL_REFUSAL,
)
LONG_AT_ONCE = _limit(
    "long_at_once", 2, "files made, and questions of views that take long, of each at once", WAIT
)
MAX_QUESTIONS = _limit("questions", 24, "questions of views answered at once", WAIT)
RETRY_S = _limit(
    "retry", 2, "seconds that a question of a view waits",
    "refused: the page asks again after as many",
)  # fmt: skip
MAX_PAGES = _limit("pages", 1, "descriptions of the API made at once", WAIT)
MAX_EVENTS = _limit("events", 8, "other requests answered at once", WAIT)
MAX_CALLS = _limit("calls", 64, "calls of a program whose answers are not yet read", REFUSED)
MAX_UNREAD_ANSWERS = _limit("unread_answers", 2, "begun of them, on one stream", WAIT)

# Trainings of small networks, on one core each; pauses are not counted.
MAX_TRAININGS = _limit("trainings", 1, "small networks trained at once", WAIT)
MAX_TRAINING_S = _limit(
    "training_seconds", 60.0, "seconds of a training, and that it rests while others wait",
    "it ends as it stands",
)  # fmt: skip
ABSENT_S = _limit("absent", 90.0, "seconds of a training that nobody looks at", "it ends")

# Classes whose phones answer. Of 200 phones most share one address, and wait on a connection each.
CLASS_REFUSAL = "refused, unless a teacher has been silent for a minute: that class ends"
MAX_CLASSES = _limit(
    "classes", 20, "classes whose phones answer",
    f"{CLASS_REFUSAL}, or one without phones of the address with most",
)  # fmt: skip
MAX_CLASS_PHONES = _limit("class_phones", 200, "phones of a class", REFUSED)
MAX_PHONES_WAITING = _limit(
    "phones_waiting", 300, "phones that are told at once what is asked", "the others ask again"
)
CLASS_AGE_S = _limit("class_age", 7200.0, "seconds without a class's teacher", "it ends")

# What visits make the server keep. A run of 205 tokens, 200 of them new, takes 6.7 MB (stories),
# one that fills the 512 tokens 16 MB, a batch of eight such 118 MB. A server with the bundled
# models holds 570 MB at its start and at most 970 with all of this. Two of the largest batches that
# are read at the same time take 300 MB each until they are done: 1.6 GB was the most under such a
# load without end, while sixty visitors used the page; unread answers may add MAX_UNREAD_BYTES.
MAX_KEPT_BYTES = _limit("kept_bytes", 400_000_000, "bytes of all that visits leave", GOES)
MAX_LEARNED_BYTES = _limit(
    "learned_bytes", 64_000_000, "of them of own models; as many of trainings", GOES
)
MAX_CALL_BYTES = _limit("call_bytes", 32_000_000, "of them of calls that are not yet read", GOES)
MAX_CLASS_BYTES = _limit("class_bytes", 16_000_000, "of them of classes", GOES)
MAX_CALLERS = _limit("callers", 1_000, "programs with such calls", GOES)
MAX_VISITOR_RUNS = _limit("visitor_runs", 8, "kept runs of a visitor", "its own oldest goes")
MAX_OWN_MODELS = _limit("own_models", 4, "models of one visit", "its own oldest goes")
MAX_AGE_S = _limit("learned_age", 3600.0, "seconds without a question of its visitor", "it goes")
SILENT_S = _limit("run_age", 600.0, "the same for runs, which can be made again", "they go")
LEFT_AGE_S = _limit(
    "left_age", 60.0, "the same for both once the visitor has left, and for unread calls", "they go"
)
