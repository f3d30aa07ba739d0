"""What stands before the page's framework: only the routes that the page and programs use are open.

Also here: the size and type of a request, the server's health, who asks, and noticing who has left.
"""

from __future__ import annotations

import json
import math
import secrets
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode

from starlette.types import ASGIApp, Receive, Scope, Send

from transformer.inference.deadline import Deadline, until
from transformer.messages import numeral, say, speaking
from transformer.ui.exchange import POLICY, Exchange, TooLarge, TooSlow
from transformer.ui.fair_scheduler import Busy, FairScheduler
from transformer.ui.gradio_patches.inputs import place_of
from transformer.ui.language import again, language_of
from transformer.ui.limits import (
    CLOSED,
    FOREIGN,
    MAX_HASH,
    MAX_REQUEST_BYTES,
    METHODS_ONLY,
    MISTAKE,
    NO_HASH,
    POST_ONLY,
    TOO_LARGE,
    TOO_SLOW,
)
from transformer.ui.modules import MODULES, PREFIX
from transformer.ui.process import Shutdown
from transformer.ui.visitors import ADDRESS, ASKER, address_of, asker

API = "/gradio_api/"
METHODS = ("GET", "HEAD", "POST", "OPTIONS")
ALLOW = (b"allow", ", ".join(METHODS).encode())
OPEN = (
    "/", "/config", "/theme.css", "/favicon.ico", "/robots.txt", "/manifest.json",
    *(API + name for name in ("queue/join", "queue/data", "component_server", "cancel", "reset",
                              "info", "openapi.json", "app_id", "startup-events", "theme.css")),
)  # fmt: skip
OPEN_BELOW = ("/assets/", "/static/", f"{API}call/")
TOOLS = (f"{API}mcp", f"{API}mcp/")  # where tools are called, if they are served at all
QUESTIONS = (f"{API}component_server", f"{API}component_server/")
FROM_PAGES = (*QUESTIONS, "/leave")  # what our own page alone asks
JSON = "application/json"
FROM = b"x-asked-from"  # of a tool's call, on the framework's own request to the server
OURS = str(Path(__file__).resolve().parent.parent)
PASSED_ON = (
    "gate.py",
    "exchange.py",
    "gradio_patches/queue.py",
)  # they are in the way of every request


class Gate:
    """ASGI middleware around the page's app.

    health: what /health answers, with 503 where its status is not "ok". shares: of whose "tools"
    each call of a tool takes a place. leave: told the session of a visitor who has left. tools:
    whether the endpoints are served as tools over MCP. policy: what a browser is to keep the page
    to. shutdown: which ends the server.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        health: Callable[[], dict[str, Any]],
        shares: FairScheduler,
        leave: Callable[[str], object],
        tools: bool = False,
        policy: str = POLICY,
        shutdown: Shutdown | None = None,
    ) -> None:
        self.app, self.health, self.shares, self.leave = app, health, shares, leave
        self.policy, self.tools = policy, tools
        self.shutdown = shutdown or Shutdown()
        self._sign = secrets.token_urlsafe(16).encode() + b" "  # known to this process alone

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._http(scope, Exchange(scope, receive, send, self.policy))

    async def _http(self, scope: Scope, exchange: Exchange) -> None:
        with speaking(language_of(scope)), self.shutdown.underway(exchange):
            try:
                await self._answer(self._from(plain_query(scope)), exchange)
            except TooLarge:
                await exchange.answer(413, {"detail": f"{again(TOO_LARGE)}."})
            except TooSlow:
                await exchange.answer(408, {"detail": again(TOO_SLOW)})

    async def _answer(self, scope: Scope, exchange: Exchange) -> None:
        path, method = path_of(scope), scope["method"]
        post = method == "POST"
        if method not in METHODS and path not in TOOLS:
            await exchange.answer(405, {"detail": again(METHODS_ONLY)}, ALLOW)
        elif self.shutdown.begun and not _stream_of(scope, path):
            await self.shutdown.refuse(exchange)
        elif path == "/health":
            facts = self.health()
            await exchange.answer(200 if facts["status"] == "ok" else 503, facts)
        elif post and path in FROM_PAGES and is_foreign(scope):
            await exchange.answer(403, {"detail": again(FOREIGN)})
        elif path == "/leave" and post:
            self._leave((await exchange.body()).decode("ascii", errors="replace"))
            await exchange.answer(204, None)
        elif path.startswith(f"/{PREFIX}"):
            await MODULES(scope, exchange.receive, exchange.send)
        elif self.tools and path in TOOLS and not post:
            await exchange.answer(405, {"detail": again(POST_ONLY)})
        elif not is_open(path, tools=self.tools):
            await exchange.answer(404, {"detail": again(CLOSED)})
        elif post:
            await self._post(scope, exchange, path)
        else:
            exchange.on_leave(self._leave, _stream_of(scope, path))
            await self._pass_on(scope, exchange)

    async def _post(self, scope: Scope, exchange: Exchange, path: str) -> None:
        """A JSON type makes a browser ask first whether a page of another site may send this."""
        kind = header(scope, b"content-type")
        if exchange.announced > MAX_REQUEST_BYTES:
            await exchange.answer(413, {"detail": _too_large(exchange.announced)})
        elif kind.split(";")[0].strip().lower() != JSON:
            await exchange.answer(415, {"detail": _not_json(kind)})
        elif path in TOOLS:
            await self._call(scope, exchange)
        else:
            await self._pass_on(scope, exchange)

    def _from(self, scope: Scope) -> Scope:
        """The request with the address that it comes from, which is known to all that answers it:
        the framework's own request for a tool's call comes from where the call does."""
        host, port = scope.get("client") or ("", 0)
        signed = [value for name, value in scope["headers"] if name == FROM]
        for value in signed:
            if value.startswith(self._sign):
                host = value.removeprefix(self._sign).decode()
        ADDRESS.set(address_of(host))  # for this request's task alone
        if not signed:
            return scope
        headers = [(name, value) for name, value in scope["headers"] if name != FROM]
        return {**scope, "client": (host, port), "headers": headers}

    def _leave(self, visitor: str) -> None:
        """A request without a session is of nobody who could say so: a tool's call, for one."""
        if 1 <= len(visitor) <= MAX_HASH:
            self.leave(visitor)

    async def _call(self, scope: Scope, exchange: Exchange) -> None:
        """A tool's call holds a thread until its result is there, which needs another one; once it
        has come as a whole, since who never sends the rest would keep the others out.

        The framework then asks the server itself, with the headers of the call."""
        await exchange.body()
        headers = [*scope["headers"], (FROM, self._sign + ADDRESS.get().encode())]
        try:
            async with self.shares.held("tools", asker()):
                await self._pass_on({**scope, "headers": headers}, exchange)
        except Busy as busy:
            await exchange.answer(503, {"detail": str(busy)})

    async def _pass_on(self, scope: Scope, exchange: Exchange) -> None:
        try:
            if scope["method"] == "POST" and not has_good_hash(await exchange.body()):
                await exchange.answer(400, {"detail": again(NO_HASH)})
                return
            await self._inside(scope, exchange)
        except (TooLarge, TooSlow):
            raise
        except Exception as error:
            ours = _is_ours(error)
            if exchange.started:  # Gradio so ends a stream of a session that it does not know
                await exchange.finish()
            if ours:  # without its values, which may be a visitor's words
                print(place_of(error), file=sys.stderr, flush=True)
            detail = again(MISTAKE) if ours else say("The request could not be read.")
            await exchange.answer(500 if ours else 400, {"detail": detail})

    async def _inside(self, scope: Scope, exchange: Exchange) -> None:
        """A question of the page's scripts ends when nobody waits for its answer any more."""
        if scope["method"] == "POST" and scope["path"].endswith(QUESTIONS):
            ASKER.set(session_of(await exchange.body()))  # for this request's task alone
            with (
                self.shutdown.question(exchange),
                exchange.watched() as gone,
                until(Deadline(math.inf, gone)),
            ):
                await self.app(scope, exchange.receive, exchange.send)
        else:
            await self.app(scope, exchange.receive, exchange.send)


