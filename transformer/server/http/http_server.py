"""uvicorn with the limits that it lacks: of a request's headers and time, and of an address."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from transformer.messages import negotiate_language, speaking
from transformer.server.http.errors import UNREADABLE, Busy, error_response, public_error
from transformer.server.http.guard import language_of
from transformer.server.http.limits import (
    CLIENT_S,
    HEADERS_S,
    MAX_CHUNKS,
    MAX_CONNECTIONS,
    MAX_HEADER_BYTES,
    MAX_UNREAD_BYTES,
    of_one_address,
)
from transformer.server.http.process import FAULTS
from transformer.server.http.requests import address_of

ACCEPTED = re.compile(rb"\naccept-language:[ \t]*([^\r\n]*)", re.IGNORECASE)
BLANK_LINE = re.compile(rb"\n\r?\n")  # the end of headers
PORTS = range(7860, 7960)  # that are tried without --port
IDLE_SHARE = 0.5  # of a processor: a server that uses less computes nothing
GRACE_S = 3  # for answers that are still sent when the server ends


class Requests(h11.Connection):
    """h11 with limits on the size of headers and on the number of a body's chunks (15 µs each)."""

    _chunks = 0

    def next_event(self) -> Any:
        if self.their_state is h11.IDLE:
            data, _ = self.trailing_data
            if len(data) > MAX_HEADER_BYTES and not BLANK_LINE.search(data, 0, MAX_HEADER_BYTES):
                raise h11.RemoteProtocolError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE.phrase)
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = 0
            # Which of both says where the next request begins?
            if {b"content-length", b"transfer-encoding"} <= {name for name, _ in event.headers}:
                raise h11.RemoteProtocolError("two lengths of a body")
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            if self._chunks > MAX_CHUNKS:
                raise h11.RemoteProtocolError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE.phrase)
        return event


