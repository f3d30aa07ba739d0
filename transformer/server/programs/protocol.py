"""Gradio's HTTP API, by which programs call the endpoints: what gradio_client and curl send.

A call is posted (`call/NAME`, `call/v2/NAME` or `queue/join`) and answered on a stream of
server-sent events (`call/NAME/EVENT` or `queue/data`). It is computed while that stream is read:
nothing is computed for a client that has left, and few answers wait until they are read. Calls
wait in the same lines as what the page asks. Source: Gradio 6.31, protocol "sse_v3"; departure: an
endpoint gives one result, so there are no messages of progress.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import secrets
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from transformer.checks import check_names, shortened
from transformer.inference.deadline import renewed
from transformer.server.http.errors import (
    CLOSED,
    ENDING,
    NO_EVENT,
    NO_HASH,
    YOURS_WAIT,
    Busy,
    Refused,
    public_error,
    reported,
)
from transformer.server.http.guard import Data
from transformer.server.http.limits import MAX_CALLS, MAX_HASH, MAX_UNREAD_ANSWERS
from transformer.server.http.requests import Streamed, set_caller
from transformer.server.kept.service import Service
from transformer.server.kept.store import CALLS
from transformer.server.programs.api import Endpoint

FIRST_DONE, EVENTS = asyncio.FIRST_COMPLETED, "text/event-stream"
ALIVE_S = 10.0  # a heartbeat is sent after so long without another message
Message = dict[str, Any]


@dataclass(eq=False, kw_only=True)
class Call:
    """A posted call. session: the visitor's name; n_bytes: of its inputs."""

    endpoint: Endpoint
    inputs: list[Any]
    session: str
    n_bytes: int
    event: str = field(default_factory=lambda: secrets.token_hex(16))
    cancelled: threading.Event = field(default_factory=threading.Event)
    task: asyncio.Task[Message] | None = None

    @property
    def is_done(self) -> bool:
        """Whether it has been computed, or has failed."""
        return self.task is not None and self.task.done()

    def cancel(self) -> None:
        """End it, whether it waits for its turn or runs."""
        self.cancelled.set()
        if self.task is not None:
            self.task.cancel()


class Programs:
    """The posted calls of all programs, by the stream on which they are to be answered: a session,
    or a call's own event. numbers: the endpoints' names by Gradio's numbers of functions."""

    def __init__(
        self, service: Service, endpoints: Mapping[str, Endpoint], numbers: Mapping[int, str]
    ) -> None:
        self._service, self.endpoints, self.numbers = service, endpoints, numbers
        self._open: dict[str, asyncio.Event] = {}  # streams that are read; set for a new call
        self._running: dict[str, Call] = {}
        self._ending = False

    def end(self) -> None:
        """Answer every open call with an error: the server is shutting down."""
        self._ending = True
        for arrived in self._open.values():
            arrived.set()

    def counts(self) -> dict[str, int]:
        """The number of open streams, and of calls that are computed or not yet sent."""
        return {"streams": len(self._open), "calls": len(self._running)}

    def call_of(self, name: str, inputs: Any, session: Any, n_bytes: int) -> Call:
        """A call with these inputs, to be posted. Raises Refused or ValueError for a wrong one."""
        endpoint = self.endpoints.get(name)
        if endpoint is None:
            raise Refused(404, CLOSED)
        parameters = inspect.signature(endpoint.function).parameters.values()
        least, most = (
            sum(parameter.default is parameter.empty for parameter in parameters),
            len(parameters),
        )
        if not isinstance(inputs, list) or not least <= len(inputs) <= most:
            got = len(inputs) if isinstance(inputs, list) else type(inputs).__name__
            raise ValueError(f"{name} needs from {least} to {most} inputs; got {got}")
        call = Call(endpoint=endpoint, inputs=inputs, session=session or "", n_bytes=n_bytes)
        call.session = call.session or call.event
        return call

    def post(self, stream: str, call: Call) -> Message:
        """Keep a call until its stream is read. Raises Busy if too many wait there."""
        calls = [*self._service.budget.get(CALLS, stream, ()), call]
        if len(calls) > MAX_CALLS:
            raise Busy(YOURS_WAIT)
        self._keep(stream, calls)
        if stream in self._open:
            self._open[stream].set()
        return {"event_id": call.event}

    def cancel(self, event: str, session: str) -> None:
        """End a call of a session, whether it is being answered or waits to be."""
        waiting = self._service.budget.get(CALLS, session, ())
        for call in (*waiting, *self._running.values()):
            if (call.event, call.session) == (event, session):
                call.cancel()

    def has(self, stream: str) -> bool:
        """Whether calls wait to be answered on this stream."""
        return bool(self._service.budget.get(CALLS, stream))

    async def messages(self, stream: str) -> AsyncGenerator[Message | None, None]:
        """The answers of a stream's calls as they come; None where nothing came for a while."""
        arrived = self._open.setdefault(stream, asyncio.Event())
        unread: list[Call] = []
        try:
            while True:
                arrived.clear()
                for call in self._taken(stream, MAX_UNREAD_ANSWERS - len(unread)):
                    call.task = asyncio.create_task(self._answer(call))
                    self._running[call.event] = call
                    unread.append(call)
                if not unread:
                    return
                more = asyncio.create_task(arrived.wait())
                tasks = [call.task for call in unread if call.task]
                try:
                    await asyncio.wait((*tasks, more), timeout=ALIVE_S, return_when=FIRST_DONE)
                finally:
                    more.cancel()
                tasks.clear()
                finished = [call for call in unread if self._ending or call.is_done]
                if not finished and not arrived.is_set():
                    yield None
                for call in finished:
                    yield self._settled(call)
                    unread.remove(call)
                    del self._running[call.event]
                for call in self._taken(stream, MAX_CALLS) if self._ending else ():
                    yield completed(call, problem=public_error(ENDING))
        finally:
            self._open.pop(stream, None)
            if unread:  # the client has left
                self._keep(stream, ())
            for call in unread:
                self._running.pop(call.event, None)
                call.cancel()
                self._service.requests.leave(call.session)

    def _settled(self, call: Call) -> Message:
        """A call's answer, which the call keeps no longer; an error if it is still computed, since
        the server ends."""
        task, call.task = call.task, None
        if task is None or not task.done():
            call.cancelled.set()
            if task is not None:
                task.cancel()
            return completed(call, problem=public_error(ENDING))
        return completed(call, {}) if task.cancelled() else task.result()

    def _taken(self, stream: str, most: int) -> list[Call]:
        """The calls of a stream that are to begin; the others stay in the budget."""
        calls = self._service.budget.get(CALLS, stream, ())
        self._keep(stream, calls[most:])
        return list(calls[:most])

    def _keep(self, stream: str, calls: Sequence[Call]) -> None:
        budget = self._service.budget
        if calls:
            budget.put(CALLS, stream, calls, sum(call.n_bytes for call in calls))
        else:
            budget.discard(CALLS, stream)

    async def _answer(self, call: Call) -> Message:
        if call.cancelled.is_set():
            return completed(call, {})
        set_caller(session=call.session)  # in this task alone
        try:
            with renewed(math.inf, flag=call.cancelled):
                result = await call.endpoint.call(self._service, *call.inputs)
        except asyncio.CancelledError:
            return completed(call, {})
        except Exception as error:
            return completed(call, problem=reported(error))
        return completed(call, {"data": [result], "is_generating": False})


