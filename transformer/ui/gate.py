"""What stands before the page's framework: its open doors that the page does not need are shut.

Also here: the size of a request, a full queue, the server's health, and noticing who has left.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transformer.ui.components import PLOTLY_JS
from transformer.ui.limits import (
    BUSY,
    CALLS_BUSY,
    CLOSED,
    MAX_CALLS,
    MAX_REQUEST_BYTES,
    MAX_WAITING,
    POST_ONLY,
    TOO_LARGE,
)

API = "/gradio_api/"
FILE = f"{API}file={PLOTLY_JS.as_posix()}"  # the one file that is served
SHUT = (
    "upload", "upload_progress", "process_recording", "file", "proxy=", "stream/", "deep_link",
    "custom_component/", "vibe-", "undo-vibe-edit", "run/", "api/", "runs", "run-history", "dev/",
    "profiling/", "heartbeat/", "mcp",
)  # fmt: skip
SHUT_PAGES = (
    "/docs", "/redoc", "/openapi.json", "/monitoring", "/login", "/logout", "/pwa_icon", "/svelte",
)  # fmt: skip
TOOLS = (f"{API}mcp", f"{API}mcp/")  # where tools are called, if they are served at all
JOINS = (f"{API}queue/join", f"{API}call/")
OURS = str(Path(__file__).resolve().parent.parent)


class Gate:
    """ASGI middleware around the page's app.

    health: what /health answers. waiting: how many requests are in the queue. leave: told the
    session of a visitor who has left. tools: whether the endpoints are served as tools over MCP.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        health: Callable[[], dict[str, Any]],
        waiting: Callable[[], int],
        leave: Callable[[str], object],
        tools: bool = False,
    ) -> None:
        self.app, self.health, self.waiting, self.leave = app, health, waiting, leave
        self.tools, self._calls = tools, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._http(scope, _Exchange(scope, receive, send))

    async def _http(self, scope: Scope, exchange: _Exchange) -> None:
        path = str(scope["path"]).removeprefix(scope.get("root_path", ""))
        post = scope["method"] == "POST"
        if path == "/health":
            await exchange.answer(200, self.health())
        elif path == "/leave" and post:
            self.leave((await exchange.body()).decode("ascii", errors="replace"))
            await exchange.answer(204, None)
        elif self.tools and path in TOOLS and not post:
            await exchange.answer(405, {"detail": POST_ONLY})
        elif is_shut(path, tools=self.tools):
            await exchange.answer(404, {"detail": CLOSED})
        elif exchange.announced > MAX_REQUEST_BYTES:
            await exchange.answer(413, {"detail": f"{TOO_LARGE}; got {exchange.announced:,}."})
        elif post and path.startswith(JOINS) and self.waiting() >= MAX_WAITING:
            await exchange.answer(503, {"detail": BUSY})
        elif path in TOOLS:
            await self._call(scope, exchange)
        else:
            exchange.on_leave(self.leave, _stream_of(scope, path))
            await self._pass_on(scope, exchange)

    async def _call(self, scope: Scope, exchange: _Exchange) -> None:
        """A tool's call holds a thread until its result is there, which needs another one."""
        if self._calls >= MAX_CALLS:
            await exchange.answer(503, {"detail": CALLS_BUSY})
            return
        self._calls += 1
        try:
            await self._pass_on(scope, exchange)
        finally:
            self._calls -= 1

    async def _pass_on(self, scope: Scope, exchange: _Exchange) -> None:
        try:
            await self.app(scope, exchange.receive, exchange.send)
        except TooLarge:
            await exchange.answer(413, {"detail": f"{TOO_LARGE}."})
        except Exception as error:
            if exchange.started:
                raise
            ours = _is_ours(error)
            if ours:  # without its values, which may be a visitor's words
                print(f"{type(error).__name__} in {_place_of(error)}", file=sys.stderr, flush=True)
            detail = "The server made a mistake." if ours else "The request could not be read."
            await exchange.answer(500 if ours else 400, {"detail": detail})


class TooLarge(Exception):
    """A request's body went beyond MAX_REQUEST_BYTES without having said so."""


class _Exchange:
    """One request and its answer: counts what comes in, and notices an end before the answer's."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._taken = 0
        self._left: Callable[[], object] | None = None
        self.started = self.finished = False
        self.announced = _announced(scope)

    def on_leave(self, leave: Callable[[str], object], visitor: str | None) -> None:
        """Tell `leave` when this visitor goes before the answer is finished."""
        if visitor:
            self._left = lambda: leave(visitor)

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._taken += len(message.get("body", b""))
            if self._taken > MAX_REQUEST_BYTES:
                raise TooLarge
        elif message["type"] == "http.disconnect" and not self.finished and self._left:
            told, self._left = self._left, None
            told()
        return message

    async def send(self, message: Message) -> None:
        self.started = True
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.finished = True
        await self._send(message)

    async def body(self) -> bytes:
        """All of it. Raises TooLarge."""
        parts = []
        while True:
            message = await self.receive()
            parts.append(message.get("body", b""))
            if not message.get("more_body"):
                return b"".join(parts)

    async def answer(self, status: int, content: dict[str, Any] | None) -> None:
        """JSON, or nothing at all; unless an answer has already begun."""
        if self.started:
            return
        body = b"" if content is None else json.dumps(content).encode()
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


def is_shut(path: str, *, tools: bool = False) -> bool:
    """Whether an address of the framework is one that neither the page nor tools have use for."""
    if path == FILE or (tools and path in TOOLS):
        return False
    if path.startswith(API):
        return path.removeprefix(API).startswith(SHUT)
    return path.startswith(SHUT_PAGES)


def uptime() -> Callable[[], float]:
    """A clock that starts now; seconds."""
    began = time.monotonic()
    return lambda: time.monotonic() - began


def _announced(scope: Scope) -> int:
    """The body's length as the request says it; 0 if it does not."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _stream_of(scope: Scope, path: str) -> str | None:
    """The session whose results this request waits for, if that is what it does."""
    if path == f"{API}queue/data":
        query = parse_qs(scope["query_string"].decode("ascii", errors="replace"))
        return query.get("session_hash", [None])[0]
    if scope["method"] == "GET" and path.startswith(f"{API}call/"):
        return path.rsplit("/", 1)[-1]  # a plain call's session is its own id
    return None


def _is_ours(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return any(frame.filename.startswith(OURS) and frame.filename != __file__ for frame in frames)


def _place_of(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}, line {last.lineno}"
