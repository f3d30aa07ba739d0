"""What the lesson's card asks the server: plain values in and out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from transformer.checks import check_choice, check_whole
from transformer.lessons import all_lessons
from transformer.lessons.checks import Check
from transformer.lessons.lesson import Lesson, Step
from transformer.lessons.markdown import Part
from transformer.lessons.quantities import Ground
from transformer.messages import invalid, language
from transformer.model.sites import Site
from transformer.runs.run import Run
from transformer.ui.experiments import Experiments
from transformer.ui.link import pairs_of, read_link
from transformer.ui.tour import as_link

Answer = dict[str, Any]
FROM_PAGE = ("site", "head", "stack", "token", "cell", "number", "option")


class Lessons:
    """The questions of the card, by name; each takes one dict."""

    def __init__(self, experiments: Experiments) -> None:
        self._experiments = experiments

    def lessons(self, data: Mapping[str, Any]) -> Answer:
        """The lessons whose models are served: name, title, minutes, and how many checks."""
        names = offered(self._experiments.service.models)
        return {"lessons": [_listed(all_lessons()[name]) for name in names]}

    def lesson(self, data: Mapping[str, Any]) -> Answer:
        """{"name"}: its steps, each with its words and its state."""
        lesson = _lesson(data.get("name"))
        title, *words = lesson.in_language(language())
        steps = [_step(step, part) for step, part in zip(lesson.steps, words, strict=True)]
        return {"name": lesson.name, "title": title.title, "steps": steps}

    def grade(self, data: Mapping[str, Any]) -> Answer:
        """{"name", "step", "run", "batch", "answer"}: whether it is right, and a sentence.

        answer: of the page's own state: site, head, token, cell; or a number, or an option.
        """
        check = _check(data)
        ground = self._ground(data)
        found = check.grade(ground, answer_of(data.get("answer"), check, ground.run))
        return {"right": found.right, "says": found.says}

    def solve(self, data: Mapping[str, Any]) -> Answer:
        """{"name", "step", "run", "batch"}: the answer, as the page would show it."""
        check, step = _check(data), _steps(data)
        if isinstance(step.solution, Mapping) and "learn" in step.solution:
            return {"state": {"tab": "learn"}}
        if step.solution:
            return {"state": state_of(step.solution)}
        found = check.right_answer(self._ground(data))
        if found is None:
            return {}
        if "query" in found:
            site = Site.parse(check.arguments["site"])  # type: ignore[attr-defined]
            cell = f"{found['query'] - first_row(self._ground(data).run, site)},{found['key']}"
            return {"state": {"site": str(site), "cell": cell}}
        if "number" in found or "option" in found:
            return dict(found)
        if "token" in found and check.stack != "own":  # type: ignore[attr-defined]
            return {"state": {"token": f"encoder.{found['token']}"}}
        return {"state": {name: str(value) for name, value in found.items()}}

    def _ground(self, data: Mapping[str, Any]) -> Ground:
        store = self._experiments.store
        batch = store.batch(data["batch"]) if data.get("batch") else None
        return Ground(run=store.run(data.get("run")), lab=self._experiments, batch=batch)


def offered(served: Mapping[str, Any]) -> list[str]:
    """The names of the lessons that these models, by name, can hold."""
    return [name for name, lesson in all_lessons().items() if _fits(lesson, served)]


def _listed(lesson: Lesson) -> dict[str, Any]:
    first = lesson.in_language(language())[0]
    return {
        "name": lesson.name, "title": first.title, "about": " ".join(first.says),
        "minutes": lesson.minutes, "checks": sum(step.check is not None for step in lesson.steps),
    }  # fmt: skip


def _fits(lesson: Lesson, served: Mapping[str, Any]) -> bool:
    return all(state_of(step.state).get("model", next(iter(served))) in served
               for step in lesson.steps)  # fmt: skip


def state_of(given: Mapping[str, Any] | str) -> dict[str, str]:
    """A step's state as a link's fields. Raises ValueError for one that no page could show."""
    text = given if isinstance(given, str) else None
    fields = pairs_of(text.removeprefix("#")) if text is not None else as_link(given)  # type: ignore[arg-type]
    if problems := read_link(urlencode(fields)).problems:
        raise ValueError(" ".join(problems))
    return fields


def _step(step: Step, words: Part) -> dict[str, Any]:
    check = step.check
    return {
        "title": words.title, "says": words.says, "task": words.task, "options": words.options,
        "hints": words.hints, "sight": step.sight, "state": state_of(step.state),
        "check": check.kind if check else "", "types": step.types,
    }  # fmt: skip


def _lesson(name: Any) -> Lesson:
    known = all_lessons()
    check_choice("lesson", name, known)
    return known[name]


def _steps(data: Mapping[str, Any]) -> Step:
    steps = _lesson(data.get("name")).steps
    return steps[check_whole("step", data.get("step"), 1, len(steps)) - 1]


def _check(data: Mapping[str, Any]) -> Check:
    check = _steps(data).check
    if check is None:
        raise invalid("this step asks nothing")
    return check


def answer_of(given: Any, check: Check, run: Run) -> dict[str, Any]:
    """What the page says, in the check's own words. Raises ValueError for anything else."""
    if not isinstance(given, Mapping) or set(given) - set(FROM_PAGE):
        raise invalid(
            "an answer must be an object with {allowed}; got {got}",
            allowed=", ".join(FROM_PAGE),
            got=repr(given)[:60],
        )
    answer = dict(given)
    if check.kind == "cell":
        site = str(check.arguments["site"])  # type: ignore[attr-defined]
        if answer.get("site") != site:
            raise invalid("this is about {site}; another place is shown", site=site)
        row, _, column = str(answer.get("cell", "")).partition(",")
        if not (row.isdecimal() and column.isdecimal() and len(row + column) < 12):
            raise invalid("click a cell of the picture")
        answer |= {"query": int(row) + first_row(run, Site.parse(site)), "key": int(column)}
    return answer


def first_row(run: Run, site: Site) -> int:
    """The token, counted in the whole text, that the first row of a place's attention is of."""
    own = site.stack == "decoder" or run.config.family == "encoder"
    return run.trace_start if own else 0
