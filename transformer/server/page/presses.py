"""The work of the page's buttons, as HTTP requests: `POST runs`, `batches` and
`examples`.

Each answer is lines of JSON, sent as the work goes on. A line is an object with any of these:
"before" (how many requests are served first, while this one waits), "tokens" (the text as far as
it is written, or the finished run), "batch", "status", "running" (whether *Stop* has something to
stop), "example" (see `example_page`). The last line of an answer that fails has "detail"
and "code" instead. Work whose client leaves is cancelled; `POST stop` ends it early and keeps what
there is.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from typing import Any

from fastapi import FastAPI, Response

from transformer.checks import check_names
from transformer.inference.deadline import Deadline, until
from transformer.messages import say, say_n
from transformer.runs.run import Run
from transformer.server.fields import NUMBERS, WORDS, settings_of
from transformer.server.http.errors import CLIENT_ERRORS, public_error, reported
from transformer.server.http.guard import LINES, Data
from transformer.server.http.requests import Job, Streamed, caller
from transformer.server.http.slots import Slots
from transformer.server.kept.page_models import controls_of, example_of, first_controls, is_offered
from transformer.server.kept.page_runs import (
    batch_facts,
    batch_of,
    example_facts,
    outcome,
    run_facts,
    running_facts,
)
from transformer.server.kept.service import Service

ALIVE_S = 10.0  # without a line, after which an empty one is sent
PLACE_S = 0.5  # between two lines that say a waiting request's place
SHOWN_EVERY_S = 0.05
MAX_UNREAD_LINES = 4  # of progress, by a slow client; further ones are left out
Update = dict[str, Any]
Work = Callable[[Mapping[str, Any]], Iterator[Update]]


def works(service: Service) -> dict[str, Work]:
    """The work of each route, by name: from a JSON object to lines. Raises ValueError for a mistake
    in the object itself."""

    def runs(data: Mapping[str, Any]) -> Iterator[Update]:
        try:
            settings = settings_of(data)
        except ValueError as error:
            yield {"status": problem(error), "running": False}
            return
        name, text = data.get("model", ""), data.get("text", "")
        yield from generate(service, caller().session, name, text, settings)

    def batches(data: Mapping[str, Any]) -> Iterator[Update]:
        yield read_batch(service, caller().session, data)

    def examples(data: Mapping[str, Any]) -> Iterator[Update]:
        check_names("examples", data, ("model", "typed"))
        typed = _object(data, "typed")
        check_names("typed", typed, ("text", "lines"))
        page = example_page(service, caller().session, data.get("model"), typed)
        yield {"example": page}

    return {work.__name__: work for work in (runs, batches, examples)}


def add_presses(app: FastAPI, service: Service) -> None:
    """Add the routes to the app of the page's own requests."""
    for name, work in works(service).items():
        app.add_api_route(f"/{name}", _press(service.shares["model"], work), methods=["POST"])

    @app.post("/stop", status_code=204)
    async def stop() -> None:
        """Cancel a visitor's running request, which then answers with what it has."""
        service.requests.stop(caller().session)


def _object(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name, {})
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object; got {type(value).__name__}")
    return value


def _press(slots: Slots, work: Work) -> Any:
    """A route that does this work for its JSON object once it may compute."""

    async def press(data: Data) -> Response:
        return Streamed(_lines(slots, lambda: work(data)), LINES)

    return press


