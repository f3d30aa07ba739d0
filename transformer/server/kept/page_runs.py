"""Runs and batches of the page: their facts, as plain values for its components and the API, and
how they are made from its requests.

A request is the fields of a link that make a run (`fields.REQUEST`), {"model"} alone for that of a
model's stored example, and for a batch {"model", "lines", "bare"} and a translator's languages. A
run is a pure function of its request: so a server that dropped it to make room, a restarted one and
any replica give the same answers as the one that made it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from transformer.checks import check_names
from transformer.inference import deadline
from transformer.inference.model import Model
from transformer.inference.stream import Stream
from transformer.interventions.descriptions import without_padding_mask
from transformer.learning.exercises import EXERCISES
from transformer.messages import mark, numeral, say, say_n
from transformer.model.sites import Site
from transformer.runs.batch import Batch
from transformer.runs.run import Run
from transformer.server.fields import LANGUAGES, request_of_run, settings_of, shown_first
from transformer.server.http.errors import Busy, RunExpired
from transformer.server.http.limits import MAX_MADE, MAX_SECONDS
from transformer.server.http.requests import caller, taken, time_limit
from transformer.server.kept.page_models import example_of
from transformer.server.kept.service import Languages, Service, lines_of
from transformer.server.kept.trainings import NAME_SEPARATOR
from transformer.tokenizer import Tokenizer
from transformer.views.run_facts import facts_of, hypotheses_of, kinds_of, windows_of

OF_BATCH = ("model", "lines", "bare", *LANGUAGES)
# As the store makes them, those of examples too, which another server need not have.
ID = re.compile(r"[\w-]{22}|example-[0-9a-f]{16}", flags=re.ASCII)
BYTE = re.compile("‹[0-9A-F]{2}›")  # the label of a token that is one byte of a sign
_STOPPED = {
    "end": mark("The model ended its text."),
    "stop": mark("It reached a stop text."),
    "cancelled": mark("You stopped it."),
    "time": mark("It reached the {seconds} s that one request may take."),
    "read": mark("It was read; nothing was generated."),
}


def run_facts(run: Run, key: str, model: Model) -> dict[str, Any]:
    """The facts of a run for the page's scripts; `key` is its id in the store, `model` made it.
    task: the exercise that a visit's own model learned."""
    name, is_own, _ = run.model.partition(NAME_SEPARATOR)
    exercise = EXERCISES.get(name.rpartition("-")[0]) if is_own else None
    return {
        **facts_of(run),
        "run": key,
        "hidden": [at for at, id_ in enumerate(run.ids) if id_ == model.tokenizer.mask_id],
        "last_read": model.last_read(run),
        "task": exercise.title if exercise is not None else "",
        "request": request_of_run(run, chats=model.tokenizer.chat_template is not None),
        "opening": shown_first(run.model, run.config),
    }


def run_values(run: Run, key: str) -> dict[str, Any]:
    """A run as the API returns it."""
    return {
        "run": key,
        "model": run.model,
        "text": run.text,
        "read_as": run.read_as,
        "doubts": list(run.warnings),
        "source_tokens": list(run.source_labels),
        "source_ids": list(run.source_ids),
        "tokens": list(run.labels),
        "ids": list(run.ids),
        "n_prompt": run.n_prompt,
        "stopped": run.stopped,
        "trace_start": run.trace_start,
        "attention": kinds_of(run),
        "n_heads": run.config.n_heads,
        "steps": [
            {
                "index": step.index,
                "id": step.token,
                "token": run.candidate_labels[step.token],
                "probability": step.chosen.probability,
                "window": list(step.window),
                "n_kept": step.n_kept,
                "candidates": [
                    {
                        "id": candidate.id,
                        "token": run.candidate_labels[candidate.id],
                        "logit": candidate.logit,
                        "probability": candidate.probability,
                        "sampling_probability": candidate.sampling_probability,
                    }
                    for candidate in step.candidates
                ],
            }
            for step in run.steps
        ],
        "hypotheses": hypotheses_of(run),
    }


def running_facts(stream: Stream, ids: Sequence[int], tokenizer: Tokenizer) -> dict[str, Any]:
    """`run_facts` while tokens are still generated: nothing can be drawn yet. ids: with those of
    the prompt."""
    source, special = stream.source_ids, tokenizer.is_special
    return {
        "run": None,
        "state": "running",
        "source_labels": tokenizer.labels(source),
        "labels": tokenizer.labels(ids),
        "special": [at for at, id_ in enumerate(ids) if special(id_)],
        "source_special": [at for at, id_ in enumerate(source) if special(id_)],
        "n_prompt": stream.n_prompt,
        "probabilities": [step.chosen.probability for step in stream.steps],
    }


