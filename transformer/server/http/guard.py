"""The middleware around the whole site: which requests are let in, and how each is answered.

An allowlist of routes. Bodies are read first, within limits; a request whose client disconnects is
cancelled, and open ones are answered on shutdown.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import threading
import traceback
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from fastapi import Depends, Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transformer.checks import InvalidRequest, shortened
from transformer.inference.deadline import renewed
from transformer.messages import negotiate_language, speaking
from transformer.server.fields import read_tour
from transformer.server.http.addresses import check_host
from transformer.server.http.errors import (
    CLOSED,
    ENDING,
    FOREIGN,
    MISTAKE,
    NO_HASH,
    NO_STORE,
    TOO_LARGE,
    TOO_LONG,
    TOO_MANY,
    TOO_SLOW,
    UNREADABLE,
    Refused,
    error_response,
    public_error,
)
from transformer.server.http.limits import (
    CLIENT_S,
    MAX_HASH,
    MAX_PARAMETERS,
    MAX_QUERY_BYTES,
    MAX_REQUEST_BYTES,
    MAX_REQUEST_VALUES,
)
from transformer.server.http.process import FAULTS
from transformer.server.http.requests import address_of, set_caller

API, RESOURCES = "/gradio_api", "/resources"  # below which programs and the page ask
SESSION = "x-session"  # the header by which the page's script says whose request it is
JSON, LINES = "application/json", "application/x-ndjson"
METHODS = ("GET", "HEAD", "POST", "OPTIONS")
LINKS = [f"/{link['name']}" for link in read_tour()["link"]]
# Of Gradio's routes only these are reached: exact paths, and files, none of whose names begins with
# a dot. Its queue, which nobody serves here, would keep each request for ever.
GRADIO = (
    "/config", "/theme.css", "/favicon.ico", "/robots.txt", "/manifest.json",
    *(f"{API}/{name}" for name in ("info", "openapi.json", "app_id", "theme.css")),
)  # fmt: skip
GRADIO_FILE = re.compile(r"/(assets|static)(/[\w@-][\w.@-]*)+", re.ASCII)
TOOLS = (f"{API}/mcp", f"{API}/mcp/")  # where tools are called, if they are served at all
OPEN_PATHS = (
    *LINKS, *(f"{name}.png" for name in LINKS), "/", "/health", "/ready", "/leave", *GRADIO,
    *(f"{API}/{name}" for name in ("queue/join", "queue/data", "cancel", "reset")),
)  # fmt: skip
OPEN_BELOW = tuple(
    f"{path}/" for path in ("/lessons", "/class", "/modules", "/weights", f"{API}/call", RESOURCES)
)
OUR_FOLDER = str(Path(__file__).resolve().parents[2])
# The language in a request's query; see server/static/header.js.
LANGUAGE_PARAMETER = "__lang"
LANGUAGE = re.compile(rf"(?:^|&){LANGUAGE_PARAMETER}=([A-Za-z-]{{2,20}})(?:&|$)".encode())
PERMISSIONS = "camera=(), microphone=(), geolocation=(), payment=(), usb=()"  # never asked for


class Guard:
    """tools: whether the endpoints are served as tools over MCP. policy: see `pages.policy_for`.
    hosts: accepted Host names besides this machine's own, which prevents DNS rebinding; None: any.
    """

    app: ASGIApp

    def __init__(
        self, *, tools: bool = False, policy: str = "", hosts: Collection[str] | None = None
    ) -> None:
        self.tools, self.policy, self.hosts = tools, policy, hosts
        self.ending = False
        self._turns = WeakValueDictionary[str, asyncio.Lock]()  # of addresses that ask just now
        self._open: set[Exchange] = set()

    def around(self, app: ASGIApp) -> Guard:
        """Wrap an app, as Starlette does with its middleware."""
        self.app = app
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        with speaking(language_of(scope)):
            exchange = Exchange(receive, send, self.policy)
            self._open.add(exchange)
            try:
                await self._pass_on(scope, exchange)
            except Refused as refused:
                await exchange.answer(refused)
            except asyncio.CancelledError:
                if not self.ending:
                    raise
                await exchange.answer(_ending())
            finally:
                self._open.discard(exchange)

    def n_open(self) -> int:
        """The number of requests that are being read or answered."""
        return len(self._open)

    def end(self) -> None:
        """Answer every request that has no answer yet, or streams lines: the server ends."""
        self.ending = True
        for exchange in self._open:
            if exchange.has_lines or not exchange.started:
                exchange.task.cancel()

    def _check(self, scope: Scope) -> None:
        """Raise Refused for a request that is not let in."""
        headers, path, method = Headers(scope=scope), path_of(scope), scope["method"]
        is_tool = self.tools and path in TOOLS
        if self.hosts is not None:
            check_host(headers.get("host", ""), self.hosts)
        if method not in METHODS and path not in TOOLS:
            raise _wrong_method(", ".join(METHODS))
        if self.ending:
            raise _ending()
        query = scope["query_string"]
        if len(query) > MAX_QUERY_BYTES or query.count(b"&") >= MAX_PARAMETERS:
            raise Refused(414, TOO_LONG)
        if is_tool and method != "POST":
            raise _wrong_method("POST")
        is_open = path in OPEN_PATHS or path.startswith(OPEN_BELOW) or GRADIO_FILE.fullmatch(path)
        if not is_open and not is_tool:
            raise Refused(404, CLOSED)
        if is_of_page(path) and headers.get("sec-fetch-site") == "cross-site":  # a browser says so
            raise Refused(403, FOREIGN)
        if is_of_page(path) and len(headers.get(SESSION, "")) > MAX_HASH:
            raise Refused(400, NO_HASH)
        # JSON alone: for it a browser sends a preflight before another site's page may post.
        kind = headers.get("content-type", "")
        if method == "POST" and path != "/leave" and kind.split(";")[0].strip().lower() != JSON:
            wrong = InvalidRequest(
                "content_type",
                "A request must have the content type {allowed}; got {got}.",
                allowed=JSON,
                got=shortened(kind),
            )
            raise Refused(415, wrong)

    async def _pass_on(self, scope: Scope, exchange: Exchange) -> None:
        """Let the app answer, or raise Refused."""
        host, _ = scope.get("client") or ("", 0)
        await self._turn(address_of(host))
        self._check(scope)
        named = Headers(scope=scope).get(SESSION, "") if is_of_page(path_of(scope)) else ""
        set_caller(address=address_of(host), session=named)  # for this request's task alone
        await exchange.read(scope)
        try:
            await self._turn(address_of(host))
            with renewed(math.inf, flag=exchange.gone):
                await self.app(scope, exchange.receive, exchange.send)
        except Refused:
            raise
        except Exception as error:
            if not _is_ours(error):
                raise Refused(400, UNREADABLE) from None
            FAULTS.error("a mistake", exc_info=error)
            raise Refused(500, MISTAKE) from None
        finally:
            exchange.watch.cancel()
            if not exchange.finished:
                exchange.gone.set()

    async def _turn(self, address: str) -> None:
        """Continue an address's requests one by one, with other tasks between: a burst delays
        nobody else."""
        turn = self._turns.setdefault(address, asyncio.Lock())
        async with turn:
            await asyncio.sleep(0)


class Exchange:
    """One request and its answer. watch: waits for the client to leave, once the body is read."""

    watch: asyncio.Future[None]

    def __init__(self, receive: Receive, send: Send, policy: str) -> None:
        self._receive, self._send, self._policy = receive, send, policy
        self._read: list[Message] = []  # the body, which the app receives
        self.task: asyncio.Task[Any] = asyncio.current_task()  # type: ignore[assignment]
        self.gone = threading.Event()  # whether nobody waits for the answer any more
        self.started = self.finished = False
        self.has_lines = False  # whether the answer is lines of JSON

    async def read(self, scope: Scope) -> None:
        """Read the body, where a route takes one, then watch for a disconnect. Raises Refused."""
        whole, more = bytearray(), scope["method"] == "POST" or is_of_page(path_of(scope))
        announced = Headers(scope=scope).get("content-length", "")  # as the client says
        is_large = more and announced.isdecimal() and int(announced) > MAX_REQUEST_BYTES
        try:
            async with asyncio.timeout(CLIENT_S):
                while more and not is_large:
                    message = await self._receive()
                    if message["type"] != "http.request":  # the client has left
                        raise Refused(400, UNREADABLE)
                    whole += message.get("body", b"")
                    more = message.get("more_body", False)
                    is_large = len(whole) > MAX_REQUEST_BYTES
        except TimeoutError:
            raise Refused(408, TOO_SLOW) from None
        if is_large:
            raise Refused(413, TOO_LARGE)
        # A parser makes an object of each, which is slow where there are many.
        if sum(map(whole.count, (b",", b"[", b"{"))) > MAX_REQUEST_VALUES:
            raise Refused(413, TOO_MANY)
        self._read = [{"type": "http.request", "body": bytes(whole), "more_body": False}]
        self.watch = asyncio.ensure_future(self._wait_for_leave())

    async def _wait_for_leave(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass  # a body that is of no use
        if not self.finished:  # which a server says of a whole answer too
            self.gone.set()

    async def receive(self) -> Message:
        """ASGI's receive: the body, then the disconnect."""
        if self._read:
            return self._read.pop()
        await self.watch
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """ASGI's send, with security headers added."""
        if message["type"] == "http.response.start":
            message = {**message, "headers": safe_headers(message.get("headers", []), self._policy)}
            self.has_lines = (b"content-type", LINES.encode()) in message["headers"]
        self.started = True
        await self._send(message)
        self.finished = message["type"] == "http.response.body" and not message.get("more_body")

    async def answer(self, refused: Refused) -> None:
        """Answer in place of the app: as a last line where lines have been sent; an answer that has
        begun otherwise is ended."""
        if not self.started:
            await error_response(refused)({"type": "http"}, self.receive, self.send)
        elif not self.finished:
            content = f"{json.dumps(public_error(refused))}\n" if self.has_lines else ""
            await self.send({"type": "http.response.body", "body": content.encode()})


