"""What the page and programs ask of a view, by its declaration: plain values in and out."""

from __future__ import annotations

import base64
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from transformer.checks import check_names, shortened
from transformer.messages import invalid
from transformer.ui.again import MadeAgain
from transformer.ui.experiments import Experiments
from transformer.ui.fair_scheduler import FairScheduler
from transformer.ui.learning import Learning
from transformer.ui.lessons import Lessons
from transformer.ui.limits import check_input, sentence_of
from transformer.ui.moments import moment
from transformer.ui.question_threads import answering
from transformer.ui.store import RunExpired, RunStore
from transformer.views import PICTURES
from transformer.views.declaration import Answer, Picture, is_figure
from transformer.views.export import export

LESSONS = ("lessons", "lesson", "grade", "solve")
LEARNING = ("train", "steer", "learned", "adopt", "checkpoint", "examined")
MAX_ASKED = 256  # runs that a page may ask about at once

Ask = Callable[[dict[str, Any]], Any]


def functions(experiments: Experiments) -> dict[str, Ask]:
    """A function for each picture of each view, and for the files and the runs that are kept.

    Each takes one dict from the browser and gives one back; a mistake gives {"error": sentence}.
    """
    again = MadeAgain(experiments.service).make
    asks: dict[str, Ask] = {
        picture.name: _asking(experiments, picture, again) for picture in PICTURES.values()
    }
    store = experiments.store
    learning = Learning(experiments.service)
    asks |= {name: server_function(name, getattr(learning, name)) for name in LEARNING}
    asks["moment"] = server_function("moment", moment)
    lessons = Lessons(experiments)
    asks |= {name: server_function(name, getattr(lessons, name), again) for name in LESSONS}
    asks["kept"] = server_function("kept", lambda data: kept(store, data))
    file = server_function("export", lambda data: _file(experiments, data), again)
    asks["export"] = made_first(experiments.service.shares, "files", file, again)
    return asks


def answer(experiments: Experiments, picture: Picture, data: Mapping[str, Any]) -> Answer:
    """What a picture says of the run, batch or model that `data` names.

    data: "run", "batch" or "model" (and "other" for two runs), and the picture's parameters.
    Raises ValueError for what it cannot be asked, RunExpired for a run that is no longer kept.
    """
    if not isinstance(data, Mapping):
        raise invalid(
            "{name} must be asked with an object; got {got}",
            name=picture.name,
            got=type(data).__name__,
        )
    given = dict(data)
    of = _subjects(experiments, picture, given)
    for text in (given.get("other"),) if picture.takes != "runs" and "other" in given else ():
        check_input(text)
    item = of[0] if of and not isinstance(of[0], str) else None
    return picture.ask(*([experiments] if picture.network else []), *of, given=given, item=item)


def _subjects(experiments: Experiments, picture: Picture, given: dict[str, Any]) -> list[Any]:
    """What the picture is about, taken out of `given`."""
    store = experiments.store
    if picture.takes == "model":
        return [given.pop("model", None)]
    if picture.takes == "batch":
        return [store.batch(given.pop("batch", None))]
    if picture.takes == "run or batch":
        return [store.any(given.pop("run", None))]
    run = store.run(given.pop("run", None))
    found = [experiments.with_lens(run) if picture.lens else run]
    if picture.takes == "runs":
        found.append(store.run(given.pop("other", None)))
    return found


def _asking(experiments: Experiments, picture: Picture, again: Callable[[Any], None]) -> Ask:
    ask = server_function(picture.name, lambda data: answer(experiments, picture, data), again)
    if not picture.idle:
        return ask
    return made_first(experiments.service.shares, "idle", ask, again)


def in_threads(shares: FairScheduler, asks: Mapping[str, Ask]) -> dict[str, Ask]:
    """The same functions for the page: each holds a thread only while it is answered."""
    return {
        name: ask if inspect.iscoroutinefunction(ask) else answering(shares, "questions", ask)
        for name, ask in asks.items()
    }


def made_first(shares: FairScheduler, resource: str, ask: Ask, again: Callable[[Any], None]) -> Ask:
    """What a thread of low priority answers, with runs made again before and not there, where they
    would make those who wait for the network wait longer."""

    def make(data: dict[str, Any]) -> Answer:
        again(data["again"])
        return {}

    remake = answering(shares, "questions", server_function(ask.__name__, make))
    later = answering(shares, resource, ask)

    async def asked(data: Any) -> Answer:
        if isinstance(data, dict) and "made" in data:
            failed = await remake({"again": data["made"]})
            if failed:
                return dict(failed)
        return dict(await later(data))

    asked.__name__ = ask.__name__
    return asked


def server_function(
    name: str, work: Callable[[Any], Answer], again: Callable[[Any], None] | None = None
) -> Ask:
    """`work` as Gradio wants it for a component: never an exception for a visitor's mistake.

    {"gone": True} says that the mistake is to ask for a run that is not kept here, or no longer;
    the page then asks once more and says in "made" how it was made, for `again`.
    """

    def ask(data: dict[str, Any]) -> Answer:
        try:
            if not isinstance(data, dict):
                raise invalid(
                    "{name} must be asked with an object; got {got}",
                    name=name,
                    got=type(data).__name__,
                )
            given = dict(data)
            made = given.pop("made", None)
            try:
                found = work(dict(given))
            except RunExpired:
                if again is None or made is None:
                    raise
                again(made)
                found = work(given)
            return {key: plain(value) for key, value in found.items()}
        except RunExpired as error:
            return {"error": sentence_of(error), "gone": True}
        except (ValueError, RecursionError) as error:
            return {"error": sentence_of(error)}

    ask.__name__ = name
    return ask


def plain(value: Any) -> Any:
    """A figure as Plotly's own JSON text, an array as its bytes in base64, the rest as it is."""
    if is_figure(value):
        return str(value.to_json(validate=False))
    if isinstance(value, np.ndarray):
        return base64.b64encode(value.tobytes()).decode("ascii")
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value


def kept(store: RunStore, data: Mapping[str, Any]) -> Answer:
    """{"runs"}: which of these the server still has; asking does not keep them longer."""
    check_names("kept", data, ("runs",))
    runs = data.get("runs")
    if not isinstance(runs, list) or len(runs) > MAX_ASKED:
        raise invalid(
            "runs must be a list of at most {most} ids; got {got}",
            most=MAX_ASKED,
            got=shortened(runs),
        )
    return {"kept": [store.has(run) for run in runs]}


def _file(experiments: Experiments, data: dict[str, Any]) -> Answer:
    """A kept run as a file; all but a single head's CSV hold the run's lens."""
    run = experiments.store.run(data.pop("run", None))
    check_names("export", data, ("form", "site", "head", "stage"))
    return export(
        run if data.get("form") == "csv" else experiments.with_lens(run), **{"form": None, **data}
    )
