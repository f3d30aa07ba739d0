"""A lesson as one HTML file that needs neither a server nor a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformer.lessons.lesson import Lesson, Step
from transformer.lessons.markdown import Part
from transformer.lessons.quantities import Ground
from transformer.lessons.said import Said
from transformer.lessons.stored import stored
from transformer.messages import language, say
from transformer.runs.run import Run
from transformer.ui.experiments import Experiments
from transformer.ui.lessons import state_of
from transformer.ui.verify_lessons import shown_by
from transformer.views.export import lesson as lesson_page

Opened = tuple[Ground, dict[str, str]]


def lesson_file(lesson: Lesson, experiments: Experiments) -> str:
    """The page as text, in the language of this request.

    A step is shown with the run of its state and graded by numbers of that run; what needs the
    network, a training or several texts says so. Raises ValueError for a state that none can show.
    """
    title, *parts = lesson.in_language(language())
    runs: list[Run] = []
    steps = []
    opened: Opened | None = None
    for step, part in zip(lesson.steps, parts, strict=True):
        opened = _opened(experiments, step, opened)
        steps.append(_step(step, part, opened, runs))
        if isinstance(step.check, Said):  # the visitor makes another run, which nobody knows here
            opened = None
    seen = [experiments.with_lens(run) for run in runs]
    return lesson_page.page(title.title, steps, seen)


def _opened(experiments: Experiments, step: Step, before: Opened | None) -> Opened | None:
    """What the step shows; None: the file cannot."""
    if not step.state:
        return before
    fields = state_of(step.state)
    known = fields.get("tab", lesson_page.TABS[0]) in lesson_page.TABS and "lines" not in fields
    return (shown_by(experiments, fields), fields) if known else None


def _step(step: Step, part: Part, opened: Opened | None, runs: list[Run]) -> dict[str, Any]:
    check = stored(step.check, opened[0]) if step.check and opened else None
    words = {
        "title": part.title, "says": part.says, "task": part.task, "options": part.options,
        "hints": part.hints, "check": check, "run": None, "needs": "",
    }  # fmt: skip
    if opened is None or (step.check and not check):
        return words | {"needs": say("This step needs the page; this file cannot show it.")}
    ground, fields = opened
    if all(run is not ground.run for run in runs):
        runs.append(ground.run)
    place = next(at for at, run in enumerate(runs) if run is ground.run)
    return words | {"run": place, "shows": _shows(fields, ground.run)}


def _shows(fields: Mapping[str, str], run: Run) -> dict[str, Any]:
    """Of a state, what the file shows: {"tab", "site", "head", "stage", "token"}."""
    stack, _, token = fields.get("token", "").rpartition(".")
    return {
        "tab": fields.get("tab", lesson_page.TABS[0]),
        "site": fields.get("site") or str(run.trace.sites[0]),
        "head": int(fields.get("head", "0")),
        "stage": fields.get("stage", "weights"),
        "token": {"stack": stack or "own", "index": int(token)} if token.isdecimal() else None,
    }
