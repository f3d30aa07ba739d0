"""The routes of a class: of its teacher's page, and of the phones' page.

No route of the phones takes a thread or a place in a line: they are many, and wait for long.
"""

from __future__ import annotations

import asyncio
import html
import random
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Response
from starlette.responses import HTMLResponse

from transformer.checks import InvalidRequest, check_choice, check_names, is_whole, shortened
from transformer.inference.deadline import current
from transformer.lessons.checks import Check
from transformer.lessons.lesson import Step
from transformer.lessons.measures import GradingContext
from transformer.lessons.output_check import written
from transformer.messages import catalogue, language, say, say_error
from transformer.server.classroom.classes import (
    GUESS,
    MAX_TEXT,
    TASK,
    Class,
    Classes,
    Poll,
    PollAnswer,
    Tried,
)
from transformer.server.http.errors import Refused
from transformer.server.http.guard import Data
from transformer.server.http.limits import MAX_PHONES_WAITING
from transformer.server.kept.service import Service
from transformer.server.learn.lessons import context_of, shown_by, step_of
from transformer.server.page.modules import MODULES, PHONE, in_language
from transformer.server.page.pages import HOLE
from transformer.server.page.resources import Question
from transformer.views.export.bundle import read_style

SHOWN = "shown"
PHASES = (GUESS, TASK, SHOWN)  # of a step
WAIT_S = 25.0  # that a phone waits for news; proxies close what is silent for a minute
LOOK_S = (0.3, 0.8)  # between two looks for news, at random: not all phones at once
PAGE = Path(__file__).parents[1] / "static" / "phone.html"
DARK = "@media (prefers-color-scheme: dark) {\n:root"


# ---- the teacher ----


def step_shower(service: Service, classes: Classes) -> Question:
    """What the teacher's page asks as it shows a step, and as the step goes on.

    {"code", "key", "name", "step", "phase", "order", "run"}: the step of the lesson "name"
    in a phase: GUESS or TASK, which its phones answer, or SHOWN, with the right answer on this run.
    order: the options as the page shows them. {"code", "key"}: no step. Raises Refused.
    """

    def show_step(data: Mapping[str, Any]) -> dict[str, Any]:
        allowed = ("code", "key", "name", "step", "phase", "order", "run")
        check_names("show_step", data, allowed)
        class_ = classes.owned(data.get("code"), data.get("key"))
        if "name" not in data:
            class_.show(None)
            return {}
        phase = data.get("phase")
        check_choice("phase", phase, PHASES)
        step = step_of(data["name"], data.get("step"))
        asks = TASK if phase == TASK or (phase == SHOWN and step.check) else GUESS
        context = context_of(service, data) if asks == TASK and step.check else None
        task = _task(step.check, step, context) if step.check and context else {}
        if asks == GUESS and step.guesses:
            task = {"kind": "options", "order": range(len(step.guesses))}
        poll = Poll(lesson=data["name"], step=data["step"], asks=asks, **{"kind": "", **task})
        poll = class_.asked(poll)
        if sorted(order := order_of(data)) == list(range(len(poll.order))):
            poll.order = order
        poll.is_over, poll.right, poll.best = phase == SHOWN, None, None
        if poll.is_over and asks == GUESS and step.guessed:
            poll.right, poll.best = frozenset({step.guessed - 1}), step.guessed - 1
        elif poll.is_over and poll.kind not in ("", "text") and step.check and context:
            _grade(poll, step.check, context)
        class_.show(poll)
        return {}

    return show_step


def order_of(data: Mapping[str, Any]) -> list[int]:
    """The places of the options, as the page shows them; [] for none. Raises ValueError."""
    order = data.get("order") or []
    if not isinstance(order, list) or not all(map(is_whole, order)):
        raise ValueError(f"order must be a list of whole numbers; got {shortened(order)}")
    return order


def text_taker(service: Service, classes: Classes) -> Question:
    """What a phone asks with a text of its own, which the step's check grades on its own run.

    {"code", "phone", "name", "text"}: as `answer` of `class_routes`. Raises ValueError.
    """

    def class_text(data: Mapping[str, Any]) -> dict[str, Any]:
        check_names("class_text", data, ("code", "phone", "name", "text"))
        class_ = classes.find(data.get("code"))
        phone, poll = class_.join(data.get("phone")), class_.poll
        if poll and poll.kind == "text" and not poll.is_over and data.get("name") == poll.name:
            poll.tried[phone] = _tried(service, step_of(poll.lesson, poll.step), data.get("text"))
        return _to_phone(class_, phone)

    return class_text


