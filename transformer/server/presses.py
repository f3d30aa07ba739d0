"""The work of the page's buttons, as HTTP requests: `POST runs`, `batches` and
`examples`.

Each answer is lines of JSON, sent as the work goes on. A line is an object with any of these:
"before" (how many requests are served first, while this one waits), "tokens" (the text as far as
it is written, or the finished run), "batch", "status", "running" (whether *Stop* has something to
stop), "example" (see `connect.example_page`). The last line of an answer that fails has "detail"
and "code" instead. Work whose client leaves is cancelled; `POST stop` ends it early and keeps what
there is.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from transformer.checks import check_names
from transformer.inference.deadline import current
from transformer.server import handlers
from transformer.server.connect import example_page
from transformer.server.errors import BUSY, public_error, reported
from transformer.server.page_request import OF_BATCH, run_settings
from transformer.server.request_guard import LINES, object_in
from transformer.server.service import Service
from transformer.server.sessions import caller
from transformer.server.slots import Place, Slots
from transformer.server.threads import begin

ALIVE_S = 10.0  # without a line, after which an empty one is sent
PLACE_S = 0.5  # between two lines that say a waiting request's place
AHEAD = 4  # lines of progress that a slow client has not read yet; further ones are left out
Update = dict[str, Any]
Work = Callable[[Mapping[str, Any]], Iterator[Update]]


def works(service: Service) -> dict[str, Work]:
    """The work of each route, by name: from a JSON object to lines. Raises ValueError for a mistake
    in the object itself."""

    def runs(data: Mapping[str, Any]) -> Iterator[Update]:
        chosen = run_settings(data)
        visitor = caller().session
        name, text = data.get("model", ""), data.get("text", "")
        for facts, status, running in handlers.generate(service, visitor, name, text, chosen):
            shown = {} if facts is None else {"tokens": facts}
            yield shown | {"status": status, "running": running}

    def batches(data: Mapping[str, Any]) -> Iterator[Update]:
        check_names("batches", data, OF_BATCH)
        visitor, hidden = caller().session, data.get("bare") is not True
        name, lines = data.get("model", ""), data.get("lines", "")
        facts, status = handlers.read_batch(service, visitor, name, lines, padding_hidden=hidden)
        yield ({} if facts is None else {"batch": facts}) | {"status": status}

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
    async def stop() -> Response:
        """Cancel a visitor's running request, which then answers with what it has."""
        service.sessions.stop(caller().session)
        return Response(status_code=204)


def _object(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name, {})
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object; got {type(value).__name__}")
    return value


def _press(slots: Slots, work: Work) -> Any:
    """A route that does this work for its JSON object once it may compute."""

    async def press(request: Request) -> Response:
        data = await object_in(request)
        place = slots.join(caller())
        return StreamingResponse(_lines(place, lambda: work(data)), media_type=LINES)

    return press


async def _lines(place: Place, work: Callable[[], Iterator[Update]]) -> AsyncIterator[str]:
    """The answer, line by line. The work is done in a thread with the request's context."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[Mapping[str, Any] | None]()

    def put(update: Mapping[str, Any] | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lines.put_nowait, update)

    def do() -> None:
        try:
            for update in work():
                if not update.get("running") or lines.qsize() < AHEAD:
                    put(update)
        except Exception as error:
            put(reported(error))
        finally:
            put(None)

    told, flag, ready = 0, current().flag, asyncio.wrap_future(place.ready)
    try:
        while not ready.done():
            if flag is not None and flag.is_set():
                return
            if (before := place.slots.before(place)) != told:
                yield written({"before": before})
                told = before
            await asyncio.wait([ready], timeout=PLACE_S)
        if ready.exception() is not None:
            yield written(public_error(BUSY))
            return
        begin(place, do)
        while True:
            try:
                update = await asyncio.wait_for(lines.get(), ALIVE_S)
            except TimeoutError:
                yield "\n"
                continue
            if update is None:
                return
            yield written(update)
    finally:
        if not place.has:
            place.leave()


def written(update: Mapping[str, Any]) -> str:
    """An update as a line."""
    return json.dumps(update, separators=(",", ":")) + "\n"
