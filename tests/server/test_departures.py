"""Clients that leave at any moment of any route, and what is left of them: nothing."""

import asyncio
import json
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import httpx
import psutil
import pytest
from fastapi import FastAPI
from kit import aio
from kit.routes import filled, routes_of

from transformer import Model
from transformer.server import application
from transformer.server.classroom import classes
from transformer.server.http import http_server
from transformer.server.http.guard import RESOURCES
from transformer.server.http.http_server import Server, listen, url_of
from transformer.server.kept.service import Service
from transformer.server.page.modules import MODULES, PLOTLY_JS

pytestmark = pytest.mark.slow

DEPARTURES, AT_ONCE = 2_000, 40
TEXT = {"model": "tiny", "text": "The fox", "method": "greedy", "max_new_tokens": 12}
# No connection rests: the server closes one after 5 s, which a busy machine may take.
CLIENT: Any = {"timeout": 60, "limits": httpx.Limits(max_keepalive_connections=0)}
BODIES: dict[str, Any] = {
    "runs": TEXT,
    "batches": {"model": "tiny", "lines": "The fox\nThe bird sang"},
    "examples": {"model": "tiny", "typed": {}},
    "train": {"plan": {"task": "copy"}},
    "generate": {"data": ["The fox", "tiny", 12]},
    "join": {"data": ["The fox", "tiny", 12], "fn_index": 3, "session_hash": "SESSION"},
    "asked": {"code": "CODE", "phone": "SESSION", "seen": 1},
    "kept": {"runs": ["RUN"] * 9},
    "export": {"run": "RUN", "form": "html"},
    "breaks": {"model": "tiny"},
    "": {"run": "RUN", "made": {"A" * 22: {"model": "tiny", "text": "The bird"}}},
}


@contextmanager
def served(service: Service) -> Iterator[tuple[FastAPI, str]]:
    """The site in this process, by real sockets: its app and its address."""
    bound = listen("127.0.0.1", 0)
    site = aio.run(application(service, bound))
    server = Server(site.app, site.end)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        aio.wait_until(lambda: server.started)
        yield site.app, url_of(bound)
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


def requests_of(app: FastAPI, known: dict[str, str]) -> list[bytes]:
    """One request of every route and method, as it is sent."""
    *own, _ = app.router.routes  # without Gradio's
    values = {"name": "generate", "event": "0" * 32, "code": known["CODE"]}
    query = "?run=RUN&batch=BATCH&model=tiny&site=decoder.0.self"
    found = list[bytes]()
    for route, methods in routes_of(own):
        path = filled(route, values)
        for method in methods - {"HEAD"} or {"GET"}:
            name = path.rsplit("/", 1)[-1]
            body = json.dumps(BODIES.get(name, BODIES[""])) if method == "POST" else ""
            path += query if method == "GET" and path.startswith(RESOURCES) else ""
            for sign, value in known.items():
                path, body = path.replace(sign, value), body.replace(sign, value)
            found.append(request(method, path, body.encode()))
    return found


def request(method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nX-Session: SESSION\r\n"
    head += "Content-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def leave(url: str, sent: bytes, after_s: float, buffer: int | None = None) -> None:
    """Ask, read nothing, and leave without a word."""
    with socket.socket() as caller, suppress(ConnectionError):
        if buffer:
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        caller.setblocking(False)
        loop, address = asyncio.get_running_loop(), httpx.URL(url)
        await loop.sock_connect(caller, (address.host, address.port))
        await loop.sock_sendall(caller, sent)
        await asyncio.sleep(after_s)


async def depart(url: str, requests: list[bytes]) -> None:
    """Every third one leaves an earlier answer unread, of more than fits in the buffers."""
    chance, numbers = random.Random(1), iter(range(DEPARTURES))
    earlier = request("GET", f"/{MODULES.address(PLOTLY_JS)}")

    async def some() -> None:
        async with httpx.AsyncClient(base_url=url, **CLIENT) as client:
            for number in numbers:
                sent = chance.choice(requests).replace(b"SESSION", f"{number:07}".encode())
                after_s = chance.choice((0.005, 0.02, 0.1)) * chance.random()
                if number % 3:
                    await leave(url, sent, after_s)
                else:
                    await leave(url, earlier * 2 + sent, after_s, buffer=2048)
                if number % 4 == 0:  # else the server falls behind, and refuses them
                    await client.get("ready")

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))


def left_over(client: httpx.Client) -> dict[str, Any]:
    """What /health counts besides its own request."""
    health = client.get("health").json()
    lines = {
        f"{line} {kind}": n for line, of in health["resources"].items() for kind, n in of.items()
    }
    counts = {**lines, **health["open"], "running": health["running"]}
    counts["requests"] -= 1
    return {name: n for name, n in counts.items() if n}


def test_two_thousand_departures_leave_nothing_behind(
    tiny_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classes, "ABSENT_S", 0.0)  # so that one more can be opened at the end
    service = Service([tiny_model])
    with served(service) as (app, url), httpx.Client(base_url=url, **CLIENT) as client:
        run, batch = service.example("tiny")
        code = client.post("resources/class/open", json={}).json()["code"]
        requests = requests_of(app, {"RUN": run, "BATCH": batch, "CODE": code})
        assert len(requests) > 80
        files = psutil.Process().num_fds()
        aio.run(depart(url, requests))
        end = time.monotonic() + 120
        while (found := left_over(client)) and time.monotonic() < end:
            service.sweep()
            time.sleep(0.1)
        assert found == {}
        assert psutil.Process().num_fds() <= files + 5
        client.post("resources/class/open", json={}).raise_for_status()
        *_, last = client.post("resources/runs", json=TEXT).text.splitlines()
        assert json.loads(last)["status"]["kind"] == "done", last


def test_answers_that_nobody_reads_are_bounded_for_all_together(
    tiny_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    most, readers = 4_000_000, 12
    monkeypatch.setattr(http_server, "MAX_UNREAD_BYTES", most)
    kept = list[Any]()
    made = http_server.Connection.connection_made
    monkeypatch.setattr(
        http_server.Connection,
        "connection_made",
        lambda own, transport: (kept.append(transport), made(own, transport)),
    )
    asked = request("GET", f"/{MODULES.address(PLOTLY_JS)}")
    with served(Service([tiny_model], trainings=0)) as (_, url), ExitStack() as stack:
        for _ in range(readers):
            caller = stack.enter_context(socket.socket())
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            caller.connect((httpx.URL(url).host, httpx.URL(url).port))
            caller.sendall(asked)
        whole = httpx.get(f"{url}/{MODULES.address(PLOTLY_JS)}", timeout=60)
        assert len(whole.content) > most / readers * 2
        assert len(kept) > readers
        assert sum(each.get_write_buffer_size() for each in kept) <= most
