"""How much one visitor may ask of the server at once. Each refusal is one sentence.

What is measured by the network's own settings (beams, temperature, seed) is refused by the request
itself; all of it stands in `table`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformer.checks import check_each, check_text, check_whole
from transformer.messages import invalid, numeral, say
from transformer.runs.memo import MAX_REMEMBERED, REMEMBERED
from transformer.runs.memory_budget import Limits, MemoryBudget
from transformer.runs.request import MAX_BEAMS
from transformer.ui.language import wording
from transformer.views.export import MAX_EXPORT_BYTES

MAX_CHARACTERS = 2_000  # of one text
MAX_NEW_TOKENS = 200
MAX_TEXTS = 8  # in one batch
MAX_INTERVENTIONS = 64  # in one request
MAX_WAITING = 80  # requests of each kind that wait without a thread: about a minute of them
MAX_THREADS_WAITING = 8  # of each kind that hold a thread while they wait
MAX_VISITOR_WAITING = 16  # of each kind of one session
ADDRESS_SHARE = 2 / 3  # of what has begun of each kind that may be of one address
MAX_TRAININGS = 1  # small networks that are trained at the same time, on one core each
MAX_TRAINING_S = 60.0  # that one is trained; pauses are not counted
MAX_TRAININGS_WAITING = 16
MAX_LEARNED_BYTES = 64_000_000  # of what trainings have left; the same of visitors' own models
MAX_OWN_MODELS = 4  # of one visit, of those that it has trained
MAX_OPERATIONS = 2e12  # of one experiment: about 20 s of the network on two cores
AT_ONCE = 2  # requests that run the network at the same time
MAX_BEGUN = 12  # the same, with those that stepped aside for others after their first second
MAX_BEGUN_EXPERIMENTS = 6  # the same of experiments, of which one runs at a time
MAX_EXPERIMENTS_WAITING = 16  # of programs; who waits behind more would wait for minutes
MAX_QUESTIONS = 24  # of the page's views, answered at the same time
MAX_EVENTS = 8  # of what else the page and programs ask, at the same time
MAX_CALLS = 8  # of tools, under way at the same time
MAX_CALLS_WAITING = 16
MAX_SECONDS = 20.0  # that one request may run the network; waiting is not counted
MAX_REQUEST_BYTES = 1_000_000  # of one request's body
HEADERS_S = 10.0  # in which a request's headers must have come
BODY_S = 30.0  # the same of its body
MAX_HASH = 64  # characters of a session's name, which the page and clients draw at random
MAX_RECORDED_BYTES = 128_000_000  # of attention, of one run or batch
MAX_VISITOR_RUNS = 8  # kept runs and batches of one visitor
# Of all that visits make the server keep (see KEPT). A run of 205 tokens, 200 of them new, takes
# 6.7 MB (stories), one that fills the 512 tokens 16 MB, a batch of eight such 118 MB. A server with
# the bundled models holds 570 MB at its start and at most 970 with all of this. Two of the largest
# batches that are read at the same time take 300 MB each until they are done: 1.6 GB was the most
# under such a load without end, with sixty visitors beside it.
MAX_KEPT_BYTES = 400_000_000
MAX_REMEMBERED_BYTES = 64_000_000  # of what was worked out of kept runs
MAX_AGE_S = 3600.0  # that what a visitor has trained is kept, since the visitor was last heard of
SILENT_S = 600.0  # the same of runs, which are made again by their requests
LEFT_AGE_S = 60.0  # the same of both, once the visitor has left
EXPORTS_AT_ONCE = 2  # files that are made at the same time
MAX_EXPORTS = 16  # files that are waited for
MAX_IDLE = 128  # views that are waited for without a click
MAX_LISTED = 16_384  # numbers of a matrix as nested lists; 128 x 128 take about a megabyte
MAX_UNFETCHED = 1_000  # sessions whose finished answers are kept until they fetch them
MAX_UNFETCHED_BYTES = 32_000_000  # of those answers
UNFETCHED_S = 60.0  # since the last of them was finished
MAX_SENTENCE = 500  # characters of a refusal

# What visits make the server keep, by kind. Kinds that have bytes of their own are not pushed out
# by runs, which can be made again.
RUNS, MODELS, TRAININGS, RECORDS, ANSWERS = "runs", "models", "trainings", "recorded", "answers"
KEPT = {
    RUNS: Limits(most_own=MAX_VISITOR_RUNS, age_s=SILENT_S),
    REMEMBERED: Limits(most_bytes=MAX_REMEMBERED_BYTES, most_own=MAX_REMEMBERED, age_s=SILENT_S),
    RECORDS: Limits(age_s=MAX_AGE_S),
    MODELS: Limits(most_bytes=MAX_LEARNED_BYTES, most_own=MAX_OWN_MODELS, age_s=MAX_AGE_S),
    TRAININGS: Limits(most_bytes=MAX_LEARNED_BYTES, most_own=1, age_s=MAX_AGE_S),
    ANSWERS: Limits(most_bytes=MAX_UNFETCHED_BYTES, most=MAX_UNFETCHED, age_s=UNFETCHED_S),
}

# Said in English here; whoever is refused hears it `again` in the request's language.
BUSY = wording("The server is busy with other requests; try again in a moment.")
YOURS_WAIT = wording("Too many of your own requests are waiting already; try again in a moment.")
POST_ONLY = wording("Tools are called here by POST, as the Model Context Protocol has it.")
TOO_LARGE = wording("A request must have at most {most} bytes", most=numeral(MAX_REQUEST_BYTES))
TOO_SLOW = wording("A request must arrive within {seconds} s.", seconds=numeral(BODY_S, ".0f"))
MISTAKE = wording("The server made a mistake.")
METHODS_ONLY = wording("A request must be GET, HEAD, POST or OPTIONS.")
FOREIGN = wording("Only the page itself may ask this, not a page of another site.")
ENDING = wording("The server is shutting down; try again in a moment.")
NO_EVENT = wording("The server has nothing to do for this event of the page.")
NO_HASH = wording("A session_hash must have from 1 to {most} characters.", most=MAX_HASH)
CLOSED = wording("This address is closed: the page takes no files and serves none but its own.")


def table() -> dict[str, dict[str, Any]]:
    """Every limit by name: its number, its unit, and what happens beyond it."""
    full = "refused: the newest of the address, then of the session, that has most of them"
    rows = {
        "characters": (MAX_CHARACTERS, "characters of one text", "refused"),
        "new_tokens": (MAX_NEW_TOKENS, "tokens", "refused"),
        "beams": (MAX_BEAMS, "hypotheses", "refused"),
        "texts": (MAX_TEXTS, "texts in a batch", "refused"),
        "interventions": (MAX_INTERVENTIONS, "interventions in a request", "refused"),
        "operations": (MAX_OPERATIONS, "operations of one experiment", "refused"),
        "waiting": (MAX_WAITING, "requests of each kind that wait", full),
        "threads_waiting": (MAX_THREADS_WAITING, "of those that hold a thread meanwhile", full),
        "visitor_waiting": (MAX_VISITOR_WAITING, "of each kind of one session", "refused"),
        "address_share": (ADDRESS_SHARE, "of what has begun, for one address", "the others wait"),
        "trainings": (MAX_TRAININGS, "small networks trained at once", "the others wait"),
        "training_seconds": (MAX_TRAINING_S, "seconds of a training", "it ends as it stands"),
        "trainings_waiting": (MAX_TRAININGS_WAITING, "trainings that wait", full),
        "own_models": (MAX_OWN_MODELS, "models of one visit", "its own oldest goes"),
        "at_once": (AT_ONCE, "requests that run the network", "the others wait"),
        "begun": (MAX_BEGUN, "requests that have begun to run it", "the others wait"),
        "begun_experiments": (MAX_BEGUN_EXPERIMENTS, "the same of experiments", "the others wait"),
        "experiments_waiting": (MAX_EXPERIMENTS_WAITING, "experiments of programs that wait", full),
        "questions": (MAX_QUESTIONS, "questions of views answered at once", "the others wait"),
        "events": (MAX_EVENTS, "other requests answered at once", "the others wait"),
        "calls": (MAX_CALLS, "calls of tools at once (if they are served)", "the others wait"),
        "calls_waiting": (MAX_CALLS_WAITING, "calls of tools that wait", full),
        "seconds": (MAX_SECONDS, "seconds of the network", "stopped; what there is, is given"),
        "request_bytes": (MAX_REQUEST_BYTES, "bytes of one request", "refused"),
        "header_seconds": (HEADERS_S, "seconds in which headers must have come", "closed"),
        "request_seconds": (BODY_S, "seconds in which a request must have come", "refused"),
        "session_hash": (MAX_HASH, "characters of a session's name", "refused"),
        "upload_bytes": (0, "bytes of an uploaded file", "refused: the page takes no files"),
        "recorded_bytes": (MAX_RECORDED_BYTES, "bytes of a run's or batch's attention", "refused"),
        "kept_bytes": (MAX_KEPT_BYTES, "bytes of all that visits leave", "the oldest goes"),
        "remembered_bytes": (MAX_REMEMBERED_BYTES, "of them of numbers of runs", "the oldest go"),
        "learned_bytes": (MAX_LEARNED_BYTES, "of them of own models; trainings", "the oldest goes"),
        "unfetched_bytes": (MAX_UNFETCHED_BYTES, "of them of unfetched answers", "the oldest go"),
        "unfetched": (MAX_UNFETCHED, "sessions with unfetched answers", "the oldest go"),
        "visitor_runs": (MAX_VISITOR_RUNS, "kept runs of a visitor", "its own oldest goes"),
        "learned_age": (MAX_AGE_S, "seconds without a question of its visitor", "it goes"),
        "run_age": (SILENT_S, "the same for runs", "they go"),
        "left_age": (LEFT_AGE_S, "the same for both, once the visitor has left", "they go"),
        "unfetched_age": (UNFETCHED_S, "seconds that an answer waits to be fetched", "it goes"),
        "export_bytes": (MAX_EXPORT_BYTES, "bytes of an exported file's arrays", "refused"),
        "exports_at_once": (EXPORTS_AT_ONCE, "files made at once", "the others wait"),
        "exports": (MAX_EXPORTS, "files that are waited for", full),
        "idle": (MAX_IDLE, "tables and maps waited for", full),
        "listed": (MAX_LISTED, "numbers of a matrix as nested lists", "refused unless packed"),
    }
    return {
        name: {"limit": limit, "unit": unit, "beyond": beyond}
        for name, (limit, unit, beyond) in rows.items()
    }


def memory_budget() -> MemoryBudget:
    """An empty one, of these limits."""
    return MemoryBudget(MAX_KEPT_BYTES, KEPT)


def sentence_of(error: Exception) -> str:
    """What a visitor is told of a mistake: one line, and of a very long value its two ends."""
    if isinstance(error, RecursionError):
        return say("the values are nested too deeply")
    line = " ".join(str(error).split())
    half = MAX_SENTENCE // 2
    return line if len(line) <= MAX_SENTENCE else f"{line[:half]} … {line[-half:]}"


def check_input(text: Any) -> str:
    """A text that may be read. Raises ValueError for an empty or too long one."""
    check_text(text)
    if len(text) > MAX_CHARACTERS:
        raise invalid(
            "the text must have at most {most} characters; got {got}",
            most=numeral(MAX_CHARACTERS),
            got=numeral(len(text)),
        )
    return str(text)


def check_length(max_new_tokens: Any) -> int:
    """A number of tokens to generate. Raises ValueError outside 1 to MAX_NEW_TOKENS."""
    return check_whole("max_new_tokens", max_new_tokens, 1, MAX_NEW_TOKENS)


def check_interventions(interventions: Any) -> None:
    """Raise ValueError for too many of them; what each may be is checked by the request."""
    if isinstance(interventions, Sequence) and len(interventions) > MAX_INTERVENTIONS:
        raise invalid(
            "a request must have at most {most} interventions; got {got}",
            most=MAX_INTERVENTIONS,
            got=numeral(len(interventions)),
        )


def check_texts(texts: Any) -> list[str]:
    """A batch. Raises ValueError unless it is 1 to MAX_TEXTS texts that may be read."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise invalid("the texts must be a list of strings; got {got}", got=type(texts).__name__)
    if not 1 <= len(texts) <= MAX_TEXTS:
        raise invalid(
            "a batch must have from 1 to {most} texts; got {got}", most=MAX_TEXTS, got=len(texts)
        )
    check_each(texts, check_input)
    return list(texts)


def lines_of(text: Any) -> list[str]:
    """The batch that a visitor typed, one text a line; empty lines are left out."""
    if not isinstance(text, str):
        raise invalid("the text must be a string; got {got}", got=type(text).__name__)
    if len(text) > MAX_CHARACTERS * MAX_TEXTS:
        raise invalid(
            "the batch must have at most {most} characters; got {got}",
            most=numeral(MAX_CHARACTERS * MAX_TEXTS),
            got=numeral(len(text)),
        )
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        raise invalid("the batch needs at least one line with text in it; got none")
    return check_texts(lines)