def path_of(scope: Scope) -> str:
    """A request's path as the page's app sees it."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def plain_query(scope: Scope) -> Scope:
    """The request without what Gradio would take from its query to other visitors.

    `deep_link` reads a state that anybody on the machine may have written to a temporary folder;
    and the description of the API, if no page is named, is kept with the first caller's Host.
    """
    given = parse_qsl(scope["query_string"].decode("ascii", "replace"), keep_blank_values=True)
    query = [(name, value) for name, value in given if name != "deep_link"]
    if path_of(scope).rstrip("/") == f"{API}info" and "page" not in dict(query):
        query.append(("page", ""))
    return scope if query == given else {**scope, "query_string": urlencode(query).encode()}


def is_open(path: str, *, tools: bool = False) -> bool:
    """Whether the page, programs or tools use this route; those of the framework are many more."""
    plain = path.rstrip("/") or "/"
    return plain in OPEN or path.startswith(OPEN_BELOW) or (tools and path in TOOLS)


def is_foreign(scope: Scope) -> bool:
    """Whether a browser says that a page of another site asks."""
    return header(scope, b"sec-fetch-site") == "cross-site"


def header(scope: Scope, name: bytes) -> str:
    """A request's header, or ""."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def has_good_hash(body: bytes) -> bool:
    """Whether the session that a request says it is of, if it says one, may be one.

    The framework keeps what it is given as a name; an empty one it takes for none, and its queue
    then looks for messages of a session that is not there. What is no JSON object names none.
    """
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return True
    given = asked.get("session_hash") if isinstance(asked, dict) else None
    return given is None or (isinstance(given, str) and 1 <= len(given) <= MAX_HASH)


def _not_json(kind: str) -> str:
    return say(
        "A request must have the content type {allowed}; got {got}.",
        allowed=JSON,
        got=repr(kind[:80]) if kind else say("none"),
    )


def _too_large(announced: int) -> str:
    return say("{sentence}; got {got}.", sentence=again(TOO_LARGE), got=numeral(announced))


def session_of(body: bytes) -> str:
    """The session that a request which may pass says it is of; "" if it says none."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    return str(asked.get("session_hash") or "") if isinstance(asked, dict) else ""


def uptime() -> Callable[[], float]:
    """A clock that starts now; seconds."""
    began = time.monotonic()
    return lambda: time.monotonic() - began


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
    return any(
        frame.filename.startswith(OURS) and not frame.filename.endswith(PASSED_ON)
        for frame in frames
    )
