"""ASGI middleware in front of Gradio: an allow-list of the routes that the page and programs use.

It also checks a request's type, answers /health and /ready, names the session and address
of each request, and cancels requests whose client has left.
"""

from __future__ import annotations

import ipaddress
import math
import sys
import traceback
from collections.abc import Callable, Collection, Hashable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transformer.checks import InvalidCall, InvalidRequest, shortened
from transformer.inference.deadline import renewed
from transformer.messages import speaking
from transformer.server import programs, resources
from transformer.server.errors import (
    CLOSED,
    FOREIGN,
    MISTAKE,
    NO_HASH,
    UNREADABLE,
    Busy,
    Refused,
    place_of,
    public_error,
)
from transformer.server.examples import read_tour
from transformer.server.limits import MAX_HASH
from transformer.server.modules import MODULES, PREFIX
from transformer.server.request_guard import POLICY, RequestGuard, Shutdown, language_of
from transformer.server.sessions import address_of, caller, set_caller
from transformer.server.slots import Slots

API = f"{programs.PREFIX}/"
METHODS = ("GET", "HEAD", "POST", "OPTIONS")
ALLOW = (b"allow", ", ".join(METHODS).encode())
LINKS = [f"/{one['name']}" for one in read_tour()["link"]]
# The only routes served: those of the page, programs and tools. Gradio has many more.
OPEN = (
    *LINKS, *(f"{name}.png" for name in LINKS),
    "/", "/config", "/theme.css", "/favicon.ico", "/robots.txt", "/manifest.json",
    *(API + name for name in ("queue/join", "queue/data", "cancel", "reset",
                              "info", "openapi.json", "app_id", "theme.css")),
)  # fmt: skip
RESOURCES = f"{resources.PREFIX}/"
MADE = ("/config", API + "info", API + "openapi.json")  # which takes up to 50 ms each
QUERY = {"page": "", "all_endpoints": "true"}  # the only parameters that they read
KEPT = 32  # of them, of 0.3 MB at most
# The headers that an answer depends on: the address at which the page is seen.
SEEN_AT = ("host", "x-forwarded-host", "x-forwarded-proto", "x-gradio-server")
OPEN_BELOW = (
    "/assets/",
    "/static/",
    "/lessons/",
    "/class/",
    f"/{PREFIX}",
    f"{API}call/",
    RESOURCES,
)
TOOLS = (f"{API}mcp", f"{API}mcp/")  # where tools are called, if they are served at all
OURS = str(Path(__file__).resolve().parent.parent)
# Every request passes through these.
PASSED_ON = ("asgi_guard.py", "request_guard.py")


