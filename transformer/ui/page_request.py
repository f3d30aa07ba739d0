"""A request as the page's state holds it, names and texts: the one form in which a link, the page
and a server that makes a run again have it.

A run is a pure function of its request: so a server that dropped it to make room, one that was
started anew and any replica beside it give the same answers as the one that made it.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

from transformer.checks import InvalidRequest, check_choice, shortened
from transformer.inference import deadline
from transformer.interventions.descriptions import to_dict
from transformer.messages import mark
from transformer.runs.batch import Batch
from transformer.runs.run import Run
from transformer.ui.errors import Busy, RunExpired
from transformer.ui.examples import BEAM, GREEDY, METHODS, SAMPLE, STARTS, example_of
from transformer.ui.limits import MAX_MADE, MAX_SECONDS, lines_of
from transformer.ui.link import PageState, read_state
from transformer.ui.service import Service
from transformer.ui.sessions import caller, current_session

INTACT: dict[str, list[Any]] = {"interventions": [], "forced_tokens": []}
# What the page calls the settings, which a request's own sentences begin with.
WORDS = {
    "max_new_tokens": mark("New tokens"),
    "temperature": mark("Temperature"),
    "top_k": mark("Top-k"),
    "top_p": mark("Top-p"),
    "beams": mark("Beams"),
    "length_penalty": mark("Length penalty"),
    "seed": mark("Seed"),
}
ID = re.compile(r"[\w-]{22}", flags=re.ASCII)  # as the store makes them


def settings_of(values: Mapping[str, Any], altered: Any = INTACT) -> dict[str, Any]:
    """A request's settings from the page's controls by name, where top-k 0 and top-p 1 mean "off".

    altered: {"interventions": [...], "forced_tokens": [...]}. An altered network does not search: a
    beam search becomes greedy. Raises ValueError for an unknown method and for other names; the
    rest is checked by the request itself.
    """
    method = values["method"]
    check_choice("method", method, METHODS)
    if not isinstance(altered, dict) or set(altered) - set(INTACT):
        raise ValueError(f"altered must be an object with {list(INTACT)}; got {shortened(altered)}")
    changes = {name: value for name, value in altered.items() if value}
    settings = {"max_new_tokens": values["length"]}
    if method == SAMPLE:
        settings |= {name: values[name] for name in ("temperature", "top_k", "top_p", "seed")}
    if method == BEAM and not changes:
        settings |= {"beams": values["beams"], "length_penalty": values["penalty"]}
    for name, value in settings.items():
        if value is None:
            raise InvalidRequest("no_number", "{name} is empty: give a number", name=name)
    off = {"top_k": 0, "top_p": 1}
    given = {name: None if value == off.get(name) else value for name, value in settings.items()}
    return given | changes


def state_of_run(run: Run) -> dict[str, str]:
    """The state whose run this is; of one that was stopped early, with as many tokens as it has."""
    request = run.reproducing_request
    state = {"model": run.model, "text": request.text}
    if run.config.family == "encoder":
        return state
    if request.beams > 1:
        state |= {"method": BEAM, "beams": str(request.beams)}
        state["penalty"] = _text(request.length_penalty)
    elif request.sampling is None:
        state["method"] = GREEDY
    else:
        off = {"temperature": 1, "top_k": 0, "top_p": 1}
        given = {name: getattr(request, name) for name in off}
        drawn = {name: _text(off[name] if given[name] is None else given[name]) for name in off}
        state |= {"method": SAMPLE, **drawn, "seed": str(request.seed)}
    state["length"] = str(request.max_new_tokens)
    if request.forced_tokens:
        state["forced_tokens"] = ",".join(map(str, request.forced_tokens))
    if request.interventions:
        altered = [to_dict(intervention) for intervention in request.interventions]
        state["alter"] = json.dumps(altered, separators=(",", ":"), ensure_ascii=False)
    return state


def _text(number: float) -> str:
    """As short as it can be read back."""
    return str(int(number)) if number == int(number) else repr(number)


def run_of(service: Service, state: PageState) -> Run:
    """The run of a state: the model's stored example where it says no more. Raises ValueError."""
    name = state.model or next(iter(service.models))
    model = service.model(name)
    if not state.asks_for_a_run:
        return service.store.run(service.example(name)[0])
    example = example_of(model)
    text = example.text if state.text is None else state.text
    if model.config.family == "encoder":
        return service.read(name, text)
    values = {"method": example.methods[0], **STARTS} | state.settings
    return service.generate(name, text, **settings_of(values, state.altered))


def batch_of(service: Service, state: PageState, interventions: Sequence[Any] = ()) -> Batch:
    """The batch of a state, in the same way; interventions: what is altered while it is read."""
    name = state.model or next(iter(service.models))
    if not state.lines:
        return service.store.batch(service.example(name)[1])
    return service.batch(name, lines_of(state.lines), interventions)


class Regenerator:
    """Makes again the runs of questions that the store has dropped, each once for all callers."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._guard = threading.Lock()
        self._under_way: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()

    def make(self, made: Any) -> None:
        """made: id -> the state of a run or, with "lines" in it, of a batch. Raises ValueError for
        anything else, and if the client has left; RunExpired where too many are being made."""
        if not isinstance(made, Mapping) or len(made) > MAX_MADE:
            raise ValueError(f"made must be an object of at most {MAX_MADE} runs")
        for key, state in made.items():
            is_state = isinstance(state, Mapping) and all(
                isinstance(v, str) for v in state.values()
            )
            if not ID.fullmatch(key) or not is_state:
                raise ValueError("made must name each run by its id, and say how it was made")
            if self._service.store.has(key):
                continue
            try:
                self._make_once(key, state)
            except Busy as busy:  # the page asks again
                raise RunExpired(busy.code, busy.sentence, **busy.values) from None

    def _make_once(self, key: str, state: Mapping[str, str]) -> None:
        with self._guard:
            one = self._under_way.setdefault(key, threading.Lock())
        with one:
            if self._service.store.has(key):
                return
            with (
                self._service.shares["model"].taken(
                    caller(), lambda: not deadline.is_over()
                ) as place,
                deadline.renewed(MAX_SECONDS, place.yield_slot),
            ):
                item = self._made(state)
                deadline.check()  # a part of a run is another run
            self._service.store.put(item, current_session.get(), key)

    def _made(self, state: Mapping[str, str]) -> Run | Batch:
        if "model" not in state:
            raise ValueError("made must name each run by its id, and say how it was made")
        asked = read_state(state)
        if asked.problems:
            raise ValueError(" ".join(asked.problems))
        if "lines" in state:
            return batch_of(self._service, asked, asked.interventions)
        return run_of(self._service, asked)
