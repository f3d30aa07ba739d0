"""The page's questions to the server: one for each picture of a view, by its declaration, and a few
others. `resources` serves each by its name."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from transformer.checks import check_names, shortened
from transformer.server import learning, lessons
from transformer.server.limits import MAX_ASKED, check_input
from transformer.server.service import Service
from transformer.views.declaration import Answer, Picture
from transformer.views.drawing.style import of_text
from transformer.views.export import export
from transformer.views.registry import PICTURES


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A named request: plain values in, an answer out.

    line: "questions", or "idle" or "files" for what a thread of low priority answers. picture: the
    declaration that it follows from, if there is one.
    """

    name: str
    work: Callable[[dict[str, Any]], Answer]
    line: str = "questions"
    picture: Picture | None = None


def questions(service: Service) -> dict[str, Question]:
    """All of them, by name. Their work raises ValueError for a mistake, RunExpired for a run that
    is not kept here, or no longer."""
    works: dict[str, Callable[[dict[str, Any]], Answer]] = {
        of.__name__: partial(of, service)
        for of in (
            learning.train, learning.steer, learning.learned, learning.adopt, learning.checkpoint,
            learning.examined, lessons.lessons, lessons.lesson, lessons.grade, lessons.solve, kept,
        )
    }  # fmt: skip
    found = [Question(name=name, work=work) for name, work in works.items()]
    found.append(Question(name="export", work=partial(_file, service), line="files"))
    for one in PICTURES.values():
        asks, line = partial(answer, service, one), "idle" if one.idle else "questions"
        found.append(Question(name=one.name, work=asks, line=line, picture=one))
    return {one.name: one for one in found}


def answer(service: Service, picture: Picture, data: Mapping[str, Any]) -> Answer:
    """The answer of a picture for the run, batch or model that `data` names.

    data: "run", "batch" or "model" (and "other" for two runs), and the picture's parameters.
    Raises ValueError for what it cannot be asked, RunExpired for a run that is no longer kept.
    """
    given = dict(data)
    of = _subjects(service, picture, given)
    if picture.subject != "runs" and "other" in given:
        check_input(given["other"])
    item = of[0] if of and not isinstance(of[0], str) else None
    network = [service.queries] if picture.network else []
    try:
        return picture.ask(*network, *of, given=given, item=item)
    except Exception as error:
        if not service.debug or isinstance(error, ValueError | RecursionError):
            raise
        traceback.print_exc()
        return {"figure": of_text("".join(traceback.format_exception(error)))}


def _subjects(service: Service, picture: Picture, given: dict[str, Any]) -> list[Any]:
    """The run, batch or model of a picture, taken out of `given`."""
    store = service.store
    if picture.subject == "model":
        return [given.pop("model", None)]
    if picture.subject == "batch":
        return [store.batch(given.pop("batch", None))]
    if picture.subject == "run or batch":
        return [store.any(given.pop("run", None))]
    run = store.run(given.pop("run", None))
    found = [service.queries.with_lens(run) if picture.lens else run]
    if picture.subject == "runs":
        found.append(store.run(given.pop("other", None)))
    return found


def kept(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"runs"}: which of these the server still keeps. Does not count as use."""
    check_names("kept", data, ("runs",))
    runs = data.get("runs")
    if not isinstance(runs, list) or len(runs) > MAX_ASKED:
        raise ValueError(f"runs must be a list of at most {MAX_ASKED} ids; got {shortened(runs)}")
    return {"kept": [service.store.has(run) for run in runs]}


def _file(service: Service, data: dict[str, Any]) -> Answer:
    """A kept run as a file; all but a single head's CSV hold the run's lens."""
    given = dict(data)
    run = service.store.run(given.pop("run", None))
    check_names("export", given, ("form", "site", "head", "stage"))
    csv = given.get("form") == "csv"
    return export(
        run if csv or run.config.head != "tokens" else service.queries.with_lens(run),
        **{"form": None, **given},
    )
