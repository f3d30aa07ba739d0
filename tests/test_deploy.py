"""deploy/: nginx accepts its configuration, and visitors do not notice a lost replica."""

import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread

import httpx
import pytest
from kit import serving

from benchmarks import ROOT
from benchmarks.replicas import CONFIGURATION, NGINX, balanced, before, nginx
from transformer.server.http.limits import CLIENT_S, HEADERS_S, MAX_REQUEST_BYTES

pytestmark = pytest.mark.slow

needs_nginx = pytest.mark.skipif(NGINX is None, reason="needs nginx")


@needs_nginx
def test_visitors_are_served_though_a_replica_is_gone():
    """Some visitors belong to the missing replica; all are served."""
    server = serving.running()
    here = int(server.url.rstrip("/").rsplit(":", 1)[1])
    gone = serving.free_port()
    with (
        balanced(serving.free_port(), [here, gone]) as url,
        httpx.Client(base_url=url, timeout=30) as client,
    ):
        page = client.get("")
        assert page.status_code == 200
        assert "content-security-policy" in page.headers
        for place in range(6):
            client.headers["x-session"] = f"deployed{place}"
            paths = {"model": "tiny", "text": "Hello", "max_new_tokens": 2}
            answer = client.post("resources/runs", json=paths)
            assert answer.status_code == 200
            assert json.loads(answer.text.splitlines()[-1])["tokens"]["state"] == "done"
            assert client.post("resources/kept", json={"runs": []}).status_code == 200


def test_the_limits_before_the_replicas_are_theirs():
    text = CONFIGURATION.read_text(encoding="utf-8")
    assert f"client_max_body_size {MAX_REQUEST_BYTES};" in text
    assert f"client_header_timeout {HEADERS_S:.0f}s;" in text
    assert f"client_body_timeout {CLIENT_S:.0f}s;" in text


def test_the_ports_of_the_unit_are_those_of_the_configuration():
    unit = (ROOT / "deploy" / "transformer@.service").read_text(encoding="utf-8")
    named = re.search(r"transformer@\{([\d,]+)\}", unit)
    assert named is not None
    text = CONFIGURATION.read_text(encoding="utf-8")
    assert re.findall(r"server 127[\d.]+:(\d+)", text) == named[1].split(",")
    assert "--port %i" in unit
    assert "FORWARDED_ALLOW_IPS=127.0.0.1" in unit  # nginx tells the visitors' addresses
    assert "X-Forwarded-For $remote_addr" in text


@dataclass
class Upstream:
    """A replica that answers, but for what it does at each POST; `seen` are the requests so far."""

    port: int
    act: Callable[[socket.socket], object]
    seen: list[bytes] = field(default_factory=list)

    def posts(self) -> list[bytes]:
        return [one for one in self.seen if one.startswith(b"POST")]


@contextmanager
def upstreams(*acts: Callable[[socket.socket], object]) -> Iterator[list[Upstream]]:
    """One for each of these."""
    with ExitStack() as stack:
        every, threads = [], []
        for act in acts:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            one = Upstream(listener.getsockname()[1], act)
            every.append(one)
            threads.append(Thread(target=_accept, args=(listener, one), daemon=True))
            threads[-1].start()
        yield every


def _accept(listener: socket.socket, upstream: Upstream) -> None:
    with suppress(OSError):  # the test ends
        while True:
            caller = listener.accept()[0]
            Thread(target=_serve, args=(caller, upstream), daemon=True).start()


def _serve(caller: socket.socket, upstream: Upstream) -> None:
    with caller, suppress(OSError):
        upstream.seen.append(caller.recv(65536))
        (upstream.act if upstream.posts() else answers)(caller)


def freezes(_: socket.socket) -> None:
    Event().wait(30)


def dies(_: socket.socket) -> None:
    """It closes the connection."""


def is_busy(caller: socket.socket) -> None:
    caller.sendall(
        b"HTTP/1.1 503 Busy\r\nRetry-After: 2\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )


def answers(caller: socket.socket) -> None:
    caller.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")


@needs_nginx
@pytest.mark.parametrize(
    ("act", "path", "most", "status"),
    [
        (freezes, "resources/heatmap", 1, 504),
        (freezes, "resources/runs", 1, 504),
        (dies, "resources/heatmap", 2, 502),
        (dies, "resources/runs", 2, 502),
        (is_busy, "resources/heatmap", 1, 503),  # its visitors stay: it holds their runs
    ],
)
def test_a_request_that_harms_a_replica_does_not_reach_all(act, path, most, status):
    with upstreams(act, act, act) as every:
        text = before([one.port for one in every]).replace("read_timeout 60s", "read_timeout 1s")
        with nginx(serving.free_port(), text) as url:
            answer = httpx.post(f"{url}{path}", json={"run": "x"}, timeout=30)
    assert answer.status_code == status
    assert sum(len(one.posts()) for one in every) == most


@needs_nginx
def test_a_flood_is_refused_and_a_class_behind_one_address_is_not():
    """Forty visitors load the page at once: the document, questions, and files (30 of about 80)."""
    files = [f"modules/x/{place}.js" for place in range(30)]
    paths = ["", "theme.css", *(f"resources/{place}" for place in range(12)), *files]
    with (
        upstreams(answers) as (replica,),
        nginx(serving.free_port(), before([replica.port])) as url,
        httpx.Client(base_url=url, timeout=60) as client,
        ThreadPoolExecutor(80) as pool,
    ):
        found = list(pool.map(lambda path: client.get(path).status_code, paths * 40))
        assert set(found) == {200}
        flood = list(pool.map(client.get, [""] * 300))
        refused = [one for one in flood if one.status_code == 429]
        assert len(refused) > 100
        assert "Too many requests" in refused[0].json()["detail"]
        other = client.get("", headers={"X-Forwarded-For": "203.0.113.9"})
        assert other.status_code == 200  # another address has its own share


@needs_nginx
def test_a_visitors_own_forwarding_headers_stop_at_nginx():
    evil = {"X-Forwarded-Host": "evil.example", "X-Gradio-Server": "http://evil.example"}
    with (
        upstreams(answers) as (replica,),
        nginx(serving.free_port(), before([replica.port])) as url,
    ):
        assert httpx.get(f"{url}config", headers=evil).status_code == 200
    assert not any(b"evil" in one for one in replica.seen)
    assert b"X-Forwarded-For: 127.0.0.1" in replica.seen[-1]


def test_systemd_accepts_the_unit(tmp_path):
    unit = (ROOT / "deploy" / "transformer@.service").read_text(encoding="utf-8")
    if (systemd := shutil.which("systemd-analyze")) is None:
        pytest.skip("needs systemd-analyze")
    here = re.sub("(?m)^ExecStart=[^ ]+", f"ExecStart={sys.executable}", unit)
    here = here.replace("WorkingDirectory=/opt/transformer", f"WorkingDirectory={tmp_path}")
    (tmp_path / "transformer@7861.service").write_text(here, encoding="utf-8")
    command = [systemd, "verify", str(tmp_path / "transformer@7861.service")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (0, "")
