"""A server among strangers: its descriptors, its log, whose address it believes, and its end."""

import asyncio
import itertools
import json
import logging
import resource
import signal
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from unittest import mock

import httpx
import psutil
import pytest
from kit import aio, app_variants, serving
from kit.client import called
from kit.serving import Server
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from transformer.server import PRIVATE, sweep
from transformer.server.http import http_server
from transformer.server.http.errors import BUSY, ENDING, public_error
from transformer.server.http.http_server import listen, watched
from transformer.server.http.limits import MAX_WAITING
from transformer.server.http.process import ShortLog
from transformer.server.page.modules import PLOTLY_JS, PREFIX

pytestmark = pytest.mark.slow

API = "gradio_api"
LONG = ["Once upon a time", "stories", 200, *[None] * 4, 1, 1, 1.0, None, None]
WORDS = "a visitor's words"
FEW_S = 0.05  # in which a watchdog is told a few times: a full queue would block who tells it


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One that may hold 256 files, with tools."""
    log = tmp_path_factory.mktemp("bounded") / "server.log"
    with Server(log, ["stories"], "few_files", ["--mcp"]) as made:
        yield made


def test_a_server_may_hold_as_many_files_as_the_system_allows(server):
    most = (app_variants.MOST_FILES, app_variants.MOST_FILES)
    assert resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE) == most


def test_an_answers_last_bytes_do_not_wait_for_the_reader(monkeypatch):
    async def delays_none() -> int:
        found = asyncio.get_running_loop().create_future()

        class Accepted(asyncio.Protocol):
            def connection_made(self, transport: Any) -> None:
                own = transport.get_extra_info("socket")
                found.set_result(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
                transport.close()

        bound = listen(port=0)
        async with await asyncio.get_running_loop().create_server(Accepted, sock=bound):
            _, writer = await asyncio.open_connection(*bound.getsockname())
            told = int(await found)
            writer.close()
            await writer.wait_closed()
            return told

    monkeypatch.delenv("GRADIO_SERVER_NAME", raising=False)
    assert aio.run(delays_none())  # else 40 ms an answer on Linux: Nagle and delayed ACKs


def test_unfinished_headers_do_not_keep_others_out(server):
    before = server.log.stat().st_size
    with ExitStack() as stack:
        for _ in range(300):
            caller = stack.enter_context(socket.socket())
            caller.connect(("127.0.0.1", server.port))
            caller.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Never: e")
        with server.client() as client:
            assert client.get("health", timeout=20).status_code == 200
    logged = server.log.read_bytes()[before:].decode()
    assert len(logged) < 10_000
    assert logged.count("socket.accept() out of system resource: OSError in") == 1


def test_an_unfinished_second_request_times_out(server):
    """A caller who sends what an answer did not wait for is no longer between two requests."""
    for first in ("", "Content-Length: 99\r\n"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as caller:
            caller.sendall(f"GET /health HTTP/1.1\r\nHost: a\r\n{first}\r\n".encode())
            assert b"200 OK" in caller.recv(100_000)
            caller.sendall(b"G")
            while caller.recv(100_000):
                pass


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux alone has it")
def test_a_connection_whose_answer_is_never_read_is_closed(server):
    with server.client() as client, socket.socket() as caller:
        version = client.get("ready").json()["version"]
        at = f"{PREFIX}{version}/{PLOTLY_JS}"
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        caller.connect(("127.0.0.1", server.port))
        caller.sendall(f"GET /{at} HTTP/1.1\r\nHost: a\r\n\r\n".encode())  # megabytes
        own = caller.getsockname()

        def is_held() -> bool:
            """By the system, which keeps what is to be sent even where the server has closed it."""
            held = psutil.net_connections("tcp4")
            return any((one.laddr.port, one.raddr) == (server.port, own) for one in held)

        time.sleep(0.3)
        assert is_held()
        give_up = time.monotonic() + 20
        while is_held():
            assert time.monotonic() < give_up
            time.sleep(0.2)


def test_a_malformed_call_of_a_tool_logs_nothing_that_was_typed(server):
    accept = {"accept": "application/json, text/event-stream"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    with server.client() as client:
        for params in ({"name": 5, "arguments": WORDS}, {"name": [WORDS]}, WORDS, None):
            request = {**call, "params": params}
            client.post(f"{API}/mcp/", json=request, headers=accept)
            client.post(f"{API}/mcp/", json={**request, "method": WORDS}, headers=accept)
    assert WORDS not in server.log.read_text()


def test_the_page_is_compressed_and_never_cached_across_languages(server):
    with server.client() as client:
        for accept in ("gzip, br", "gzip", "identity"):
            page = client.get("", headers={"accept-encoding": accept})
            other = client.get("config", headers={"accept-encoding": accept})
            assert page.headers.get("content-encoding", "identity") == accept.split(", ")[-1]
            assert "</gradio-app>" in page.text
            assert page.headers["cache-control"] == "no-cache"
            assert "Accept-Language" in page.headers["vary"]
            assert "content-encoding" not in other.headers


def test_a_forged_address_gains_nothing_and_shutdown_answers_everyone(server):
    """A full line makes room for another address, and not for one that only says so; when the
    server ends, streams and requests get a sentence, and the exit status is the signal's."""
    with server.client() as client, ThreadPoolExecutor(MAX_WAITING + 50) as pool:
        answer = called(client, "generate", *LONG[:2], 120, *LONG[3:])
        run = json.loads(answer.split("data: ", 1)[1])[0]["run"]

        def streamed(own: httpx.Client) -> str:
            with own:
                event = own.post(f"{API}/call/generate", json={"data": LONG}).json()["event_id"]
                return own.get(f"{API}/call/generate/{event}").text

        def question(place: int) -> httpx.Response:
            data = {"run": run, "other": "Twice", "position": 100 + place}
            headers = {"x-session": f"s{place}"}
            return client.post("resources/patching", json=data, headers=headers)

        def lines() -> dict[str, dict[str, int]]:
            lines: dict[str, dict[str, int]] = client.get("health").json()["resources"]
            return lines

        def said(text: str) -> str:
            return str(json.loads(text.split("event: error\ndata: ")[1])["error"])

        # Made before: that takes longer than an answer.
        callers = [server.client() for _ in range(MAX_WAITING + 20)]
        forgers = [server.client(headers={"x-forwarded-for": f"10.0.0.{n}"}) for n in range(12)]
        streams = [pool.submit(streamed, own) for own in callers]
        while lines()["model"]["waiting"] < MAX_WAITING:
            time.sleep(0.01)
        ready = client.get("ready")
        assert (ready.status_code, ready.json()["status"]) == (503, "full")
        forged = [pool.submit(streamed, own) for own in forgers]
        questions = [pool.submit(question, place) for place in range(2)]
        while sum(lines()["experiments"].values()) < 2 or not any(it.done() for it in forged):
            time.sleep(0.01)
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        texts = [stream.result() for stream in streams]
        assert server.process.wait(20) == 128 + signal.SIGTERM
        assert time.monotonic() - began < 5
    assert str(BUSY) in {said(text) for it in forged if "event: error" in (text := it.result())}
    ended = [said(text) for text in texts if "event: complete" not in text]
    assert set(ended) == {str(BUSY), str(ENDING)}
    assert ended.count(str(ENDING)) > MAX_WAITING // 2  # some are done meanwhile
    found = [answer.result() for answer in questions]
    assert [(one.status_code, one.json()) for one in found] == [(503, public_error(ENDING))] * 2
    assert all(one.headers["retry-after"] == "3" for one in found)
    assert "Traceback" not in server.log.read_text()


