"""The lessons' endpoints: list them, send a lesson's steps, grade an answer, show the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformer.checks import InvalidRequest, check_choice, check_whole, shortened
from transformer.lessons import all_lessons
from transformer.lessons.attention_measures import first_row
from transformer.lessons.checks import Check, Click
from transformer.lessons.lesson import Lesson, Part, Step
from transformer.lessons.measures import GradingContext
from transformer.messages import language
from transformer.runs.head_data import check_head
from transformer.runs.run import Run
from transformer.ui.examples import as_link
from transformer.ui.link import read_state
from transformer.ui.page_request import batch_of, run_of
from transformer.ui.service import Service

Answer = dict[str, Any]
FROM_PAGE = ("site", "head", "stack", "token", "cell", "number", "option")


def lessons(service: Service, data: Mapping[str, Any]) -> Answer:
    """The lessons whose models are served: name, title, minutes, and how many checks."""
    found = []
    for name in offered(service.models):
        one = all_lessons()[name]
        first = one.in_language(language())[0]
        found.append({
            "name": one.name, "title": first.title, "about": " ".join(first.says),
            "minutes": one.minutes, "checks": sum(step.check is not None for step in one.steps),
        })  # fmt: skip
    return {"lessons": found}


def lesson(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"name"}: its steps, each with its words and its state."""
    lesson = _lesson(data.get("name"))
    title, *words = lesson.in_language(language())
    steps = [
        _words(part) | {
            "state": state_of(step.state), "check": step.check.kind if step.check else "",
            "types": step.types,
        }
        for step, part in zip(lesson.steps, words, strict=True)
    ]  # fmt: skip
    return {"name": lesson.name, "title": title.title, "steps": steps}


def grade(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"name", "step", "run", "batch", "answer"}: whether it is right, and a sentence.

    answer: of the page's own state: site, head, token, cell; or a number, or an option.
    """
    check = _check(data)
    context = _context(service, data)
    found = check.grade(context, answer_of(data.get("answer"), check, context.run))
    return {"right": found.right, "says": found.says}


def solve(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"name", "step", "run", "batch"}: the answer, as the page would show it."""
    check, step = _check(data), _steps(data)
    if "learn" in step.solution:
        return {"state": {"tab": "learn"}}
    if step.solution:
        return {"state": state_of(step.solution)}
    context = _context(service, data)
    found = check.right_answer(context) or {}
    if not found or check.kind in ("number", "choose"):
        return dict(found)
    assert isinstance(check, Click)
    if check.kind == "cell":
        site = str(check.arguments["site"])
        row = found["query"] - first_row(context.run, site)
        return {"state": {"site": site, "cell": f"{row},{found['key']}"}}
    if check.kind == "token":
        return {"state": {"read": f"{check.stack}.{found['token']}".removeprefix("own.")}}
    return {"state": {name: str(value) for name, value in found.items()}}


def _context(service: Service, data: Mapping[str, Any]) -> GradingContext:
    store = service.store
    batch = store.batch(data["batch"]) if data.get("batch") else None
    return GradingContext(run=store.run(data.get("run")), models=service.queries, batch=batch)


def offered(served: Mapping[str, Any]) -> list[str]:
    """Names of the lessons whose models are all served."""
    first = next(iter(served))
    return [
        name
        for name, lesson in all_lessons().items()
        if all(state_of(step.state).get("model", first) in served for step in lesson.steps)
    ]


def state_of(given: Mapping[str, Any]) -> dict[str, str]:
    """A step's state as a link's fields. Raises ValueError for one that no page could show."""
    fields = as_link(given)
    if problems := read_state(fields).problems:
        raise ValueError(" ".join(problems))
    return fields


def _words(part: Part) -> dict[str, Any]:
    names = ("title", "says", "task", "options", "hints")
    return {name: getattr(part, name) for name in names}


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
        raise ValueError("this step asks nothing")
    return check


def answer_of(given: Any, check: Check, run: Run) -> dict[str, Any]:
    """Convert the page's answer to the check's arguments. Raises ValueError for anything else."""
    if not isinstance(given, Mapping) or set(given) - set(FROM_PAGE):
        raise ValueError(
            f"an answer must be an object with {', '.join(FROM_PAGE)}; got {shortened(given)}"
        )
    answer = dict(given)
    if check.kind == "cell":
        site = str(check.arguments["site"])
        if answer.get("site") != site:
            raise InvalidRequest(
                "other_attention", "this is about {site}; another place is shown", site=site
            )
        row, _, column = str(answer.get("cell", "")).partition(",")
        if not (row.isdecimal() and column.isdecimal() and len(row + column) < 12):
            raise InvalidRequest("no_cell", "click a cell of the picture")
        answer |= {"query": int(row) + first_row(run, site), "key": int(column)}
    return answer


def shown_by(service: Service, fields: Mapping[str, str]) -> GradingContext:
    """The run and the batch that a state of the page shows. Raises ValueError for a bad state."""
    state = read_state(fields)
    run, batch = run_of(service, state), batch_of(service, state)
    check_places(run, state.view)
    return GradingContext(run=run, models=service.queries, batch=batch)


def check_places(run: Run, view: Mapping[str, str]) -> None:
    """Raise ValueError for a head or a token that the run does not have."""
    site = view.get("site")
    if site is not None:
        check_head(int(view.get("head", "0")), run.trace[site].pattern.shape[1])
    token = view.get("read", "0")
    if token.isdecimal() and int(token) >= len(run.labels):
        raise ValueError(f"read must be at most {len(run.labels) - 1}; got {token}")
