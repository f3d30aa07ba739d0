"""What is refused before it comes to the page's framework, and what is noticed there."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any

import loops
import pytest

from transformer.inference import deadline
from transformer.ui import request_guard
from transformer.ui.asgi_guard import API, FROM, RESOURCES, SESSION, AsgiGuard, is_open
from transformer.ui.fair_scheduler import Asker
from transformer.ui.limits import (
    BUSY,
    CLOSED,
    ENDING,
    FOREIGN,
    MAX_CALLS,
    MAX_CALLS_WAITING,
    MAX_REQUEST_BYTES,
    METHODS_ONLY,
    NO_HASH,
    POST_ONLY,
    TOO_LARGE,
    TOO_SLOW,
    lines_of,
)
from transformer.ui.request_guard import POLICY, policy_for, safe_headers
from transformer.ui.sessions import asker, shares

Headers = Sequence[tuple[bytes, bytes]]
IN_JSON: Headers = ((b"content-type", b"application/json"),)


class Inside:
    """The app behind the gate: remembers what it was asked, and reads the body if it is to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[str] = []
        self.error = error

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append(scope["path"])
        while (await receive()).get("more_body"):
            pass
        if self.error:
            raise self.error
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await receive()
        await send({"type": "http.response.body", "body": b"{}"})


def exchange(
    inside: Any,
    path: str,
    *messages: dict[str, Any],
    method: str = "POST",
    query: bytes = b"",
    length: int | None = None,
    left: list[str] | None = None,
    tools: bool = False,
    headers: Headers = IN_JSON,
) -> tuple[int, Any]:
    """(status, content) of one request to a gate before `inside`."""
    gate = gate_before(inside, left=left, tools=tools)
    asked = {"method": method, "query": query, "length": length, "headers": headers}
    return loops.run(answered(gate, path, *messages, **asked))


@pytest.mark.parametrize(
    "given", [b'""', b'"' + b"x" * 65 + b'"', b"1", b"[]", b"true", b'{"a": 1}']
)
@pytest.mark.parametrize("path", ["queue/join", "call/generate", "cancel"])
def test_a_session_that_cannot_be_one_is_refused_before_the_queue_sees_it(
    path: str, given: bytes
) -> None:
    inside = Inside()
    sent = body(b'{"data": [], "session_hash": ' + given + b"}")
    assert exchange(inside, API + path, sent) == (400, {"detail": NO_HASH})
    assert inside.asked == []


@pytest.mark.parametrize("given", [b'"a"', b'"' + b"x" * 64 + b'"', b"null"])
def test_a_session_that_may_be_one_comes_to_the_queue_with_all_that_was_sent(given: bytes) -> None:
    got = []

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        got.append(await receive())
        await Inside()(scope, receive, send)

    whole = b'{"data": ["words"], "session_hash": ' + given + b"}"
    halves = [body(whole[:9], more=True), body(whole[9:])]
    assert exchange(inside, API + "queue/join", *halves)[0] == 200
    assert (got[0]["body"], got[0]["more_body"]) == (whole, False)


def test_a_queue_that_has_ended_is_told_by_the_health(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = gate_before(Inside())
    gate.health = lambda: {"status": "stopped"}
    assert loops.run(answered(gate, "/health", method="GET")) == (503, {"status": "stopped"})


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_guard, "BODY_S", 0.02)

    async def asked() -> tuple[int, Any]:
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(0.005)
            return body(b"{", more=True)

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": API + "queue/join", "headers": IN_JSON}
        await gate_before(Inside())({**scope, "query_string": b""}, receive, send)
        return sent[0]["status"], json.loads(sent[1]["body"])

    assert loops.run(asked()) == (408, {"detail": TOO_SLOW})


def gate_before(inside: Any, *, left: list[str] | None = None, tools: bool = False) -> AsgiGuard:
    return AsgiGuard(
        inside,
        health=lambda: {"status": "ok"},
        shares=shares(),
        leave=[].append if left is None else left.append,
        tools=tools,
    )


