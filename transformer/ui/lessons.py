"""Lessons as the page holds them: what their card asks the server, and a lesson as one HTML file
that needs neither a server nor a network.

In the file a check is its verdicts, what it says of every answer. An answer is written as the page
gives it, its values with spaces between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from transformer.checks import InvalidRequest, check_choice, check_whole, shortened
from transformer.lessons import all_lessons
from transformer.lessons.attention_measures import OF_A_BATCH, first_row
from transformer.lessons.checks import Check, Choose, Click, Number
from transformer.lessons.lesson import Lesson, Part, Step
from transformer.lessons.measures import GradingContext
from transformer.lessons.output_check import OutputCheck
from transformer.messages import language, say, say_error
from transformer.runs.head_data import check_head
from transformer.runs.run import Run
from transformer.ui.examples import as_link
from transformer.ui.link import pairs_of, read_state
from transformer.ui.page_request import batch_of, run_of
from transformer.ui.service import Service
from transformer.views.export import html as pages

Answer = dict[str, Any]
Opened = tuple[GradingContext, dict[str, str]]
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
    context = _context(service, data)
    found = check.right_answer(context) or {}
    if not found or check.kind in ("number", "choose"):
        return dict(found)
    shown = _shown(check, context, found)
    if check.kind == "cell":
        return {"state": {"site": shown["site"], "cell": f"{shown['row']},{shown['key']}"}}
    if check.kind == "token":
        return {"state": {"read": f"{shown['stack']}.{shown['token']}".removeprefix("own.")}}
    return {"state": {name: str(one) for name, one in shown.items()}}


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
        raise ValueError("this step asks nothing")
    return check


def answer_of(given: Any, check: Check, run: Run) -> dict[str, Any]:
    """What the page says, in the check's own words. Raises ValueError for anything else."""
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
        raise ValueError(f"read must be at most {len(run.labels) - 1}; got {token}")


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
    stack, _, token = fields.get("read", "").rpartition(".")
    shows = {
        "tab": fields.get("tab", pages.LESSON_TABS[0]),
        "site": fields.get("site") or str(context.run.trace.sites[0]),
        "head": int(fields.get("head", "0")),
        "stage": fields.get("stage", "weights"),
        "token": {"stack": stack or "own", "index": int(token)} if token.isdecimal() else None,
    }
    return words | {"run": place, "shows": shows}


Told = tuple[bool | None, str]  # None: it cannot be graded, and why


def stored(check: Check, context: GradingContext) -> dict[str, Any] | None:
    """{"kind", "answer"}, and of a number {"value", "tolerance", "says"}, else {"verdicts", "says",
    "elsewhere"}; None where only the network can grade, or where it is about a batch.

    verdicts: by answer, whether it is right, and which of `says` is said of it. elsewhere: the
    verdict on every other answer. answer: the one that is shown in the end.
    """
    if not isinstance(check, Click | Number | Choose) or check.of in OF_A_BATCH:
        return None
    found = {
        "kind": check.kind,
        "answer": _shown(check, context, check.right_answer(context) or {}),
    }
    if isinstance(check, Number):
        number, _ = check.answers(context)
        return found | {
            "value": number["number"], "tolerance": check.tolerance,
            "says": check.grade(context, number).says,
        }  # fmt: skip
    verdicts, says = {}, dict[str, int]()
    right: bool | None
    for answer in _answers(check, context):
        try:
            graded = check.grade(context, answer)
            right, told = graded.right, graded.says
        except ValueError as error:
            right, told = None, say_error(error)
        shown = _shown(check, context, answer)
        verdicts[" ".join(map(str, shown.values()))] = [right, says.setdefault(told, len(says))]
    elsewhere: Told = (False, say("This token is of the other text."))
    if check.kind == "cell":
        site = check.arguments["site"]
        elsewhere = None, say("this is about {site}; another place is shown", site=site)
    return found | {"verdicts": verdicts, "says": list(says), "elsewhere": elsewhere}


def _answers(check: Click | Choose, context: GradingContext) -> Iterator[Mapping[str, Any]]:
    """All that can be given, those too that have no number."""
    if check.kind == "head":
        for site in context.run.trace.sites:
            n_heads = context.run.trace[site].pattern.shape[1]
            yield from ({"site": str(site), "head": head} for head in range(n_heads))
    elif isinstance(check, Click) and check.kind == "token":
        of_keys = max(one["token"] for one in check.answers(context)) + 1
        n_tokens = of_keys if "key" in check.free else len(context.run.labels)
        yield from ({"token": token} for token in range(n_tokens))
    else:
        yield from check.answers(context)


def _shown(check: Check, context: GradingContext, answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer as the page gives it; empty: none."""
    if not answer:
        return {}
    if isinstance(check, Click) and check.kind == "cell":
        site = str(check.arguments["site"])
        row = answer["query"] - first_row(context.run, site)
        return {"site": site, "row": row, "key": answer["key"]}
    if isinstance(check, Click) and check.kind == "token":
        return {"stack": check.stack, "token": answer["token"]}
    if "number" in answer:
        return {"number": round(answer["number"], 2)}
    return dict(answer)
