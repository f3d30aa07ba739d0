"""A request of the page: for a run the fields of a link that make it, as plain values
(`fields.REQUEST`), for a batch {"model", "lines", "bare"}, and {"model"} alone for a model's stored
example.

A run is a pure function of its request: so a server that dropped it to make room, a restarted one
and any replica give the same answers as the one that made it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

from transformer.checks import InvalidRequest, check_choice, check_names
from transformer.inference import deadline
from transformer.interventions.descriptions import without_padding_mask
from transformer.runs.batch import Batch
from transformer.runs.request import request_to_dict
from transformer.runs.run import Run
from transformer.server.errors import Busy, RunExpired
from transformer.server.examples import example_of
from transformer.server.fields import (
    BEAM,
    CHANGES,
    GREEDY,
    LANGUAGES,
    METHODS,
    NUMBERS,
    READ,
    REQUEST,
    SAMPLE,
)
from transformer.server.limits import MAX_MADE, MAX_SECONDS
from transformer.server.service import Service, lines_of
from transformer.server.sessions import caller, taken

OF_BATCH = ("model", "lines", "bare")
# What the page calls the settings, which a request's own sentences begin with.
WORDS = {one.name: one.title for one in NUMBERS.values()}
ID = re.compile(r"[\w-]{22}", flags=re.ASCII)  # as the store makes them


def settings_of(asked: Mapping[str, Any], method: str = GREEDY) -> dict[str, Any]:
    """The settings of a run's request, as `Service.stream` takes them.

    method: where the request names none. An altered network does not search: a beam search becomes
    greedy. Raises ValueError for an unknown method and for other names; the rest is checked by the
    `Request` itself.
    """
    check_names("a request", asked, REQUEST)
    method = asked.get("method", method)
    check_choice("method", method, METHODS)
    given = {of: asked[name] for name, of in CHANGES.items() if asked.get(name)}
    if method == BEAM and given:
        method = GREEDY
    for name in READ[method]:
        _, first, of, off = NUMBERS[name]
        value = asked.get(name, first)
        if value is None:
            raise InvalidRequest("no_number", "{name} is empty: give a number", name=of)
        given[of] = None if value == off else value
    return given | {name: asked[name] for name in LANGUAGES if asked.get(name) is not None}


def request_of_run(run: Run) -> dict[str, Any]:
    """The request whose run this is; if it was stopped early, for as many tokens as it has."""
    request = run.reproducing_request
    asked: dict[str, Any] = {"model": run.model, "text": request.text}
    if run.config.family == "encoder":
        return asked
    sampling = request.sampling
    asked["method"] = BEAM if request.beams > 1 else GREEDY if sampling is None else SAMPLE
    for name in READ[asked["method"]]:
        _, _, of, off = NUMBERS[name]
        value = getattr(sampling if name == "temperature" else request, of)
        asked[name] = off if value is None else value
    values = request_to_dict(request, defaults=False)
    names = {**CHANGES, **{name: name for name in LANGUAGES}}
    return asked | {name: values[of] for name, of in names.items() if of in values}


def run_of(service: Service, asked: Mapping[str, Any]) -> Run:
    """The run of a request: the model's stored example where it names the model alone. Raises
    ValueError."""
    name = asked.get("model", next(iter(service.models)))
    model = service.model(name)
    if not set(asked) - {"model"}:
        return service.store.run(service.example(name)[0])
    example = example_of(model)
    text, chosen = asked.get("text", example.text), settings_of(asked, example.methods[0])
    if model.config.family == "encoder":
        return service.read(name, text)
    return service.generate(name, text, **chosen)


def batch_of(service: Service, asked: Mapping[str, Any]) -> Batch:
    """The batch of a request, in the same way."""
    check_names("a request", asked, OF_BATCH)
    name = asked.get("model", next(iter(service.models)))
    config = service.model(name).config
    if "lines" not in asked:
        return service.store.batch(service.example(name)[1])
    bare = without_padding_mask(config) if asked.get("bare") is True else ()
    return service.batch(name, lines_of(asked["lines"]), bare)


class Regenerator:
    """Makes again the runs of questions that the store has dropped, each once for all callers."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._guard = threading.Lock()
        self._under_way: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()

    def make(self, made: Any) -> None:
        """made: id -> the request of a run or, with "lines" in it, of a batch. Raises ValueError
        for anything else, and if the client has left; RunExpired where too many are being made."""
        if not isinstance(made, Mapping) or len(made) > MAX_MADE:
            raise ValueError(f"made must be an object of at most {MAX_MADE} runs")
        for key, asked in made.items():
            if not ID.fullmatch(key) or not isinstance(asked, Mapping) or "model" not in asked:
                raise ValueError("made must name each run by its id, and say how it was made")
            if self._service.store.has(key):
                continue
            try:
                self._make_once(key, asked)
            except Busy as busy:  # the page asks again
                raise RunExpired(busy) from None

    def _make_once(self, key: str, asked: Mapping[str, Any]) -> None:
        with self._guard:
            one = self._under_way.setdefault(key, threading.Lock())
        with one:
            if self._service.store.has(key):
                return
            with (
                taken(self._service.shares["model"], lambda: not deadline.is_over()) as place,
                deadline.renewed(MAX_SECONDS, place.yield_slot),
            ):
                make = batch_of if "lines" in asked else run_of
                item = make(self._service, asked)
                deadline.check()  # a part of a run is another run
            self._service.store.put(item, caller().session, key)