class AsgiGuard:
    """ASGI middleware around the page's app.

    health: the answer of /health, sent with 503 where its status is not "ok". ready: the status
    that /ready answers in the same way. slots: where what is MADE is made. leave: called with the
    session of a visitor who has left. tools: whether the endpoints are served as tools over MCP.
    policy: the page's Content-Security-Policy. shutdown: ends the server. hosts: names by which the
    server may be asked besides this machine's own, so that no page of another site can use it by a
    name that leads here; None: any.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        health: Callable[[], dict[str, Any]],
        slots: Slots,
        leave: Callable[[str], object],
        ready: Callable[[], str] = lambda: "ok",
        tools: bool = False,
        policy: str = POLICY,
        shutdown: Shutdown | None = None,
        hosts: Collection[str] | None = None,
    ) -> None:
        self.app, self.health, self.ready = app, health, ready
        self.slots, self.leave = slots, leave
        self.policy, self.tools = policy, tools
        self.shutdown, self.hosts = shutdown or Shutdown(), hosts
        self._made: dict[Hashable, list[Message]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        else:
            guard = RequestGuard(scope, receive, send, self.policy)
            with speaking(language_of(scope)), self.shutdown.underway(guard):
                try:
                    host, _ = scope.get("client") or ("", 0)
                    set_caller(address=address_of(host))  # for this request's task alone
                    await self._answer(plain_query(scope), guard)
                except Refused as refused:
                    await guard.answer(refused.status, public_error(refused.error))

    async def _answer(self, scope: Scope, guard: RequestGuard) -> None:
        path, method = path_of(scope), scope["method"]
        post = method == "POST"
        name = host_of(Headers(scope=scope).get("host", ""))
        if self.hosts is not None and name not in self.hosts and not is_local(name):
            await guard.answer(421, public_error(unknown_host(name)))
        elif method not in METHODS and path not in TOOLS:
            await guard.answer(405, _wrong_method(", ".join(METHODS)), ALLOW)
        elif self.shutdown.begun:
            await self.shutdown.refuse(guard)
        elif path in ("/health", "/ready"):
            ready = {"status": self.ready(), "version": MODULES.version}
            facts = self.health() if path == "/health" else ready
            await guard.answer(200 if facts["status"] == "ok" else 503, facts)
        elif (path == "/leave" and post) or path.startswith(RESOURCES):
            await self._from_page(scope, guard, path)
        elif self.tools and path in TOOLS and not post:
            await guard.answer(405, _wrong_method("POST"))
        elif not (
            (path.rstrip("/") or "/") in OPEN
            or path.startswith(OPEN_BELOW)
            or (self.tools and path in TOOLS)
        ):
            await guard.answer(404, public_error(CLOSED))
        elif post:
            await self._post(scope, guard)
        elif (path.rstrip("/") or "/") in MADE:
            await self._described(scope, guard)
        else:
            await self._pass_on(scope, guard)

    async def _described(self, scope: Scope, guard: RequestGuard) -> None:
        """Answer with a document that all visitors share: rendered once, one at a time, in turn by
        address. The turn ends before it is sent, since some clients read slowly."""
        headers, asked = Headers(scope=scope), ("method", "path", "query_string", "scheme")
        codings = headers.get("accept-encoding", "")
        key = (
            *map(scope.get, asked), *map(headers.get, SEEN_AT), "br" in codings, "gzip" in codings,
        )  # fmt: skip
        if key not in self._made:
            try:
                place = await self.slots.placed(caller())
                try:
                    if key not in self._made:
                        await self._make(key, scope, guard)
                finally:
                    place.leave()
            except Busy as busy:
                await guard.answer(503, public_error(busy))
        for message in self._made.get(key, ()):
            await guard.send({**message})  # what compresses an answer changes its messages

    async def _make(self, key: Hashable, scope: Scope, guard: RequestGuard) -> None:
        """Render and keep the answer; an error is sent at once and not kept."""
        messages: list[Message] = []

        async def keep(message: Message) -> None:
            messages.append(message)

        await self._pass_on(scope, guard, keep)
        if guard.started:  # a mistake
            return
        if messages[0]["status"] != 200:
            for message in messages:
                await guard.send(message)
            return
        self._made[key] = messages
        if len(self._made) > KEPT:
            del self._made[next(iter(self._made))]

    async def _from_page(self, scope: Scope, guard: RequestGuard, path: str) -> None:
        """Requests of the page's own scripts, in the session that they name."""
        session = Headers(scope=scope).get(resources.SESSION, "")
        if Headers(scope=scope).get("sec-fetch-site") == "cross-site":  # a browser says so
            await guard.answer(403, public_error(FOREIGN))
        elif len(session) > MAX_HASH:
            await guard.answer(400, public_error(NO_HASH))
        elif path == "/leave":
            self._leave(session)
            await guard.answer(204, None)
        else:
            set_caller(session=session)  # for this request's task alone
            await (self._post if scope["method"] == "POST" else self._pass_on)(scope, guard)

    async def _post(self, scope: Scope, guard: RequestGuard) -> None:
        """Only JSON: for it a browser sends a preflight before another site's page may post."""
        kind = Headers(scope=scope).get("content-type", "")
        if kind.split(";")[0].strip().lower() != resources.JSON:
            wrong = InvalidCall(
                "content_type",
                "A request must have the content type {allowed}; got {got}.",
                allowed=resources.JSON,
                got=shortened(kind),
            )
            await guard.answer(415, public_error(wrong))
        else:
            await self._pass_on(scope, guard)

    def _leave(self, visitor: str) -> None:
        """Tool calls belong to no session."""
        if 1 <= len(visitor) <= MAX_HASH:
            self.leave(visitor)

    async def _pass_on(self, scope: Scope, guard: RequestGuard, send: Send | None = None) -> None:
        """A request for a resource is cancelled when its client has left."""
        of_page = path_of(scope).startswith(RESOURCES)
        try:
            if of_page or scope["method"] == "POST":
                await guard.body()
            if not of_page:
                return await self.app(scope, guard.receive, send or guard.send)
            guard.computed = True
            with guard.watched() as gone, renewed(math.inf, flag=gone):
                await self.app(scope, guard.receive, guard.send)
        except Refused:
            raise
        except Exception as error:
            ours = _is_ours(error)
            if guard.started:
                await guard.finish()
            if ours:  # without its values, which may be a visitor's words
                print(place_of(error), file=sys.stderr, flush=True)
            await guard.answer(500 if ours else 400, public_error(MISTAKE if ours else UNREADABLE))


def _wrong_method(allowed: str) -> dict[str, str]:
    return public_error(
        InvalidCall("method", "A request's method must be one of {allowed}.", allowed=allowed)
    )


def host_of(address: str) -> str:
    """The name or IP address in a Host header, an address of a page, or a name alone."""
    try:
        return urlsplit(address if "://" in address else f"//{address}").hostname or ""
    except ValueError:
        return ""


def is_local(name: str) -> bool:
    """Whether a name or IP address always means this machine; no other site can have it."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def unknown_host(name: str) -> InvalidRequest:
    """The error for a request under a name that the server was not told."""
    return InvalidRequest(
        "unknown_host",
        "This server answers to localhost alone; got {got}. Its owner can allow other names with "
        "--trusted-hosts.",
        got=shortened(name),
    )


def path_of(scope: Scope) -> str:
    """A request's path as the page's app sees it."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def plain_query(scope: Scope) -> Scope:
    """The request without what Gradio would take from its query to other visitors.

    `deep_link` reads a state that anybody on the machine may have written to a temporary folder;
    and the description of the API, if no page is named, is kept with the first caller's Host. Of
    what is MADE, only QUERY stays, so that no query makes it anew.
    """
    given = parse_qsl(scope["query_string"].decode("ascii", "replace"), keep_blank_values=True)
    query, path = [(name, value) for name, value in given if name != "deep_link"], path_of(scope)
    if (path.rstrip("/") or "/") in MADE:
        named = {name for name, _ in given} | ({"page"} if path.startswith(f"{API}info") else set())
        query = [(name, value) for name, value in QUERY.items() if name in named]
    return scope if query == given else {**scope, "query_string": urlencode(query).encode()}


def _is_ours(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return any(
        frame.filename.startswith(OURS) and not frame.filename.endswith(PASSED_ON)
        for frame in frames
    )