def batch_facts(batch: Batch, key: str, *, padding_hidden: bool = True) -> dict[str, Any]:
    """A padded batch for the page's scripts. padding_hidden: see `presses.read_batch`."""
    config = batch.config
    return {
        "batch": key,
        "padding_hidden": padding_hidden,
        "model": batch.model,
        "texts": list(batch.texts),
        "outputs": list(batch.outputs),
        "languages": {name: getattr(batch.request, name) for name in LANGUAGES},
        "stacks": list(dict.fromkeys(stack for stack, _ in batch.trace.kinds())),
        "lengths": batch.padding.sum(dim=1).tolist(),
        "kinds": kinds_of(batch),
        "n_heads": next(iter(batch.trace.records.values())).pattern.shape[1],
        "windows": windows_of(config),
    }


def example_facts(service: Service, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(facts of the stored run, facts of the stored batch) of a model.

    A link to them names the model alone; how the page first shows the run is among its facts.
    """
    model, store = service.model(name), service.store
    run_key, batch_key = service.example(name)
    run = run_facts(store.run(run_key), run_key, model)
    run |= {"example": True, "opening": shown_first(name, model.config, example=True)}
    return run, batch_facts(store.batch(batch_key), batch_key) | {"example": True}


def outcome(run: Run, seconds: float) -> str:
    """How a generation went, and where it matters how its text was read, in sentences."""
    milliseconds = say("{seconds} ms", seconds=numeral(1000 * seconds, ".0f"))
    counts = {
        "tokens": say_n("{n} token", "{n} tokens", len(run.steps)),
        "took": milliseconds if seconds < 1 else f"{numeral(seconds, '.1f')} s",
    }
    went = say("{tokens} in {took}.", **counts)
    why = _STOPPED.get(run.stopped)  # nothing is said of a text with the length that was asked for
    end = [] if why is None else [say(why, seconds=numeral(MAX_SECONDS, ".0f"))]
    read = [] if run.read_as is None else [say("Read as: {text}", text=run.read_as)]
    if single := next(filter(BYTE.fullmatch, run.labels[: run.n_prompt]), None):
        read.append(
            say("No token has this character: it is read byte by byte, {byte} …", byte=single)
        )
    return " ".join((went, *end, *run.warnings, *read))


def first_head(run: Mapping[str, Any]) -> tuple[Site, int]:
    """The place and head that the page first shows of a run; run: its facts."""
    opening = run["opening"]
    if "site" in opening:
        return Site.parse(opening["site"]), opening.get("head", 0)
    kind = run["kinds"][0]
    return Site(kind["stack"], 0, kind["kind"]), 0


def run_of(service: Service, request: Mapping[str, Any]) -> Run:
    """The run of a request: the model's stored example where it names the model alone. Raises
    ValueError."""
    name = request.get("model", next(iter(service.models)))
    model = service.model(name)
    if not set(request) - {"model"}:
        return service.store.run(service.example(name)[0])
    example = example_of(model)
    text, chosen = request.get("text", example.text), settings_of(request, example.methods[0])
    if not model.config.generates:
        return service.read(name, text)
    return service.generate(name, text, **chosen)


def batch_of(service: Service, request: Mapping[str, Any]) -> Batch:
    """The batch of a request. Raises ValueError."""
    check_names("a request", request, OF_BATCH)
    name = request.get("model", next(iter(service.models)))
    config = service.model(name).config
    bare = without_padding_mask(config) if request.get("bare") is True else ()
    languages: Languages = {name: request.get(name) for name in LANGUAGES}  # type: ignore[assignment]
    return service.batch(name, lines_of(request.get("lines", "")), bare, **languages)


class Regenerator:
    """Makes again the runs of questions that the store has dropped, each once for all callers."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._guard = threading.Lock()
        self._under_way: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()

    def make(self, requests: Any) -> None:
        """requests: of a run, or with "lines" in it of a batch, by id. Raises ValueError
        for anything else, and if the client has left; RunExpired where too many are being made."""
        if not isinstance(requests, Mapping) or len(requests) > MAX_MADE:
            raise ValueError(f"made must be an object of at most {MAX_MADE} runs")
        for key, request in requests.items():
            if not ID.fullmatch(key) or not isinstance(request, Mapping) or "model" not in request:
                raise ValueError("made must name each run by its id, and say how it was made")
            if self._service.store.has(key):
                continue
            try:
                self._make_once(key, request)
            except Busy as busy:  # the page asks again
                raise RunExpired(busy) from None

    def _make_once(self, key: str, request: Mapping[str, Any]) -> None:
        with self._guard:
            lock = self._under_way.setdefault(key, threading.Lock())
        with lock:
            if self._service.store.has(key):
                return
            with taken(self._service.shares["model"]), deadline.until(time_limit(MAX_SECONDS)):
                make = batch_of if "lines" in request else run_of
                item = make(self._service, request)
                deadline.check()  # a part of a run is another run
            self._service.store.put(item, caller().session, key)