def check_session(name: Any) -> None:
    """Raise Refused unless it is a name that a session may have."""
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_HASH:
        raise Refused(400, NO_HASH)


def completed(
    call: Call, output: Message | None = None, problem: Mapping[str, str] | None = None
) -> Message:
    """The message that ends a call: its output, or its error with the code as the title."""
    if problem is not None:
        output = {"error": problem["detail"], "title": problem["code"]}
    done = {"msg": "process_completed", "event_id": call.event, "success": problem is None}
    return {**done, "output": output}


def program_routes(programs: Programs) -> APIRouter:
    """The routes below Gradio's prefix."""
    routes = APIRouter(include_in_schema=False)

    async def posted(
        request: Request, name: str, inputs: Any, session: Any, stream: str | None = None
    ) -> Message:
        call = programs.call_of(name, inputs, session, len(await request.body()))
        return programs.post(stream or call.event, call)

    @routes.post("/call/v2/{name}")
    async def by_name(request: Request, name: str, values: Data) -> Message:
        """Inputs by the names of the endpoint's parameters."""
        endpoint = programs.endpoints.get(name)
        parameters = inspect.signature(endpoint.function).parameters if endpoint else {}
        check_names(name, values, parameters)
        missing = [
            key for key, it in parameters.items() if it.default is it.empty and key not in values
        ]
        if missing:
            raise ValueError(f"{name} needs {', '.join(missing)}; got {shortened(list(values))}")
        inputs = [values.get(key, it.default) for key, it in parameters.items()]
        return await posted(request, name, inputs, None)

    @routes.post("/call/{name}")
    async def by_place(request: Request, name: str, sent: Data) -> Message:
        """Inputs in the order of the endpoint's parameters."""
        session = sent.get("session_hash")
        if session is not None:
            check_session(session)
        return await posted(request, name, sent.get("data"), session)

    @routes.post("/queue/join")
    async def join(request: Request, sent: Data) -> Message:
        """As `call`, of a session, which reads all its answers on one stream."""
        session, number = sent.get("session_hash"), sent.get("fn_index")
        check_session(session)
        if not isinstance(number, int) or number not in programs.numbers:
            raise Refused(400, NO_EVENT)
        name = programs.numbers[number]
        return await posted(request, name, sent.get("data"), session, stream=session)

    @routes.get("/call/v2/{name}/{event}")
    @routes.get("/call/{name}/{event}")
    async def answer(event: str) -> Response:
        if not programs.has(event):
            raise Refused(404, NO_EVENT)

        def encode(message: Message | None) -> bytes:
            if message is None:
                return _event("heartbeat", None)
            if message["success"]:
                return _event("complete", message["output"].get("data"))
            return _event("error", message["output"])

        return Streamed(_encoded(programs.messages(event), encode), EVENTS)

    @routes.get("/queue/data")
    async def answers(session_hash: str = "") -> Response:
        def encode(message: Message | None) -> bytes:
            return _data(message or {"msg": "heartbeat"})

        end = _data({"msg": "close_stream"})
        return Streamed(_encoded(programs.messages(session_hash), encode, end), EVENTS)

    @routes.post("/cancel")
    async def cancel(sent: Data) -> Message:
        programs.cancel(str(sent.get("event_id")), str(sent.get("session_hash")))
        return {"success": True}

    @routes.post("/reset")
    async def reset() -> Message:
        """Nothing is kept between two calls of an endpoint."""
        return {"success": True}

    return routes


async def _encoded(
    messages: AsyncGenerator[Message | None, None],
    encode: Callable[[Message | None], bytes],
    end: bytes = b"",
) -> AsyncGenerator[bytes, None]:
    """Each message as bytes, neither of which is kept here while it waits to be read."""
    async with aclosing(messages):
        async for message in messages:
            parts = [encode(message)]
            del message
            yield parts.pop()
    if end:
        yield end


def _event(name: str, data: Any) -> bytes:
    return b"event: " + name.encode() + b"\n" + _data(data)


def _data(data: Any) -> bytes:
    return b"data: " + orjson.dumps(data, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n\n"
