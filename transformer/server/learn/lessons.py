"""The lessons' endpoints: list them, send a lesson's steps, grade an answer, show the answer; and
the teacher's page of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from starlette.responses import HTMLResponse, JSONResponse, Response

from transformer.checks import InvalidRequest, check_choice, check_names, check_whole, shortened
from transformer.lessons import all_lessons
from transformer.lessons.checks import Check
from transformer.lessons.lesson import Lesson, Step, nearest
from transformer.lessons.measures import GradingContext, first_row
from transformer.lessons.teacher import teacher_page
from transformer.messages import language
from transformer.runs.head_data import check_head
from transformer.runs.run import Run
from transformer.server.fields import REQUEST, view_fields
from transformer.server.http.errors import public_error
from transformer.server.kept.page_runs import run_of
from transformer.server.kept.service import Service
from transformer.server.learn.learning import RECORDED, adopt
from transformer.views.declaration import Answer

FROM_PAGE = ("site", "head", "stack", "token", "cell", "number", "option")


def lessons(service: Service, data: Mapping[str, Any]) -> Answer:
    """The lessons whose models are served: name, title, minutes, and how many checks."""
    about = [
        {
            "name": each.name, "title": each.title, "about": each.about, "minutes": each.minutes,
            "checks": sum(step.check is not None for step in each.steps),
        }
        for each in map(lesson_of, offered(service.models))
    ]  # fmt: skip
    return {"lessons": about}


def lesson(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"name"}: its steps, each with its words and its state."""
    lesson = lesson_of(data.get("name"))
    steps = [
        step.texts | {
            "state": step.state, "check": step.check.kind if step.check else "",
            "types": step.types, "guessed": step.guessed - 1, "ordered": {
                "guesses": step.ordered, "options": bool(step.check and step.check.is_ordered),
            },
        }
        for step in lesson.steps
    ]  # fmt: skip
    return {"name": lesson.name, "title": lesson.title, "steps": steps}


def grade(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"name", "step", "run", "answer"}: whether it is right, and a sentence.

    answer: of the page's own state: site, head, token, cell; or a number, or an option.
    """
    _, check = _asked(data)
    context = context_of(service, data)
    result = check.grade(context, answer_of(data.get("answer"), check, context.run))
    return {"right": result.right, "says": result.says}


def solve(service: Service, data: Mapping[str, Any]) -> Answer:
    """{"name", "step", "run"}: the answer, as the page would show it. trains: once it
    shows a plan, the page trains it; the network is opened, and graded, by the visitor."""
    step, check = _asked(data)
    if task := step.solution.get("learn"):
        opened = adopt(service, {"id": f"{RECORDED}{task}", "at": None})
        rest = {name: value for name, value in step.solution.items() if name != "learn"}
        network = {name: opened[name] for name in ("model", "max_new_tokens")}
        return {"state": {"tab": "attention", **network, **rest}}
    if plan := step.solution.get("train"):
        fields = {f"learn.{name}": value for name, value in plan.items()}
        return {"state": {"tab": "learn", **fields}, "trains": True}
    if step.solution:
        return {"state": step.solution}
    context = context_of(service, data)
    right = check.right_answer(context) or {}
    if not right or check.kind in ("number", "choose"):
        return dict(right)
    if check.kind == "cell":
        site = str(check.arguments["site"])
        row = right["query"] - first_row(context.run, site)
        return {"state": {"site": site, "cell": f"{row},{right['key']}"}}
    if check.kind == "token":
        return {"state": {"read": f"{check.stack}.{right['token']}".removeprefix("own.")}}
    return {"state": right}


def teacher_routes(service: Service) -> APIRouter:
    """The teacher's page of each lesson, at /lessons/NAME/teacher."""
    router = APIRouter()

    async def page(name: str) -> Response:
        try:
            check_choice("lesson", name, offered(service.models))
        except InvalidRequest as error:
            return JSONResponse(public_error(error), 404)
        return HTMLResponse(teacher_page(all_lessons()[name], "../../"))

    router.add_api_route("/lessons/{name}/teacher", page, methods=["GET", "HEAD"])
    return router


def context_of(service: Service, data: Mapping[str, Any]) -> GradingContext:
    """The run that the page shows, by its id in "run"."""
    return GradingContext(run=service.store.run(data.get("run")), models=service.queries)


def offered(served: Mapping[str, Any]) -> list[str]:
    """Names of the lessons whose models are all served."""
    first = next(iter(served))
    return [
        name
        for name in all_lessons()
        if all(step.state.get("model", first) in served for step in lesson_of(name).steps)
    ]


def lesson_of(name: Any) -> Lesson:
    """The lesson of a name in this request's language. Raises ValueError for an unknown one."""
    every = all_lessons()
    check_choice("lesson", name, every)
    return nearest(every[name], language())


def step_of(lesson: Any, number: Any) -> Step:
    """A step of a lesson, from 1. Raises ValueError for an unknown one."""
    steps = lesson_of(lesson).steps
    return steps[check_whole("step", number, 1, len(steps)) - 1]


def _asked(data: Mapping[str, Any]) -> tuple[Step, Check]:
    step = step_of(data.get("name"), data.get("step"))
    if step.check is None:
        raise ValueError("this step asks nothing")
    return step, step.check


def answer_of(values: Any, check: Check, run: Run) -> dict[str, Any]:
    """Convert the page's answer to the check's arguments. Raises ValueError for anything else."""
    if not isinstance(values, Mapping) or set(values) - set(FROM_PAGE):
        raise ValueError(
            f"an answer must be an object with {', '.join(FROM_PAGE)}; got {shortened(values)}"
        )
    answer = dict(values)
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


def shown_by(service: Service, state: Mapping[str, Any]) -> GradingContext:
    """The run that a state of the page shows. Raises ValueError for a bad state."""
    check_names("a state", state, {*REQUEST, "lines", "bare", *view_fields()})
    run = run_of(service, {name: state[name] for name in REQUEST if name in state})
    check_places(run, state)
    return GradingContext(run=run, models=service.queries)


def check_places(run: Run, state: Mapping[str, Any]) -> None:
    """Raise ValueError for a head or a token that the run does not have."""
    site = state.get("site")
    if site is not None:
        check_head(state.get("head", 0), run.trace[site].pattern.shape[1])
    token = state.get("read", 0)
    if isinstance(token, int) and token >= len(run.labels):
        raise ValueError(f"read must be at most {len(run.labels) - 1}; got {token}")