async def answered(
    gate: AsgiGuard,
    path: str,
    *messages: dict[str, Any],
    method: str = "POST",
    query: bytes = b"",
    length: int | None = None,
    headers: Headers = IN_JSON,
    client: str = "127.0.0.1",
) -> tuple[int, Any]:
    coming = [*messages, {"type": "http.request", "body": b""}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return coming.pop(0) if coming else {"type": "http.request", "body": b""}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    sized = [] if length is None else [(b"content-length", str(length).encode())]
    scope = {"type": "http", "method": method, "path": path, "headers": [*headers, *sized]}
    await gate({**scope, "query_string": query, "client": (client, 1)}, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"] or b"null")


def body(content: bytes, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": content, "more_body": more}


GONE = {"type": "http.disconnect"}


def test_health_is_answered_at_the_gate() -> None:
    inside = Inside()
    assert exchange(inside, "/health", method="GET") == (200, {"status": "ok"})
    assert inside.asked == []


@pytest.mark.parametrize(
    "path",
    ["/", "/config", "/theme.css", "/assets/index.js", API + "queue/join", API + "queue/data",
     RESOURCES + "heatmap", API + "call/generate", API + "info", API + "app_id"],
)  # fmt: skip
def test_what_the_page_uses_is_open(path: str) -> None:
    inside = Inside()
    assert exchange(inside, path)[0] == 200
    assert inside.asked == [path]
    assert is_open(path)


def test_the_pages_modules_never_come_to_the_framework() -> None:
    inside = Inside()
    assert exchange(inside, "/modules/x/web/store.js", method="GET")[0] == 404
    assert inside.asked == []


def test_a_body_is_bounded_by_what_it_says_and_by_what_it_is() -> None:
    said = exchange(Inside(), API + "queue/join", length=MAX_REQUEST_BYTES + 1)
    assert said == (413, {"detail": f"{TOO_LARGE}; got 1,000,001."})
    half = body(b"x" * (MAX_REQUEST_BYTES // 2 + 1), more=True)
    assert exchange(Inside(), API + "queue/join", half, half) == (413, {"detail": f"{TOO_LARGE}."})
    assert exchange(Inside(), API + "queue/join", half, body(b""))[0] == 200


TOOL_PATHS = (API + "mcp", API + "mcp/")


@pytest.mark.parametrize("path", TOOL_PATHS)
def test_tools_are_called_by_post_where_they_are_served_and_nowhere_else(path: str) -> None:
    assert exchange(Inside(), path) == (404, {"detail": CLOSED})
    inside = Inside()
    assert exchange(inside, path, tools=True) == (200, {})
    assert inside.asked == [path]
    for method in ("GET", "DELETE"):
        refused = exchange(inside, path, method=method, tools=True)
        assert refused == (405, {"detail": POST_ONLY})
    assert exchange(inside, path, tools=True, length=MAX_REQUEST_BYTES + 1)[0] == 413
    assert inside.asked == [path]


@pytest.mark.parametrize(
    "rest",
    ["sse", "messages/", "schema", "http", "http/", "x", "../mcp", "</script>/gradio_api/mcp"],
)
def test_other_doors_of_the_tools_are_shut_even_where_they_are_served(rest: str) -> None:
    inside = Inside()
    assert exchange(inside, f"{API}mcp/{rest}", tools=True) == (404, {"detail": CLOSED})
    assert inside.asked == []


def test_the_frameworks_own_request_for_a_tool_comes_from_where_the_call_does() -> None:
    async def both() -> list[Any]:
        seen: list[Any] = []

        async def inside(scope: Any, receive: Any, send: Any) -> None:
            seen.append(scope)
            await Inside()(scope, receive, send)

        gate = gate_before(inside, tools=True)
        forged = [*IN_JSON, (FROM, b"10.0.0.1"), (FROM, b"guessed 10.0.0.1")]
        await answered(gate, TOOL_PATHS[1], headers=forged, client="10.0.0.9")
        await answered(gate, f"{API}call/x", headers=seen[0]["headers"], client="127.0.0.1")
        await answered(gate, f"{API}call/x", headers=forged, client="10.0.0.9")
        return [(scope["client"][0], len(scope["headers"])) for scope in seen]

    assert loops.run(both()) == [("10.0.0.9", 2), ("10.0.0.9", 1), ("10.0.0.9", 1)]


def test_only_so_many_calls_of_tools_are_under_way_and_others_wait_or_are_refused() -> None:
    async def many() -> tuple[int, list[Any]]:
        go_on, begun = asyncio.Event(), []

        async def inside(scope: Any, receive: Any, send: Any) -> None:
            begun.append(scope)
            await go_on.wait()
            await Inside()(scope, receive, send)

        gate = gate_before(inside, tools=True)
        at_once = int(gate.shares["tools"].resource.address or 0)
        count = at_once + MAX_CALLS_WAITING
        calls = [asyncio.ensure_future(answered(gate, TOOL_PATHS[1])) for _ in range(count + 1)]
        while len(begun) < at_once:
            await asyncio.sleep(0.001)
        assert await calls.pop() == (503, {"detail": BUSY})
        go_on.set()
        return count, [status for status, _ in await asyncio.gather(*calls)]

    count, found = loops.run(many())
    assert found == [200] * count


def test_a_mistake_inside_is_a_sentence_without_its_values(
    capsys: pytest.CaptureFixture[str],
) -> None:
    foreign = exchange(Inside(KeyError("my secret")), API + "queue/join")
    assert foreign == (400, {"detail": "The request could not be read."})
    assert capsys.readouterr() == ("", "")

    async def ours(scope: Any, receive: Any, send: Any) -> None:
        lines_of({"my secret": 1})

    assert exchange(ours, "/") == (500, {"detail": "The server made a mistake."})
    out, told = capsys.readouterr()
    assert re.fullmatch(r"ValueError in limits\.py, line \d+\n", told)
    assert out == ""


def test_who_goes_before_the_answer_is_finished_is_told_by_name() -> None:
    left: list[str] = []
    exchange(
        Inside(),
        API + "queue/data",
        body(b""),
        GONE,
        method="GET",
        query=b"session_hash=abc",
        left=left,
    )
    exchange(Inside(), API + "call/generate/event1", body(b""), GONE, method="GET", left=left)
    exchange(Inside(), API + "call/generate", body(b""), GONE, left=left)
    exchange(Inside(), API + "queue/data", method="GET", query=b"session_hash=stays", left=left)
    assert left == ["abc", "event1"]


def named(session: bytes) -> Headers:
    return [*IN_JSON, (SESSION, session)]


def test_a_question_is_its_sessions() -> None:
    async def inside(scope: Any, receive: Any, send: Any) -> None:
        asked.append(asker())
        await Inside()(scope, receive, send)

    asked: list[Asker] = []
    for method in ("GET", "POST"):
        exchange(inside, RESOURCES + "heatmap", method=method, headers=named(b"mine"))
    exchange(inside, RESOURCES + "heatmap")
    assert asked == [Asker("127.0.0.1", session) for session in ("mine", "mine", "")]


def stopped_by(*messages: dict[str, Any]) -> bool:
    """Whether what a question runs in its thread hears that it is to stop."""
    heard = []

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await asyncio.sleep(0.02)
        heard.append(await asyncio.to_thread(deadline.is_over))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def asked() -> None:
        coming = [body(b"{}"), *messages]

        async def receive() -> dict[str, Any]:
            return coming.pop(0) if coming else await asyncio.sleep(60) or {}

        async def send(_: dict[str, Any]) -> None:
            pass

        scope = {"type": "http", "method": "POST", "path": RESOURCES + "heatmap"}
        await gate_before(inside)({**scope, "headers": IN_JSON, "query_string": b""}, receive, send)

    loops.run(asked())
    return bool(heard[0])


def test_a_question_whose_asker_has_gone_is_told_to_stop() -> None:
    assert stopped_by(GONE)
    assert not stopped_by()


def test_what_leaves_without_a_name_is_nobody() -> None:
    """All tools' calls are of no session: an empty name would end them all."""
    left: list[str] = []
    assert exchange(Inside(), "/leave", left=left) == (204, None)
    assert exchange(Inside(), "/leave", headers=named(b""), left=left) == (204, None)
    for path in ("/leave", RESOURCES + "heatmap"):
        got = exchange(Inside(), path, headers=named(b"x" * 65), left=left)
        assert got == (400, {"detail": NO_HASH})
    assert left == []


@pytest.mark.parametrize(
    "path", [RESOURCES + "x", *(API + name for name in ("queue/join", "call/generate", "cancel"))]
)
@pytest.mark.parametrize(
    "kind", ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"]
)
def test_what_a_browser_sends_without_asking_first_is_refused(path: str, kind: str) -> None:
    """Another site's page may send these types at once, and JSON after a preflight alone."""
    inside = Inside()
    got = exchange(inside, path, body(b"{}"), headers=[(b"content-type", kind.encode())])
    told = f"A request must have the content type application/json; got '{kind}'."
    assert got == (415, {"detail": told})
    nothing = exchange(inside, path, body(b"{}"), headers=[])
    assert nothing == (415, {"detail": told.replace(f"'{kind}'", "none")})
    assert inside.asked == []


@pytest.mark.parametrize("path", ["/leave", RESOURCES + "heatmap"])
def test_a_page_of_another_site_may_not_ask_what_the_page_asks(path: str) -> None:
    left: list[str] = []
    for site, status in (("cross-site", 403), ("same-origin", None), ("none", None)):
        headers = [*named(b"abc"), (b"sec-fetch-site", site.encode())]
        got = exchange(Inside(), path, headers=headers, left=left)
        assert got == (403, {"detail": FOREIGN}) if status else got[0] in (200, 204)
    assert left == (["abc"] * 2 if path == "/leave" else [])


def test_a_server_that_ends_refuses_new_requests_but_not_streams_that_wait_for_an_end() -> None:
    inside = Inside()
    gate = gate_before(inside)
    gate.shutdown.begun = True
    for method, path in (("GET", "/"), ("GET", "/health"), ("POST", API + "queue/join")):
        answer = loops.run(answered(gate, path, body(b"{}"), method=method))
        assert answer == (503, {"detail": ENDING})
    assert inside.asked == []
    stream = API + "queue/data"
    assert loops.run(answered(gate, stream, method="GET", query=b"session_hash=a"))[0] == 200
    assert inside.asked == [stream]


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "PUT", "BREW"])
def test_other_methods_are_refused_in_a_sentence(method: str) -> None:
    for path in ("/health", "/", API + "queue/join"):
        assert exchange(Inside(), path, method=method) == (405, {"detail": METHODS_ONLY})


@pytest.mark.parametrize(
    ("path", "given", "passed"),
    [
        ("/", b"deep_link=abc&__theme=dark", b"__theme=dark"),
        ("/config", b"deep%5Flink=abc", b""),
        ("/", b"z=%2B%20&q=", b"z=%2B%20&q="),
        (API + "info", b"", b"page="),
        (API + "info/", b"serialize=False", b"serialize=False&page="),
        (API + "info", b"page=x", b"page=x"),
        (API + "queue/data", b"session_hash=abc", b"session_hash=abc"),
    ],
)
def test_gradio_gets_only_what_it_keeps_from_other_visitors(
    path: str, given: bytes, passed: bytes
) -> None:
    got = []

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        got.append(scope["query_string"])
        await Inside()(scope, receive, send)

    assert exchange(inside, path, method="GET", query=given)[0] == 200
    assert got == [passed]


def test_half_sent_calls_of_tools_do_not_keep_the_others_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def many() -> tuple[int, Any]:
        gate = gate_before(Inside(), tools=True)

        async def never() -> dict[str, Any]:
            await asyncio.sleep(60)
            return GONE

        async def send(_: dict[str, Any]) -> None:
            pass

        scope = {"type": "http", "method": "POST", "path": TOOL_PATHS[1], "headers": IN_JSON}
        scope |= {"query_string": b""}
        half = [asyncio.ensure_future(gate(scope, never, send)) for _ in range(MAX_CALLS)]
        await asyncio.sleep(0.01)
        answer = await answered(gate, TOOL_PATHS[1])
        for call in half:
            call.cancel()
        return answer

    assert loops.run(many()) == (200, {})


def test_headers_keep_a_page_to_its_own_server() -> None:
    given = [(b"content-type", b"text/css")]
    assert safe_headers(given) == [*given, (b"x-content-type-options", b"nosniff")]
    page = dict(safe_headers([(b"content-type", b"text/html; charset=utf-8")]))
    assert (page[b"cache-control"], page[b"vary"]) == (b"no-cache", b"Accept-Language")
    own = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    assert dict(safe_headers([*own, (b"vary", b"Origin")])) == {
        **dict(own), b"vary": b"Origin, Accept-Language", b"x-content-type-options": b"nosniff",
    }  # fmt: skip
    policy = page[b"content-security-policy"].decode()
    for part in ("connect-src 'self'", "img-src 'self' data: blob:", "object-src 'none'"):
        assert part in policy
    assert "https://huggingface.co" in policy.split("frame-ancestors", 1)[1]


def test_only_named_pages_may_show_the_page_inside_them() -> None:
    assert policy_for([]) == POLICY
    named = ["https://courses.example", "http://10.0.0.7:8000", "https://*.school.example"]
    assert policy_for(named) == f"{POLICY} {' '.join(named)}"
    for one in ("*", "https://a.example/x", "https://a;script-src *", "a.example", "", "data:"):
        with pytest.raises(ValueError, match="https://HOST"):
            policy_for([one])

    async def html(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/html")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    gate = gate_before(html)
    gate.policy = policy_for(named)
    scope = {
        "type": "http", "path": "/", "method": "GET", "headers": [], "query_string": b"",
    }  # fmt: skip
    loops.run(gate(scope, send, send))
    assert (b"content-security-policy", policy_for(named).encode()) in sent[0]["headers"]


def test_a_page_that_closes_says_who_leaves() -> None:
    left: list[str] = []
    assert exchange(Inside(), "/leave", headers=named(b"abc"), left=left) == (204, None)
    assert left == ["abc"]


@pytest.mark.parametrize(
    "path",
    ["/monitoring", "/docs", "/openapi.json", "/login", "/svelte/x", "/configs", "/x",
     *(API + name for name in ("upload", "file=/etc/passwd", "proxy=http://a.example", "vibe-code/",
                               "deep_link", "stream/a/b", "run/generate", "heartbeat/x", "user",
                               "callx", "queue/", "queue/status", "info/x"))],
)  # fmt: skip
def test_what_is_not_named_is_closed(path: str) -> None:
    inside = Inside()
    assert exchange(inside, path) == (404, {"detail": CLOSED})
    assert inside.asked == []
