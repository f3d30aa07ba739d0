"""One server and a crowd: what strangers send or hold costs others nothing that they would notice,
and it starts at any address and in any environment."""

import contextlib
import json
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from kit import serving
from kit.serving import Server

from transformer.messages import languages, speaking
from transformer.server.http.errors import BUSY, NO_HASH, UNREADABLE, public_error
from transformer.server.http.limits import (
    MAX_CHARACTERS,
    MAX_CHUNKS,
    MAX_CONNECTIONS,
    MAX_HASH,
    MAX_HEADER_BYTES,
    MAX_TEXTS,
    of_one_address,
)

pytestmark = pytest.mark.slow

MAX_ADDRESS_CONNECTIONS = of_one_address(MAX_CONNECTIONS)
CLASS = 30  # who open the page at the same time
IN_JSON = {"content-type": "application/json"}
MODEL = "tiny-translator"
HEAD = (
    b"POST /gradio_api/reset HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
    b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One that has just been started."""
    with started(tmp_path_factory.mktemp("crowd") / "server.log") as made:
        yield made


def started(log: Path, *change: str, **settings: Any) -> Server:
    """A server of a model that reads 40 tokens."""
    return Server(log, [serving.running().log.parent / MODEL], *change, **settings)


def connected(server: Server, source: str = "127.0.0.1") -> socket.socket:
    address = ("127.0.0.1", server.port)
    return socket.create_connection(address, timeout=60, source_address=(source, 0))


# --- the first visitors ---------------------------------------------------------------------------


def test_scripts_are_compressed_once_for_a_whole_class(server):
    """This is the first test: nothing has been asked for before."""
    before, scripts = server.cpu_s(), list[str]()
    with server.client() as client:
        for language in languages():
            page = client.get("", headers={"accept-language": language}).text
            at = page.split('<script type="importmap">', 1)[1].split("</script>", 1)[0]
            scripts += json.loads(at)["imports"].values()

    def packed(script: str) -> bytes:
        """Over a new connection. Raises HTTPError for any status but 200."""
        url = f"http://127.0.0.1:{server.port}/{script.removeprefix('./')}"
        request = urllib.request.Request(url, headers={"accept-encoding": "br"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())

    with ThreadPoolExecutor(len(languages()) * CLASS) as pool:
        answers = set(pool.map(packed, [one for one in scripts for _ in range(CLASS)]))
    assert len(set(scripts)) == len(answers) == 3 * len(languages())
    # Each script takes half a second: made anew for each of the class, they take 150.
    assert server.cpu_s() - before < 20


# --- what is sent ---------------------------------------------------------------------------------


def test_the_largest_batch_fits_in_the_longest_json(server):
    """Each character as two escapes of six bytes, as programs write it."""
    sent = json.dumps({"data": [["\U0001f98a" * MAX_CHARACTERS] * MAX_TEXTS, MODEL, None]})
    assert len(sent) > 190_000
    with server.client() as client:
        answer = client.post("gradio_api/call/batch", content=sent, headers=IN_JSON)
        assert answer.status_code == 200, answer.text


def test_the_name_of_a_session_is_checked_where_it_is_read(server):
    with server.client() as client:
        for name in ("", "x" * (MAX_HASH + 1)):
            for path in ("queue/join", "call/limits"):
                body = {"data": [], "fn_index": 0, "session_hash": name}
                answer = client.post(f"gradio_api/{path}", json=body)
                assert (answer.status_code, answer.json()) == (400, public_error(NO_HASH))


def test_a_body_of_very_many_chunks_is_refused_cheaply(server):
    chunk, end = b"1\r\n \r\n", b"2\r\n{}\r\n0\r\n\r\n"
    assert b" 200 " in answer_to(server, HEAD + chunk * (MAX_CHUNKS - 1) + end)  # it is read
    assert b" 400 " in answer_to(server, HEAD + chunk * (MAX_CHUNKS + 1))
    before = server.cpu_s()
    assert b" 200 " not in answer_to(server, HEAD + chunk * 250_000 + end)
    assert server.cpu_s() - before < 1  # 3.5 s if all are read


def test_overlong_headers_are_refused_before_parsing(server):
    line, rest = b"GET /health HTTP/1.1\r\n", b"Host: a\r\nConnection: close\r\n\r\n"
    before = server.cpu_s()
    for _ in range(10):
        for sent in (
            b"GET /health?" + b"a=1&" * 15_000 + b" HTTP/1.1\r\n" + rest,
            line + b"a:\r\n" * 15_000 + rest,
        ):
            assert answer_to(server, sent) in (b"HTTP/1.1 400 Bad Request", b"")
    assert server.cpu_s() - before < 0.5
    assert b" 200 " in answer_to(server, line + b"Cookie: " + b"c" * 15_000 + b"\r\n" + rest)


def test_a_body_of_two_lengths_ends_its_connection(server):
    line = b"POST /gradio_api/reset HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    both = b"Content-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    assert b" 400 " in answer_to(server, line + both + line)  # and it is closed


def test_files_of_gradio_are_asked_by_head_too(server):
    with server.client() as client:
        for path in ("config", "theme.css", "gradio_api/info", "robots.txt"):
            answers = client.head(path), client.get(path)
            assert [one.status_code for one in answers] == [200, 200], path
            assert answers[0].content == b""


def answer_to(server: Server, sent: bytes, source: str = "127.0.0.1") -> bytes:
    """The first line that the server answers; b"" if it closes the connection while more comes."""
    return whole_answer_to(server, sent, source).partition(b"\r\n")[0]


def whole_answer_to(server: Server, sent: bytes, source: str = "127.0.0.1") -> bytes:
    answer = b""
    with connected(server, source) as caller, contextlib.suppress(ConnectionError):
        caller.sendall(sent)
        while more := caller.recv(100_000):
            answer += more
    return answer


def error_in(answer: bytes) -> Any:
    return json.loads(answer.partition(b"\r\n\r\n")[2])


def test_a_code_of_a_long_address_is_refused_before_it_is_made(server):
    page = "https://page.example/"
    with server.client() as client:
        before = server.cpu_s()
        for length in (800, 3_000, 200_000):
            answer = client.post("resources/code", json={"page": page, "query": "a" * length})
            assert answer.status_code == 400
            assert "792" in answer.json()["detail"]
        for _ in range(10):
            answer = client.post("resources/code", json={"page": page, "query": "a" * 700})
            assert answer.json()["picture"].startswith("data:image/svg")
        assert server.cpu_s() - before < 1  # half a second for one of 3,000


# --- the page -------------------------------------------------------------------------------------


def test_the_page_is_rendered_once_for_each_language_and_host(server):
    with server.client() as client:
        for path in ("", "config", "gradio_api/info", "gradio_api/openapi.json"):
            seen: dict[tuple[str, str], str] = {}
            for language in ("en", "fr"):
                for coding in ("br", "gzip", "identity"):
                    for host in ("127.0.0.1", "other.example"):
                        headers = {"accept-language": language, "accept-encoding": coding}
                        headers |= {"host": f"{host}:{server.port}"}
                        first, again = (client.get(path, headers=headers) for _ in range(2))
                        assert first.status_code == 200, (path, headers)
                        assert first.text == again.text
                        for name in ("content-encoding", "vary", "content-length", "content-type"):
                            assert first.headers.get(name) == again.headers.get(name)
                        text = first.text.replace(f"//{host}:", "//HOST:")
                        assert seen.setdefault((path, language), text) == text
            assert (seen[path, "en"] == seen[path, "fr"]) == bool(path)
        before = server.cpu_s()
        for number in range(100):
            client.get("", params={"x": number})
        assert server.cpu_s() - before < 2.5  # 5 s where each is made anew


def test_endless_descriptions_do_not_delay_others(server):
    """None is cached: each is under another host name."""
    over, loaded, waited = threading.Event(), list[float](), list[float]()

    def took(client: httpx.Client, path: str, **settings: Any) -> float:
        began = time.monotonic()
        assert client.get(path, **settings).status_code == 200
        return time.monotonic() - began

    def loads(number: int) -> None:
        with server.client() as client:
            while not over.is_set():
                number += 100
                loaded.append(took(client, "config", headers={"host": f"h{number}.example"}))

    with ThreadPoolExecutor(20) as pool, server.client() as client:
        for number in range(20):
            pool.submit(loads, number)
        try:
            time.sleep(0.5)
            waited += [took(client, "health") for _ in range(30)]
        finally:
            over.set()
    assert len(loaded) > 20
    assert statistics.median(waited) < statistics.median(loaded) / 6


# --- connections ----------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have 127.0.0.1 alone")
def test_one_address_cannot_take_all_connections(server):
    health = b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    status_of = {
        source: partial(answer_to, server, health, source) for source in ("127.0.0.1", "127.0.0.2")
    }
    other = status_of["127.0.0.2"]
    with contextlib.ExitStack() as stack:
        for _ in range(MAX_ADDRESS_CONNECTIONS):
            stack.enter_context(connected(server))
        assert until_it_is(503, status_of["127.0.0.1"])
        assert b" 200 " in other()
        german = health.replace(b"\r\n\r\n", b"\r\nAccept-Language: de\r\n\r\n")
        with speaking("de"):
            assert error_in(whole_answer_to(server, german)) == public_error(BUSY)
        for _ in range(MAX_CONNECTIONS - MAX_ADDRESS_CONNECTIONS):
            stack.enter_context(connected(server, "127.0.0.3"))
        assert until_it_is(503, other)
    assert until_it_is(200, other)
    assert until_it_is(200, status_of["127.0.0.1"])


def test_what_is_no_request_is_answered_in_the_language_that_it_names(server):
    for language, lines in (
        ("fr", b"Accept-Language: fr-FR,de;q=0.8\r\n"),
        ("en", b""),
        ("en", b"X-Accept-Language: fr\r\n"),
    ):
        long = b"GET /?" + b"a" * MAX_HEADER_BYTES + b" HTTP/1.1\r\nHost: a\r\n" + lines + b"\r\n"
        with speaking(language):
            assert error_in(whole_answer_to(server, long)) == public_error(UNREADABLE)


def until_it_is(status: int, ask: Callable[[], bytes]) -> bool:
    """Whether it is soon answered so: a server accepts connections one after the other."""
    end = time.monotonic() + 8  # those that ask nothing are closed after ten
    while f" {status} ".encode() not in ask():
        if time.monotonic() > end:
            return False
    return True


# --- where it starts ------------------------------------------------------------------------------


def has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 on loopback")
@pytest.mark.parametrize("host", ["::1", "::"])
def test_it_is_served_at_addresses_of_ipv6(host, tmp_path):
    brackets = f"[{host}]"  # as browsers write it
    check_served(started(tmp_path / "log", host=brackets, more=["--mcp"]))


def test_proxy_variables_do_not_stop_the_server(tmp_path):
    """Nothing listens there. Python is started anew: Gradio reads the environment on import."""
    proxies = {"http": "http", "https": "http", "all": "socks5"}
    env = {f"{name}_proxy": f"{kind}://127.0.0.1:9" for name, kind in proxies.items()}
    env |= {name.upper(): value for name, value in env.items()}
    env |= {"NO_PROXY": "intranet.example", "no_proxy": "intranet.example"}
    log, start = tmp_path / "log", subprocess.Popen
    check_served(started(log, more=["--mcp"], start=start, env=env))


def check_served(server: Server) -> None:
    """The page and a tool; then stop it."""
    call = {"name": "limits", "arguments": {}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accept = {"accept": "application/json, text/event-stream"}
    with server, server.client(trust_env=False) as client:
        assert client.get("health").json()["status"] == "ok"
        assert "</gradio-app>" in client.get("").text
        answer = client.post("gradio_api/mcp/", json=request, headers=accept).text
        assert "request_bytes" in answer, answer


def test_a_crowd_at_startup_does_not_end_a_server_with_few_files(tmp_path):
    """It is there from the first moment, before the server has said that it runs."""
    port, over = serving.free_port(), threading.Event()
    with contextlib.ExitStack() as crowd, ThreadPoolExecutor(1) as pool:

        def push() -> None:
            came = 0
            while came < 400 and not over.is_set():
                with contextlib.suppress(OSError):
                    at = ("127.0.0.1", port)
                    crowd.enter_context(socket.create_connection(at, timeout=1))
                    came += 1

        pushing = pool.submit(push)
        try:
            server = started(tmp_path / "log", "few_files", port=port)
        finally:
            over.set()
            pushing.result()
    with server, server.client() as client:
        assert client.get("health").json()["status"] == "ok"