@contextmanager
def systemd(name: str, monkeypatch: pytest.MonkeyPatch, seconds: float) -> Iterator[socket.socket]:
    """What it hears of a process that it starts with a watchdog of so many seconds."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(name.replace("@", "\0"))
        heard.settimeout(120)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        monkeypatch.setenv("WATCHDOG_USEC", f"{seconds * 1e6:.0f}")
        yield heard


def test_systemd_is_notified_of_ready_watchdog_and_stopping(tmp_path, monkeypatch):
    offered = [serving.running().log.parent / "tiny"]
    with systemd(str(tmp_path / "socket"), monkeypatch, 1) as heard:
        with Server(tmp_path / "log", offered) as server:
            messages = [heard.recv(99)]
            while messages[-1] != b"READY=1":
                messages.append(heard.recv(99))
            assert set(messages[:-1]) <= {b"WATCHDOG=1"}
            ready = httpx.get(f"{server.url}ready")
            assert (ready.status_code, ready.json()["status"]) == (200, "ok")
            assert "server" not in ready.headers
            assert [heard.recv(99) for _ in range(3)] == [b"WATCHDOG=1"] * 3
        heard.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                messages.append(heard.recv(99))
        assert messages[-1] == b"STOPPING=1"


def test_the_watchdog_is_silent_while_nothing_is_computed_for_who_waits(monkeypatch):
    is_stalled, told = False, list[str]()
    used = itertools.count()  # seconds of the processor: as many as there are looks, or none
    monkeypatch.setattr(http_server.FAULTS, "error", told.append)

    async def heard_of(heard: socket.socket) -> bool:
        """Whether it still says that it lives."""
        with suppress(BlockingIOError):
            while heard.recv(99):
                pass
        await asyncio.sleep(FEW_S)
        with suppress(BlockingIOError):
            return bool(heard.recv(99))
        return False

    async def lived(heard: socket.socket) -> None:
        nonlocal is_stalled
        heard.setblocking(False)
        async with watched(lambda: is_stalled):
            assert await heard_of(heard)
            is_stalled = True
            monkeypatch.setattr(time, "process_time", lambda: 0.0)
            await asyncio.sleep(FEW_S)
            assert not await heard_of(heard)
            assert told
            monkeypatch.setattr(time, "process_time", lambda: float(next(used)))
            await asyncio.sleep(FEW_S)
            assert await heard_of(heard)  # it computes

    with systemd("@another-test-of-the-watchdog", monkeypatch, 0.03) as heard:
        aio.run(lived(heard))


def test_the_watchdog_is_silent_while_the_event_loop_is_blocked(monkeypatch):
    async def lived(heard: socket.socket) -> None:
        heard.setblocking(False)
        async with asyncio.timeout(120), watched(lambda: False):
            for _ in range(2):
                assert await asyncio.get_running_loop().sock_recv(heard, 99) == b"WATCHDOG=1"
                with suppress(BlockingIOError):
                    while heard.recv(99):
                        pass
                time.sleep(0.2)
                with pytest.raises(BlockingIOError):
                    heard.recv(99)

    with systemd("@a-test-of-the-watchdog", monkeypatch, 0.03) as heard:
        aio.run(lived(heard))


def test_only_the_spaces_own_proxy_is_trusted_for_addresses():
    seen: list[Any] = []

    async def inside(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(scope["client"][0])

    headers = [(b"x-forwarded-for", b"198.51.100.1, 203.0.113.9, 10.0.0.8")]
    for peer in ("10.0.0.5", "198.51.100.1"):
        scope: Any = {"type": "http", "client": (peer, 1), "headers": headers}
        aio.run(ProxyHeadersMiddleware(inside, PRIVATE)(scope, None, None))  # type: ignore[arg-type]
    assert seen == ["203.0.113.9", "198.51.100.1"]


def test_a_fault_that_repeats_is_logged_once_and_without_its_values(monkeypatch):
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    short = ShortLog()

    def logged(message: str) -> str | None:
        try:
            raise KeyError(WORDS)
        except KeyError:
            fault = sys.exc_info()
        record = logging.LogRecord("x", logging.ERROR, "", 0, "%s", (message,), fault)
        return logging.Formatter().format(record) if short.filter(record) else None

    first = logged(f"a fault: {WORDS}\n{WORDS}")
    assert first is not None
    assert first.startswith("a fault: KeyError in server/test_process.py, logged, line ")
    assert [logged(f"a fault: {place}") for place in range(3)] == [None] * 3
    assert logged("another") is not None
    now = 61.0
    assert logged("a fault: x") == f"{first} (3 more before)"


@pytest.mark.parametrize(
    ("shares", "fails", "mistake"),
    [({}, KeyError(WORDS), "KeyError"), ({"model": None}, None, "AttributeError")],
    ids=["sweep", "look at the lines"],
)
def test_a_sweep_that_fails_is_logged_and_not_the_last(monkeypatch, capsys, shares, fails, mistake):
    monkeypatch.setattr("transformer.server.SWEEP_S", 0.001)
    service = mock.Mock(shares=shares)
    service.sweep.side_effect = itertools.chain([fails], itertools.repeat(None))

    async def sweeps() -> None:
        sweeping = asyncio.create_task(sweep(service))
        while service.sweep.call_count < 2 and not sweeping.done():
            await asyncio.sleep(0.001)
        assert sweeping.cancel()

    aio.run(asyncio.wait_for(sweeps(), 20))
    logged = capsys.readouterr().err
    assert logged.startswith(f"a mistake: {mistake} in ")
    assert WORDS not in logged
