"""Lessons as the page holds them: what their card asks the server, and a lesson as one HTML file
that needs neither a server nor a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformer.checks import check_choice, check_whole
from transformer.lessons import all_lessons
from transformer.lessons.attention_measures import first_row
from transformer.lessons.checks import Check
from transformer.lessons.lesson import Lesson, Part, Step
from transformer.lessons.measures import GradingContext
from transformer.lessons.output_check import OutputCheck
from transformer.lessons.stored import stored
from transformer.messages import invalid, language, say
from transformer.runs.head_data import check_head
from transformer.runs.run import Run
from transformer.ui.link import pairs_of, read_state
from transformer.ui.page_request import batch_of, run_of
from transformer.ui.service import Service
from transformer.ui.tour import as_link
from transformer.views.export import html as pages

Answer = dict[str, Any]
Opened = tuple[GradingContext, dict[str, str]]
_FIELDS = {"token": "read"}  # of an answer, as a state of the page has it
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
    if isinstance(step.solution, Mapping) and "learn" in step.solution:
        return {"state": {"tab": "learn"}}
    if step.solution:
        return {"state": state_of(step.solution)}
    found = check.right_answer(_context(service, data))
    if found is None:
        return {}
    if "query" in found:
        site = str(check.arguments["site"])
        cell = f"{found['query'] - first_row(_context(service, data).run, site)},{found['key']}"
        return {"state": {"site": site, "cell": cell}}
    if "number" in found or "option" in found:
        return dict(found)
    if "token" in found and check.stack != "own":
        return {"state": {"read": f"encoder.{found['token']}"}}
    return {"state": {_FIELDS.get(name, name): str(one) for name, one in found.items()}}


def _context(service: Service, data: Mapping[str, Any]) -> GradingContext:
    store = service.store
    batch = store.batch(data["batch"]) if data.get("batch") else None
    return GradingContext(run=store.run(data.get("run")), models=service.queries, batch=batch)


def offered(served: Mapping[str, Any]) -> list[str]:
    """The names of the lessons that these models, by name, can hold."""
    first = next(iter(served))
    return [
        name
        for name, lesson in all_lessons().items()
        if all(state_of(step.state).get("model", first) in served for step in lesson.steps)
    ]


def state_of(given: Mapping[str, Any] | str) -> dict[str, str]:
    """A step's state as a link's fields. Raises ValueError for one that no page could show."""
    text = given if isinstance(given, str) else None
    fields = pairs_of(text.removeprefix("#")) if text is not None else as_link(given)  # type: ignore[arg-type]
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
        site = str(check.arguments["site"])
        if answer.get("site") != site:
            raise invalid("this is about {site}; another place is shown", site=site)
        row, _, column = str(answer.get("cell", "")).partition(",")
        if not (row.isdecimal() and column.isdecimal() and len(row + column) < 12):
            raise invalid("click a cell of the picture")
        answer |= {"query": int(row) + first_row(run, site), "key": int(column)}
    return answer


def shown_by(service: Service, fields: Mapping[str, str]) -> GradingContext:
    """The run and the batch that a state of the page shows. Raises ValueError for none."""
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
        last = len(run.labels) - 1
        raise invalid("read must be at most {last}; got {got}", last=last, got=token)


def lesson_file(lesson: Lesson, service: Service) -> str:
    """The page as text, in the language of this request.

    A step is shown with the run of its state and graded by numbers of that run; what needs the
    network, a training or several texts says so. Raises ValueError for a state that none can show.
    """
    title, *parts = lesson.in_language(language())
    runs: list[Run] = []
    steps = []
    opened: Opened | None = None
    for step, part in zip(lesson.steps, parts, strict=True):
        opened = _opened(service, step, opened)
        steps.append(_file_step(step, part, opened, runs))
        if isinstance(step.check, OutputCheck):  # the visitor makes another run, unknown here
            opened = None
    seen = [service.queries.with_lens(run) for run in runs]
    return pages.lesson(title.title, steps, seen)


def _opened(service: Service, step: Step, before: Opened | None) -> Opened | None:
    """What the step shows; None: the file cannot."""
    if not step.state:
        return before
    fields = state_of(step.state)
    known = fields.get("tab", pages.LESSON_TABS[0]) in pages.LESSON_TABS and "lines" not in fields
    return (shown_by(service, fields), fields) if known else None


def _file_step(step: Step, part: Part, opened: Opened | None, runs: list[Run]) -> dict[str, Any]:
    check = stored(step.check, opened[0]) if step.check and opened else None
    words = _words(part) | {"check": check, "run": None, "needs": ""}
    if opened is None or (step.check and not check):
        return words | {"needs": say("This step needs the page; this file cannot show it.")}
    context, fields = opened
    if all(run is not context.run for run in runs):
        runs.append(context.run)
    place = next(at for at, run in enumerate(runs) if run is context.run)
    return words | {"run": place, "shows": _shows(fields, context.run)}


def _shows(fields: Mapping[str, str], run: Run) -> dict[str, Any]:
    """Of a state, what the file shows: {"tab", "site", "head", "stage", "token"}."""
    stack, _, token = fields.get("read", "").rpartition(".")
    return {
        "tab": fields.get("tab", pages.LESSON_TABS[0]),
        "site": fields.get("site") or str(run.trace.sites[0]),
        "head": int(fields.get("head", "0")),
        "stage": fields.get("stage", "weights"),
        "token": {"stack": stack or "own", "index": int(token)} if token.isdecimal() else None,
    }