async def _lines(slots: Slots, work: Callable[[], Iterator[Update]]) -> AsyncGenerator[str, None]:
    """The answer, line by line. The work is done in a thread with the request's context."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[Mapping[str, Any] | None]()

    def put(update: Mapping[str, Any] | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lines.put_nowait, update)

    def do() -> None:
        for update in work():
            if not update.get("running") or lines.qsize() < MAX_UNREAD_LINES:
                put(update)

    try:
        with Job(slots, do) as job:
            job.result.add_done_callback(lambda _: put(None))
            sent = 0
            while True:
                if (before := slots.before(job.place)) not in (0, sent):
                    yield written({"before": before})
                    sent = before
                try:
                    update = await asyncio.wait_for(lines.get(), PLACE_S if before else ALIVE_S)
                except TimeoutError:
                    if not before:
                        yield "\n"
                    continue
                if update is None:
                    break
                yield written(update)
            job.result.result()
    except Exception as error:
        yield written(reported(error))


def written(update: Mapping[str, Any]) -> str:
    """An update as a line."""
    return json.dumps(update, separators=(",", ":")) + "\n"


def generate(
    service: Service, visitor: str, name: str, text: str, settings: dict[str, Any]
) -> Iterator[Update]:
    """Yields "tokens", "status" and "running" as tokens come, then those of the run.

    An invalid request is a status, not an exception.
    """
    with service.requests.open(visitor) as deadline:

        def steps() -> Iterator[Update]:
            if not service.model(name, visitor).config.generates:
                yield _read(service, visitor, name, text)
            else:
                yield from _continue(service, visitor, deadline, name, text, settings)

        try:
            yield from service.budget.attempt_steps(steps)
        except CLIENT_ERRORS as error:
            yield {"status": problem(error), "running": False}


def _read(service: Service, visitor: str, name: str, text: str) -> Update:
    run = service.read(name, text)
    done = " ".join((say("It was read; nothing was generated."), *run.warnings))
    return _finished(service, visitor, run, done)


def _continue(
    service: Service,
    visitor: str,
    deadline: Deadline,
    name: str,
    text: str,
    settings: dict[str, Any],
) -> Iterator[Update]:
    """Show tokens that arrive close together at once: an update costs more than a token."""
    began = shown_at = time.monotonic()
    stream = service.stream(name, text, **settings)
    tokenizer = service.model(name).tokenizer
    ids = list(stream.prompt_ids)

    def progress(busy: str) -> Update:
        facts = running_facts(stream, ids, tokenizer)
        return {"tokens": facts, "status": said("busy", busy), "running": True}

    is_search = stream.request.beams > 1  # which has no steps before it is finished
    yield progress(say("Generating …"))
    for step in () if is_search else stream:
        ids.append(step.token)
        if deadline.is_over():
            break
        if time.monotonic() >= shown_at + SHOWN_EVERY_S:
            most, n = settings["max_new_tokens"], len(stream.steps)
            yield progress(say("Generating … {n} of {most}", n=n, most=most))
            shown_at = time.monotonic()
    deadline.is_over()  # a cancelled request may have ended the steps itself
    with until(deadline):
        if is_search:
            list(stream)
        run = service.finish(stream)
        done = outcome(run, time.monotonic() - began)
        if (joined := service.one_by_one(name, text, **settings)) is not None:
            alone = say("Translated one sentence at a time, as in training: {text}", text=joined)
            done = f"{done} {alone}"
    yield _finished(service, visitor, run, done)


def _finished(service: Service, visitor: str, run: Run, done: str) -> Update:
    """The last line of a run, which is kept."""
    facts = run_facts(run, service.store.put(run, visitor), service.model(run.model))
    return {"tokens": facts, "status": said("done", done), "running": False}


def read_batch(service: Service, visitor: str, request: Mapping[str, Any]) -> Update:
    """The "batch" and "status" for the lines that a visitor typed, read without the network's
    padding masks where "bare" is asked for; on an error the status alone."""
    padding_hidden = request.get("bare") is not True
    try:
        with service.requests.open(visitor) as deadline, until(deadline):
            batch = service.budget.attempt(lambda: batch_of(service, request))
    except CLIENT_ERRORS as error:
        return {"status": problem(error)}
    facts = batch_facts(batch, service.store.put(batch, visitor), padding_hidden=padding_hidden)
    count, length = batch.ids.shape
    done = say_n(
        "{n} sentence, padded to {length} each.",
        "{n} sentences, padded to {length} each.",
        count,
        length=say_n("{n} token", "{n} tokens", length),
    )
    if batch.target_ids is not None:
        done += " " + say(
            "Their translations are padded to {length}.",
            length=say_n("{n} token", "{n} tokens", batch.target_ids.shape[1]),
        )
    if not padding_hidden:
        done += " " + say("The batch was read without the padding mask.")
    return {"batch": facts, "status": said("done", done)}


def example_page(
    service: Service, visitor: str, wanted: Any, typed: Mapping[str, Any]
) -> dict[str, Any]:
    """A model's stored run and batch, with what the page's controls say of the model; the first
    model's where the one asked for cannot be had, which is among its problems.

    typed: what is in the page's boxes; "own": those of them that are the visitor's own texts.
    """
    name, problems = next(iter(service.models)), []
    try:
        name = service.model(name if wanted is None else wanted, visitor).name
    except ValueError as error:
        problems.append(public_error(error)["detail"])
    models = [*service.models.values(), *(own.model for own in service.own.of(visitor))]
    model, (run, batch) = service.model(name), example_facts(service, name)
    return {
        "run": run,
        "batch": batch,
        "first": first_controls(model),
        "temperature": NUMBERS["temperature"].first,  # of a method that samples
        "lengths": [
            example_of(model).settings["max_new_tokens"] for model in service.models.values()
        ],
        "own": {box: text for box, text in typed.items() if not is_offered(text, models)},
        "controls": controls_of(model, service.names(visitor)),
        "problems": problems,
    }


def problem(error: Exception) -> dict[str, Any]:
    """A status with an error's sentence in the page's language."""
    return said("error", public_error(error, WORDS)["detail"])


def said(kind: str, text: str) -> dict[str, Any]:
    """A status: kind "busy", "done" or "error"."""
    return {"kind": kind, "text": text}