class Connection(H11Protocol):
    """uvicorn's connection with timeouts for the headers and for reading the answer, and a limit of
    connections per address."""

    _due: asyncio.TimerHandle | None = None
    _address = ""
    _unread_since = 0.0  # when more was sent than the client reads at once; 0: it has read that

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.conn = Requests(h11.SERVER)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        own: socket.socket | None = transport.get_extra_info("socket")
        if own is not None and hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, CLIENT_S * 1000)
        if len(self.connections) > MAX_CONNECTIONS or self._has_too_many():
            self.connections.discard(self)  # others' are not kept out
            self.app = _busy
        self._wait_for_headers()

    def _has_too_many(self) -> bool:
        """Whether this address has more than its share of connections; a trusted proxy has all."""
        host = self.client[0] if self.client else ""
        if host in getattr(self.app, "trusted_hosts", ()):
            return False
        self._address = address_of(host)
        same = sum(
            vars(connection).get("_address") == self._address for connection in self.connections
        )
        return same > of_one_address(MAX_CONNECTIONS)

    def send_400_response(self, msg: str) -> None:
        """Answer a malformed request, in its language as far as that can be read."""
        data, _ = self.conn.trailing_data
        accepted = ACCEPTED.search(data)
        with speaking(negotiate_language(accepted[1].decode("latin-1") if accepted else "")):
            content = json.dumps(public_error(UNREADABLE)).encode()
        headers = {"content-type": "application/json", "connection": "close"}
        status = HTTPStatus.BAD_REQUEST
        head = h11.Response(status_code=status, headers=list(headers.items()), reason=status.phrase)
        for event in (head, h11.Data(data=content), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._cancel()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_since = time.monotonic()
        self._bound_unread()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread_since = 0.0

    def _bound_unread(self) -> None:
        """Close connections whose answers are not read, until MAX_UNREAD_BYTES are kept."""
        sizes = {
            each: each.transport.get_write_buffer_size()
            for each in self.connections
            if isinstance(each, Connection) and each._unread_since
        }
        of_address = Counter[str]()
        for each, n_bytes in sizes.items():
            of_address[each._address] += n_bytes
        while len(sizes) > 1 and of_address.total() > MAX_UNREAD_BYTES:
            closed = min(sizes, key=lambda it: (-of_address[it._address], it._unread_since))
            of_address[closed._address] -= sizes.pop(closed)
            closed.transport.abort()

    def _wait_for_headers(self) -> None:
        """Close the connection in HEADERS_S, unless a request is being answered by then."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel()
        elif self._due is None:
            self._due = self.loop.call_later(HEADERS_S, self.timeout_keep_alive_handler)

    def _cancel(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


async def _busy(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse every request of a connection: there are too many connections."""
    FAULTS.error("a connection more than are allowed")
    with speaking(language_of(scope)):
        response = error_response(Busy())
    response.headers["connection"] = "close"
    await response(scope, receive, send)


class Server(uvicorn.Server):
    """Tells systemd when it serves, and when it ends. end: called before connections are closed."""

    def __init__(self, app: ASGIApp, end: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                log_level="warning",
                server_header=False,
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        self._end = end

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        notify("READY=1")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        notify("STOPPING=1")
        self._end()
        await super().shutdown(sockets)


def notify(state: str) -> None:
    """Tell systemd, if it started this process and asked for it (NOTIFY_SOCKET; see sd_notify)."""
    if address := os.environ.get("NOTIFY_SOCKET"):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
            supervisor.setblocking(False)  # where systemd is slow, the event loop does not wait
            supervisor.connect(f"\0{address[1:]}" if address[0] == "@" else address)
            supervisor.send(state.encode())


@asynccontextmanager
async def watched(is_stalled: Callable[[], bool]) -> AsyncIterator[None]:
    """Ping systemd's watchdog from the event loop, three times in WATCHDOG_USEC; not while requests
    wait and nothing is computed.

    is_stalled: whether requests have waited for long and none has begun.
    """

    async def tell(every_s: float) -> None:
        used_s = math.inf
        while True:
            if is_stalled() and used_s < IDLE_SHARE * every_s:
                FAULTS.error("requests wait and nothing is computed; the watchdog is not told")
            else:
                notify("WATCHDOG=1")
            before = time.process_time()
            await asyncio.sleep(every_s)
            used_s = time.process_time() - before

    within = int(os.environ.get("WATCHDOG_USEC", "0")) / 1e6
    telling = asyncio.create_task(tell(within / 3)) if within else None
    yield
    if telling:
        telling.cancel()


def listen(host: str | None = None, port: int | None = None) -> socket.socket:
    """A socket bound to an address, on which nothing is accepted yet.

    host None: GRADIO_SERVER_NAME, else this machine only. port None: GRADIO_SERVER_PORT, else the
    first free one of PORTS. Raises OSError where none can be had.
    """
    name = (host or os.environ.get("GRADIO_SERVER_NAME") or "127.0.0.1").strip("[]")
    variable = os.environ.get("GRADIO_SERVER_PORT")
    ports = [port] if port is not None else [int(variable)] if variable else PORTS
    problem: Exception | None = None
    for number in ports:
        try:
            addresses = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
            family, *_, address = min(addresses, key=lambda entry: entry[0] != socket.AF_INET)
            # asyncio sends each part of an answer at once only where the protocol is named.
            bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        except OSError as error:
            problem = error
            break
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((address[0], number, *address[2:]))
        except (OSError, OverflowError) as error:
            problem = error
            bound.close()
        else:
            return bound
    wanted = f"port {ports[0]}" if len(ports) == 1 else f"ports {ports[0]} to {ports[-1]}"
    raise OSError(
        f"cannot listen on {name} {wanted}: {problem}; allowed: a free port from 1 to 65535, or no "
        "--port for the first free one"
    )


def url_of(bound: socket.socket) -> str:
    """Where a browser on this machine finds what listens there."""
    host, port = bound.getsockname()[:2]
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{name}:{port}"
