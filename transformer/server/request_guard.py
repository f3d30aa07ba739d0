"""Guard one request and its answer: limit the body, add safe headers, find its language, end it
with the server."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transformer.checks import InvalidCall, shortened
from transformer.messages import language, negotiate_language, speaking
from transformer.server.errors import (
    ENDING,
    TOO_LARGE,
    TOO_MANY,
    TOO_SLOW,
    UNREADABLE,
    Refused,
    public_error,
)
from transformer.server.limits import (
    BODY_S,
    MAX_REQUEST_BYTES,
    MAX_REQUEST_VALUES,
)

# The page's Content-Security-Policy. Gradio needs inline scripts and styles; a Space and a notebook
# on this machine may embed the page.
POLICY = "; ".join(
    (
        "default-src 'self'",
        # Gradio runs the scripts of components and events from texts.
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "connect-src 'self' data:",  # a picture that the page itself has drawn
        "img-src 'self' data: blob:",
        "media-src 'self' data: blob:",
        "object-src 'none'",
        "frame-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'self' https://huggingface.co https://*.huggingface.co "
        "https://*.hf.space http://localhost:* http://127.0.0.1:*",
    )
)

# What the page never asks a browser for.
PERMISSIONS = "camera=(), microphone=(), geolocation=(), payment=(), usb=()"

# scheme://host or scheme://host:port, as Content-Security-Policy has it; "*." for all below a name.
ORIGIN = re.compile(r"https?://(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:(\d{1,5}|\*))?")

LINES = "application/x-ndjson"  # an answer that is sent in parts
QUALITY = 5  # of brotli: as quick as gzip's 6, and a tenth smaller
GRACE_S = 3.0  # for answers that are under way when the server ends
LOOK_S = 0.02
# Below these paths the page's own requests name their language; any other is a program's.
PROGRAMS = ("/gradio_api/", "/resources")
# The language in a request's query; see server/static/header.js.
ASKED, NAME = "__lang", re.compile(r"[A-Za-z-]{2,20}")


async def object_in(request: Request) -> dict[str, Any]:
    """The JSON object in a request's body. Raises ValueError for anything else."""
    try:
        data = json.loads(await request.body())
    except ValueError:
        raise InvalidCall(UNREADABLE.code, UNREADABLE.sentence) from None
    if not isinstance(data, dict):
        raise ValueError(f"a request must be an object; got {type(data).__name__}")
    return data


class RequestGuard:
    """One request and its answer: limits the body, and notices a client that leaves early."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, policy: str = POLICY) -> None:
        self._receive, self._send, self._policy = receive, send, policy
        self._taken = 0
        self._ahead: list[Message] = []  # read here, and given on to the app
        self._watch: asyncio.Task[None] | None = None
        self.started = self.finished = self.ended = False
        self.has_lines = False  # whether the answer is lines of JSON
        self._gone: threading.Event | None = None
        self.computed = False  # whether a thread computes the answer, which cannot be interrupted
        length = Headers(scope=scope).get("content-length", "")
        self._announced = int(length) if length.isdecimal() else 0  # bytes, as the client says

    @contextmanager
    def watched(self) -> Iterator[threading.Event]:
        """An event that is set once the client has left; for a request whose body has been read."""
        gone = self._gone = threading.Event()

        async def watch() -> None:
            if (await self._receive())["type"] == "http.disconnect":  # all else has been read
                gone.set()

        self._watch = asyncio.ensure_future(watch())
        try:
            yield gone
        finally:
            self._watch.cancel()

    async def receive(self) -> Message:
        if self._ahead:
            return self._ahead.pop(0)
        if self._watch is not None:
            await self._watch
            return {"type": "http.disconnect"}
        message = await self._receive()
        if message["type"] == "http.request":
            self._taken += len(message.get("body", b""))
            if self._taken > MAX_REQUEST_BYTES:
                raise Refused(413, TOO_LARGE)
        return message

    async def send(self, message: Message) -> None:
        """Pass the app's answer on, unless `end` has answered already."""
        if not self.ended:
            await self._pass(message)

    async def _pass(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": safe_headers(message.get("headers", []), self._policy)}
            self.has_lines = (b"content-type", LINES.encode()) in message["headers"]
        self.started = True
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.finished = True
        await self._send(message)

    async def body(self) -> bytes:
        """The whole body, which the app can still read. Raises Refused."""
        if self._announced > MAX_REQUEST_BYTES:
            raise Refused(413, TOO_LARGE)
        whole, more = bytearray(), True
        try:
            async with asyncio.timeout(BODY_S):
                while more:
                    message = await self.receive()
                    if message["type"] != "http.request":  # the client has left
                        raise Refused(400, UNREADABLE)
                    whole += message.get("body", b"")
                    more = message.get("more_body", False)
        except TimeoutError:
            raise Refused(408, TOO_SLOW) from None
        # A parser makes an object of each, which is slow where there are many.
        if sum(map(whole.count, (b",", b"[", b"{"))) > MAX_REQUEST_VALUES:
            raise Refused(413, TOO_MANY)
        self._ahead = [{"type": "http.request", "body": bytes(whole), "more_body": False}]
        return self._ahead[0]["body"]

    async def finish(self) -> None:
        """End an answer that has begun."""
        if not self.finished:
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def end(
        self, status: int, content: dict[str, Any], *headers: tuple[bytes, bytes]
    ) -> None:
        """Answer now, in place of the app: as a last line, where lines have already been sent;
        not at all, where another answer has begun."""
        self.ended = self.has_lines or not self.started
        if self._gone is not None and self.ended:
            self._gone.set()
        if self.has_lines:
            line = json.dumps(content).encode() + b"\n"
            await self._pass({"type": "http.response.body", "body": line})
        else:
            await self.answer(status, content, *headers)

    async def answer(
        self, status: int, content: dict[str, Any] | None, *headers: tuple[bytes, bytes]
    ) -> None:
        """JSON, or nothing at all; unless an answer has already begun."""
        if self.started:
            return
        body = b"" if content is None else json.dumps(content).encode()
        fixed = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))
        start = {"type": "http.response.start", "status": status, "headers": [*fixed, *headers]}
        await self._pass(start)
        await self._pass({"type": "http.response.body", "body": body})


