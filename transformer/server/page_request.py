"""A request of the page: {"model", "text", "settings", "altered"} for a run, {"model", "lines",
"bare"} for a batch, and {"model"} alone for a model's stored example.

A run is a pure function of its request: so a server that dropped it to make room, a restarted one
and any replica give the same answers as the one that made it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

from transformer.checks import InvalidRequest, check_choice, check_names, shortened
from transformer.inference import deadline
from transformer.interventions.descriptions import to_dict, without_padding_mask
from transformer.messages import mark
from transformer.runs.batch import Batch
from transformer.runs.run import Run
from transformer.server.errors import Busy, RunExpired
from transformer.server.examples import BEAM, GREEDY, METHODS, SAMPLE, STARTS, example_of
from transformer.server.fields import LANGUAGES, SETTINGS
from transformer.server.limits import MAX_MADE, MAX_SECONDS, lines_of
from transformer.server.service import Service
from transformer.server.sessions import caller, taken

OF_RUN = ("model", "text", "settings", "altered")
OF_BATCH = ("model", "lines", "bare")
INTACT: dict[str, list[Any]] = {"interventions": [], "forced_tokens": []}
# The labels of the settings, with which a request's own sentences begin.
WORDS = {
    "max_new_tokens": mark("New tokens"),
    "temperature": mark("Temperature (0 = greedy)"),
    "top_k": mark("Top-k (0 = off)"),
    "top_p": mark("Top-p (1 = off)"),
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
    languages = {name: values[name] for name in LANGUAGES if values[name] is not None}
    return given | languages | changes


def request_of_run(run: Run) -> dict[str, Any]:
    """The request whose run this is; if it was stopped early, for as many tokens as it has."""
    request = run.reproducing_request
    asked: dict[str, Any] = {"model": run.model, "text": request.text}
    if run.config.family == "encoder":
        return asked
    settings: dict[str, Any] = {"method": GREEDY}
    if request.beams > 1:
        settings = {"method": BEAM, "beams": request.beams, "penalty": request.length_penalty}
    elif request.sampling is not None:
        off = {"temperature": 1, "top_k": 0, "top_p": 1}
        given = {name: getattr(request, name) for name in off}
        drawn = {name: off[name] if given[name] is None else given[name] for name in off}
        settings = {"method": SAMPLE, **drawn, "seed": request.seed}
    languages = {name: getattr(request, name) for name in LANGUAGES}
    settings |= {name: language for name, language in languages.items() if language is not None}
    asked["settings"] = settings | {"length": request.max_new_tokens}
    changes = [to_dict(intervention) for intervention in request.interventions]
    altered = {"interventions": changes, "forced_tokens": list(request.forced_tokens)}
    return asked | ({"altered": altered} if altered != INTACT else {})


def run_settings(asked: Mapping[str, Any], method: str = GREEDY) -> dict[str, Any]:
    """The settings of a run's request, as `settings_of` gives them; method: where it names none."""
    check_names("a request", asked, OF_RUN)
    settings = asked.get("settings", {})
    if not isinstance(settings, Mapping):
        raise ValueError(f"settings must be an object; got {type(settings).__name__}")
    check_names("settings", settings, SETTINGS)
    return settings_of({"method": method, **STARTS, **settings}, asked.get("altered", INTACT))


def run_of(service: Service, asked: Mapping[str, Any]) -> Run:
    """The run of a request: the model's stored example where it names the model alone. Raises
    ValueError."""
    name = asked.get("model", next(iter(service.models)))
    model = service.model(name)
    if not set(asked) - {"model"}:
        return service.store.run(service.example(name)[0])
    example = example_of(model)
    text, chosen = asked.get("text", example.text), run_settings(asked, example.methods[0])
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
                raise RunExpired(busy.code, busy.sentence, **busy.values) from None

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