def _tried(service: Service, step: Step, text: Any) -> Tried:
    if isinstance(text, str) and len(text) > MAX_TEXT:
        raise InvalidRequest(
            "long_text",
            "A text sent from a phone may have at most {most} characters.",
            most=MAX_TEXT,
        )
    assert step.check is not None
    context = shown_by(service, {**step.state, **step.solution, "text": text})
    output = written(context).strip()
    try:
        right, says = step.check.grade(context, {})
    except Refused:  # the server is busy: the phone asks again
        raise
    except InvalidRequest as error:  # a text that cannot be measured
        right, says = False, say_error(error)
    return Tried(text=str(text), said=output, says=says, right=right)


def _task(check: Check, step: Step, context: GradingContext) -> dict[str, Any]:
    """The task of a step as fields of a poll; {} where the answer is a run or a cell."""
    if check.kind == "number":
        return {"kind": "number"}
    if step.phones:
        return {"kind": "text"}
    labels, look = tuple[str, ...](), "list"
    if check.kind == "token":
        run, look = context.run, "tokens"
        labels = run.source_labels if check.stack == "encoder" else run.labels
    elif check.kind == "head":
        heads, look = check.answers(context), "heads"
        labels = tuple(f"{head['site'].split('.')[1]}·{head['head']}" for head in heads)
    if order := range(len(labels) or len(step.options)):
        return {
            "kind": "options", "order": order, "look": look, "labels": labels, "stack": check.stack,
        }  # fmt: skip
    return {}


def _grade(poll: Poll, check: Check, context: GradingContext) -> None:
    """Say which of the answers are right on this run."""
    heads = check.answers(context) if check.kind == "head" else ()
    right = check.right_answer(context) or {}
    name, best = next(iter(right.items()))  # a "number", an "option" or a "token"
    poll.best = heads.index(right) if heads else round(best, 2)

    def is_right(answer: PollAnswer) -> bool:
        try:
            return check.grade(context, heads[int(answer)] if heads else {name: answer}).right
        except ValueError:  # a token that cannot be measured
            return False

    poll.right = frozenset(
        {answer for answer in {*poll.answers.values()} if is_right(answer)} | {poll.best}
    )


# ---- what is shown ----


def _described(class_: Class, poll: Poll | None) -> dict[str, Any]:
    """A poll of this class in the language of this request."""
    if poll is None:
        return {"rev": class_.rev, "name": ""}
    step, is_guess = step_of(poll.lesson, poll.step), poll.asks == GUESS
    texts = poll.labels or (step.guesses if is_guess else step.options)
    return {
        "rev": class_.rev, "name": poll.name, "title": step.title, "look": poll.look,
        "question": (step.guess if is_guess else step.task) if poll.kind else "",
        "stack": poll.stack, "kind": poll.kind, "over": poll.is_over, "best": poll.best,
        "options": [{"at": at, "text": texts[at]} for at in poll.order],
    }  # fmt: skip


def _guesses(class_: Class, poll: Poll) -> Mapping[str, PollAnswer]:
    """The guesses at the step of a poll, by phone."""
    earlier = class_.polls.get(f"{poll.lesson}.{poll.step}.{GUESS}")
    return earlier.answers if earlier else {}


def _to_phone(class_: Class, phone: str) -> dict[str, Any]:
    facts, poll = _described(class_, class_.poll), class_.poll
    if poll is None:
        return facts
    answer = poll.answers.get(phone)
    right = None if answer is None or poll.right is None else answer in poll.right
    step, tried = step_of(poll.lesson, poll.step), poll.tried.get(phone)
    facts |= {"answer": answer, "right": right, "explains": step.explains if poll.is_over else []}
    if poll.kind == "text":
        facts |= {"text": tried.text if tried else step.state.get("text", "")}
        facts |= {"says": tried.says, "right": tried.right} if tried else {}
    if poll.is_over and poll.asks == TASK and step.guessed:
        guess = _guesses(class_, poll).get(phone)
        best = step.guesses[step.guessed - 1]
        facts["guessed"] = {
            "text": best,
            "right": None if guess is None else guess == step.guessed - 1,
        }
    return facts