def _wrong_method(allowed: str) -> Refused:
    wrong = InvalidRequest(
        "method", "A request's method must be one of {allowed}.", allowed=allowed
    )
    return Refused(405, wrong, {"allow": allowed})


def _ending() -> Refused:
    """A question may be asked again, of this server's successor."""
    return Refused(503, ENDING, {"retry-after": "3"})


def _is_ours(error: BaseException) -> bool:
    """Whether an exception comes from this package, past this file."""
    frames = traceback.extract_tb(error.__traceback__)
    return any(
        frame.filename.startswith(OUR_FOLDER) and frame.filename != __file__ for frame in frames
    )


def path_of(scope: Scope) -> str:
    """A request's path as routers match it, without what a proxy serves the page below."""
    path, root = str(scope["path"]), scope.get("root_path", "")
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


def is_of_page(path: str) -> bool:
    """Whether it is a request of the page's own scripts, in the session that they name."""
    return path.startswith(f"{RESOURCES}/") or path == "/leave"


def language_of(scope: Scope) -> str:
    """The language that a request asks for: in its query, as all requests of the page's scripts
    do, or, for the page itself, in its header. English for programs."""
    match = LANGUAGE.search(scope["query_string"])
    accepted = [match[1].decode()] if match else []
    if not path_of(scope).startswith((f"{API}/", RESOURCES)):
        accepted.append(dict(scope["headers"]).get(b"accept-language", b"").decode("latin-1"))
    return negotiate_language(", ".join(accepted))