class Shutdown:
    """The end of the server: all open requests are answered with a sentence, within GRACE_S.

    end_calls: does so for programs' streams.
    """

    def __init__(self, end_calls: Callable[[], object] = lambda: None) -> None:
        self.begun = False
        self._end_calls = end_calls
        self._open: dict[RequestGuard, str] = {}  # and in which language they are answered

    @contextmanager
    def underway(self, guard: RequestGuard) -> Iterator[None]:
        """A request that is answered meanwhile."""
        self._open[guard] = language()
        try:
            yield
        finally:
            del self._open[guard]

    async def refuse(self, guard: RequestGuard) -> None:
        """Answer that the server ends; a question may be asked again, of its successor."""
        await guard.end(503, public_error(ENDING), (b"retry-after", b"3"))

    async def end(self) -> None:
        """Answer everything that is open."""
        self.begun = True
        self._end_calls()
        give_up = time.monotonic() + GRACE_S
        while any(not guard.finished for guard in self._open) and time.monotonic() < give_up:
            for guard, name in list(self._open.items()):
                if guard.computed:
                    with speaking(name):
                        await self.refuse(guard)
            await asyncio.sleep(LOOK_S)


def language_of(scope: Scope) -> str:
    """The language that an ASGI request asks for: in its query, as all requests of the page's
    scripts do, or, for the page itself, in its header. English for programs."""
    asked = parse_qs(scope["query_string"].decode("ascii", "replace")).get(ASKED, [""])[0]
    accepted = [asked] if NAME.fullmatch(asked) else []
    path = str(scope["path"]).removeprefix(scope.get("root_path", ""))
    if not path.startswith(PROGRAMS):
        accepted.append(dict(scope["headers"]).get(b"accept-language", b"").decode("latin-1"))
    return negotiate_language(", ".join(accepted))


def policy_for(embed_on: Sequence[str]) -> str:
    """POLICY, with these origins allowed to embed the page. Raises ValueError for no origin."""
    for origin in embed_on:
        if not ORIGIN.fullmatch(origin):
            raise ValueError(
                "a page that may embed this one is named by its origin, https://HOST or "
                f"https://HOST:PORT; got {shortened(origin)}"
            )
    return " ".join((POLICY, *embed_on))  # it ends with those that may


def safe_headers(
    headers: Iterable[tuple[bytes, bytes]], policy: str = POLICY
) -> list[tuple[bytes, bytes]]:
    """An answer's headers with the policy added. Pages and JSON, which depend on the visitor's
    language, are revalidated each time."""
    kept = MutableHeaders(raw=list(headers))
    kind = kept.get("content-type", "")
    kept["x-content-type-options"] = "nosniff"
    kept["referrer-policy"] = "no-referrer"  # an address may hold a visitor's words
    if kind.startswith("text/html"):
        kept["content-security-policy"] = policy
        kept["permissions-policy"] = PERMISSIONS
    if kind.startswith(("text/html", "application/json")):
        kept.setdefault("cache-control", "no-cache")
        if "accept-language" not in kept.get("vary", "").lower():
            kept.add_vary_header("Accept-Language")
    if "location" in kept:  # without the host, which is what the request says
        place = urlsplit(kept["location"])
        query = f"?{place.query}" if place.query else ""
        kept["location"] = f"/{place.path.lstrip('/')}{query}"
    return kept.raw


class BelowPath:
    """Middleware: give every request the path that ASGI asks for, `root_path` and what follows.

    The page may be served below a path (GRADIO_ROOT_PATH: /viz or https://HOST/viz) by a proxy that
    removes it or passes it on. Starlette's mounts answer 404 where `path` does not begin with
    `root_path`. root: "/viz"; "" for none.
    """

    def __init__(self, app: ASGIApp, root: str) -> None:
        self.app, self.root = app, root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (root := self.root):
            path = scope["path"] if is_below(scope["path"], root) else root + scope["path"]
            scope = {**scope, "root_path": root, "path": f"{root}/" if path == root else path}
        await self.app(scope, receive, send)


def path_below(root: str) -> str:
    """The path of GRADIO_ROOT_PATH, "/viz", as a request's path has it; "" for none."""
    path = unquote(urlsplit(root).path).strip("/")
    return f"/{path}" if path else ""


def is_below(path: str, root: str) -> bool:
    """Whether a request's path already begins with the path below which the page is served."""
    return f"{path}/".startswith(f"{root}/")