def _to_teacher(class_: Class) -> dict[str, Any]:
    poll = class_.poll
    facts: dict[str, Any] = {"phones": class_.n_phones()}
    if poll is None:
        return _described(class_, poll) | facts | {"counts": [], "right": None, "answered": 0}
    step, guesses, is_over = step_of(poll.lesson, poll.step), _guesses(class_, poll), poll.is_over
    right = sorted(poll.right) if poll.right is not None else None
    if is_over and step.guessed and poll.asks == TASK:
        n_right = sum(guess == step.guessed - 1 for guess in guesses.values())
        facts["guessed"] = {
            "right": n_right, "all": len(guesses), "text": step.guesses[step.guessed - 1],
        }  # fmt: skip
    if not poll.kind:  # a step that asks for a run: the guess stays in sight
        poll = class_.polls.get(f"{poll.lesson}.{poll.step}.{GUESS}", poll)
        right = [step.guessed - 1] if is_over and step.guessed and poll.kind else None
    counts = sorted(Counter(poll.answers.values()).items())
    texts = [{"text": o.text, "said": o.said, "right": o.right} for o in poll.tried.values()]
    facts |= {"counts": counts, "right": right, "texts": texts}
    return _described(class_, poll) | facts | {"answered": len(poll.answers) + len(texts)}


# ---- the routes ----


def class_routes(classes: Classes) -> APIRouter:
    """The requests of classes: open, tally and end for the teacher, who holds the key; asked and
    answer for a phone, which names itself by a secret."""
    router = APIRouter()

    def taught(data: Mapping[str, Any]) -> Class:
        check_names("a class", data, ("code", "key"))
        return classes.owned(data.get("code"), data.get("key"))

    @router.post("/open")
    async def open_class() -> dict[str, Any]:
        class_ = classes.open()
        return {"code": class_.code, "key": class_.key}

    @router.post("/tally")
    async def tally(data: Data) -> dict[str, Any]:
        return _to_teacher(taught(data))

    @router.post("/end")
    async def end(data: Data) -> dict[str, Any]:
        classes.end(taught(data))
        return {}

    @router.post("/asked")
    async def asked(data: Data, response: Response) -> dict[str, Any]:
        """{"code", "phone", "seen"}: what is asked now, once it is another than what was seen."""
        deadline = current()
        check_names("asked", data, ("code", "phone", "seen"))
        class_ = classes.find(data.get("code"))
        phone = class_.join(data.get("phone"))
        has_room = classes.n_waiting < MAX_PHONES_WAITING
        give_up = time.monotonic() + (WAIT_S if has_room else 0)
        classes.n_waiting += 1
        try:
            while (
                class_.rev == data.get("seen") and not class_.is_over and time.monotonic() < give_up
            ):
                if not deadline.is_wanted():  # it has left
                    break
                await asyncio.sleep(random.uniform(*LOOK_S))
        finally:
            classes.n_waiting -= 1
        if not has_room:  # for another phone
            response.headers["connection"] = "close"
        return _to_phone(classes.find(class_.code), phone)

    @router.post("/answer")
    async def answer(data: Data) -> dict[str, Any]:
        """{"code", "phone", "name", "answer"}: count it, if that is still asked."""
        check_names("answer", data, ("code", "phone", "name", "answer"))
        class_ = classes.find(data.get("code"))
        phone = class_.join(data.get("phone"))
        poll = class_.poll
        if poll and not poll.is_over and data.get("name") == poll.name:
            poll.answers[phone] = poll.check(data.get("answer"))
        return _to_phone(class_, phone)

    return router


def phone_routes(classes: Classes) -> APIRouter:
    """The page of the phones, at /class/CODE."""
    router = APIRouter()
    theme = read_style("web/theme.css").replace(".dark", DARK) + "}"

    async def page(code: str) -> Response:
        status, code = 200, code.upper()
        try:
            classes.find(code)
            script = in_language(MODULES.address(PHONE), language())
            body = f'<script type="module" src="{script}"></script>'
        except Refused as refused:
            status, body = refused.status, f"<h1>{html.escape(say(refused.sentence))}</h1>"
        words = {
            "tag": catalogue(language()).tag, "title": html.escape(say("Class {code}", code=code)),
            "code": html.escape(code), "theme": theme, "body": body,
        }  # fmt: skip
        text = HOLE.sub(lambda hole: words[hole[1]], PAGE.read_text("utf-8"))
        return HTMLResponse(text, status, {"cache-control": "no-store"})

    router.add_api_route("/class/{code}", page, methods=["GET", "HEAD"])
    return router