def safe_headers(headers: Iterable[tuple[bytes, bytes]], policy: str) -> list[tuple[bytes, bytes]]:
    """An answer's headers with the policy added. Pages, which depend on the visitor's language,
    are revalidated each time, and JSON is not stored unless it says so."""
    fields = MutableHeaders(raw=list(headers))
    kind = fields.get("content-type", "")
    fields["x-content-type-options"] = "nosniff"
    fields["referrer-policy"] = "no-referrer"  # an address may hold a visitor's words
    if kind.startswith("text/html"):
        fields["content-security-policy"] = policy
        fields["permissions-policy"] = PERMISSIONS
    if kind.startswith(("text/html", JSON)):
        fields.setdefault("cache-control", NO_STORE if kind.startswith(JSON) else "no-cache")
        if "accept-language" not in fields.get("vary", "").lower():
            fields.add_vary_header("Accept-Language")
    if "location" in fields:  # without the host, which is what the request says
        place = urlsplit(fields["location"])
        query = f"?{place.query}" if place.query else ""
        fields["location"] = f"/{place.path.lstrip('/')}{query}"
    return fields.raw


async def object_in(request: Request) -> dict[str, Any]:
    """The JSON object in a request's body. Raises ValueError for anything else."""
    try:
        data = json.loads(await request.body())
    except ValueError:
        raise Refused(400, UNREADABLE) from None
    if not isinstance(data, dict):
        raise ValueError(f"a request must be an object; got {type(data).__name__}")
    return data


Data = Annotated[dict[str, Any], Depends(object_in)]  # of a route
