"""Requests that the guard refuses before they reach Gradio, and what it notices."""

import asyncio
import itertools
import json
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from kit import aio
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from transformer.checks import InvalidRequest
from transformer.inference import deadline
from transformer.messages import languages, speaking
from transformer.server.http import addresses, errors, guard, http_server, limits
from transformer.server.http.addresses import hosts_for
from transformer.server.http.guard import Guard, safe_headers
from transformer.server.http.requests import OpenRequests, caller, shares
from transformer.server.http.slots import Caller
from transformer.server.kept import service
from transformer.server.page.pages import POLICY, Descriptions, policy_for

Headers = Sequence[tuple[bytes, bytes]]
IN_JSON: Headers = ((b"content-type", b"application/json"),)
API, RESOURCES = f"{guard.API}/", f"{guard.RESOURCES}/"
JOIN, TOOLS = API + "queue/join", API + "mcp/"
GONE = {"type": "http.disconnect"}


class Inside:
    """The app behind the gate: keeps the scopes that it was asked with, and reads the body."""

    def __init__(self, error: Exception | None = None) -> None:
        self.scopes: list[Any] = []
        self.callers: list[Caller] = []
        self.error = error

    @property
    def asked(self) -> list[str]:
        return [scope["path"] for scope in self.scopes]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        self.callers.append(caller())
        await receive()
        if self.error:
            raise self.error
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await receive()
        await send({"type": "http.response.body", "body": b"{}"})


def gate_before(inside: Any, tools: bool = False) -> Guard:
    return Guard(tools=tools, policy=POLICY).around(inside)


def asked_for(path: str, **more: Any) -> dict[str, Any]:
    """A request's scope."""
    method = {"type": "http", "method": "POST", "client": ("127.0.0.1", 1)}
    return {**method, "path": path, "headers": IN_JSON, "query_string": b"", **more}


async def answered(
    gate: Guard, path: str, *messages: dict[str, Any], receive: Any = None, **asked: Any
) -> tuple[int, Any]:
    """(status, content) of one request; asked: other parts of its scope."""
    coming, sent = list(messages) or [body(b"")], list[dict[str, Any]]()

    async def comes() -> dict[str, Any]:
        return coming.pop(0) if coming else GONE

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await gate(asked_for(path, **asked), receive or comes, send)
    return sent[0]["status"], json.loads(sent[1]["body"] or b"null")


def exchange(
    inside: Any, path: str, *messages: dict[str, Any], tools: bool = False, **asked: Any
) -> tuple[int, Any]:
    """`answered` by a new guard in front of `inside`."""
    return aio.run(answered(gate_before(inside, tools), path, *messages, **asked))


def body(content: bytes, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": content, "more_body": more}


def named(session: bytes) -> Headers:
    return [*IN_JSON, (guard.SESSION.encode(), session)]


# --- what comes in and what does not --------------------------------------------------------------

CLOSED_PATHS = [
    "/monitoring", "/docs", "/openapi.json", "/login", "/svelte/x", "/configs", "/x",
    *(API + name for name in (
        "upload", "file=/etc/passwd", "proxy=http://a.example", "vibe-code/", "deep_link",
        "stream/a/b", "run/generate", "heartbeat/x", "user", "callx", "queue/", "queue/status",
        "info/x", "mcp", "mcp/", "process_recording", "custom_component/a/client/b/c")),
]  # fmt: skip
TOOL_DOORS = ["sse", "messages/", "schema", "http", "http/", "x", "../mcp", "</script>/mcp"]
PLAIN = ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"]
POSTED = [RESOURCES + "x", JOIN, API + "call/generate", API + "cancel"]
CROSS = (b"sec-fetch-site", b"cross-site")
METHOD = "A request's method must be one of {}."
WANTED = "A request must have the content type application/json; got"
SIZED = [*IN_JSON, (b"content-length", b"262145")]
MANY = limits.MAX_REQUEST_VALUES // 2
TOOLED = {"tools": True}
# Status, sentence, paths, and the requests that each of these paths refuses with it.
REFUSED: list[tuple[int, str, list[str], list[dict[str, Any]]]] = [
    (404, str(errors.CLOSED), CLOSED_PATHS, [{}]),
    (404, str(errors.CLOSED), [f"{API}mcp/{door}" for door in TOOL_DOORS], [TOOLED]),
    (405, METHOD.format("POST"), [TOOLS, TOOLS[:-1]], [TOOLED | {"method": "GET"}]),
    (405, METHOD.format("POST"), [TOOLS, TOOLS[:-1]], [TOOLED | {"method": "DELETE"}]),
    (413, str(errors.TOO_LARGE), [TOOLS, JOIN], [TOOLED | {"headers": SIZED}]),
    *(
        (
            405,
            METHOD.format("GET, HEAD, POST, OPTIONS"),
            ["/health", "/", JOIN],
            [{"method": method}],
        )
        for method in ("CONNECT", "TRACE", "PUT", "BREW")
    ),
    # Another site's page may send these types at once, and JSON after a preflight alone.
    *(
        (415, f"{WANTED} '{kind}'.", POSTED, [{"headers": [(b"content-type", kind.encode())]}])
        for kind in PLAIN
    ),
    (415, f"{WANTED} ''.", POSTED, [{"headers": []}]),
    # Each value is an object for the parser, and depth for code that walks them.
    (
        413,
        str(errors.TOO_MANY),
        POSTED,
        [
            {"sent": sent}
            for sent in (b"[" + b"[]," * MANY + b"[]]", b"[" * 2 * MANY + b"[", b"{," * MANY + b",")
        ],
    ),
    (400, str(errors.NO_HASH), ["/leave", POSTED[0]], [{"headers": named(b"x" * 65)}]),
    (403, str(errors.FOREIGN), ["/leave", POSTED[0]], [{"headers": [*named(b"abc"), CROSS]}]),
]


def test_bad_requests_are_refused_before_gradio_sees_them():
    for status, sentence, paths, requests in REFUSED:
        for path, asked in itertools.product(paths, requests):
            inside = Inside()
            given = {name: value for name, value in asked.items() if name != "sent"}
            found = exchange(inside, path, body(asked.get("sent", b"")), **given)
            assert (found[0], found[1]["detail"]) == (status, sentence), (path, asked)
            assert re.fullmatch("[a-z_]+", found[1]["code"]), (path, asked)
            assert inside.asked == [], (path, asked)


def test_the_body_limit_counts_received_bytes():
    half = body(b"x" * (limits.MAX_REQUEST_BYTES // 2 + 1), more=True)
    assert exchange(Inside(), JOIN, half, half) == (413, errors.public_error(errors.TOO_LARGE))
    assert exchange(Inside(), JOIN, half, body(b""))[0] == 200


def test_a_slow_body_times_out(monkeypatch):
    monkeypatch.setattr(guard, "CLIENT_S", 0.02)

    async def drips() -> dict[str, Any]:
        await asyncio.sleep(0.005)
        return body(b"{", more=True)

    assert exchange(Inside(), JOIN, receive=drips) == (408, errors.public_error(errors.TOO_SLOW))


def test_query_parameters_that_could_leak_do_not_reach_gradio():
    for path, given, passed in (
        ("/config", b"deep%5Flink=abc&page=x", b"page="),
        (API + "info", b"serialize=False&all_endpoints=1", b"page=&all_endpoints=true"),
    ):
        inside = Inside()
        descriptions = Descriptions(inside, shares()["pages"])
        exchange(descriptions, path, method="GET", query_string=given, scheme="http")
        assert [scope["query_string"] for scope in inside.scopes] == [passed]


# --- mistakes, and who leaves ---------------------------------------------------------------------


def test_an_internal_error_is_reported_without_its_values(capsys):
    foreign = exchange(Inside(KeyError("my secret")), JOIN)
    assert foreign == (400, errors.public_error(errors.UNREADABLE))
    assert capsys.readouterr() == ("", "")

    async def ours(scope: Any, receive: Any, send: Any) -> None:
        service.lines_of({"my secret": 1})

    assert exchange(ours, "/") == (500, errors.public_error(errors.MISTAKE))
    out, log = capsys.readouterr()
    assert re.fullmatch(
        r"a mistake: ValueError in transformer/checks\.py, check_text, line \d+\n", log
    )
    assert out == ""


def test_a_visitor_who_leaves_is_reported_by_session():
    """All tools' calls are of no session: an empty name would end them all."""
    left: list[str] = []
    for headers in ((), named(b""), named(b"closes")):
        inside = Inside()
        assert exchange(inside, "/leave", headers=headers)[0] == 200
        OpenRequests(left.append).leave(inside.callers[0].session)
    assert left == ["closes"]


def test_a_request_belongs_to_its_session():
    inside = Inside()
    for asked in ({"headers": named(b"mine")}, {"headers": named(b"mine"), "method": "GET"}, {}):
        exchange(inside, RESOURCES + "heatmap", **asked)
    assert inside.callers == [Caller("127.0.0.1", session) for session in ("mine", "mine", "")]


def test_a_request_is_cancelled_when_its_client_disconnects():
    async def inside(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        while not deadline.is_over():
            await asyncio.sleep(0)
        assert await asyncio.to_thread(deadline.is_over)
        await Inside()(None, receive, send)

    assert exchange(inside, RESOURCES + "heatmap", body(b"{}"), GONE)[0] == 200


def test_a_server_shutting_down_begins_no_more_answers():
    inside = Inside()
    gate = gate_before(inside)
    gate.ending = True
    for method, path in (("GET", "/"), ("GET", "/health"), ("POST", JOIN)):
        answer = aio.run(answered(gate, path, body(b"{}"), method=method))
        assert answer == (503, errors.public_error(errors.ENDING))
    assert inside.asked == []


def test_lines_that_are_under_way_end_with_a_sentence():
    sent: list[Any] = []

    async def lines() -> AsyncIterator[str]:
        yield "{}\n"
        await asyncio.Event().wait()

    async def ended() -> None:
        coming = [body(b"{}")]

        async def comes() -> dict[str, Any]:
            return coming.pop() if coming else await asyncio.Future()

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        gate = gate_before(StreamingResponse(lines(), media_type=guard.LINES))
        answering = asyncio.create_task(gate(asked_for(RESOURCES + "runs"), comes, send))
        while len(sent) < 2:
            await asyncio.sleep(0)
        gate.end()
        await answering

    aio.run(ended())
    *_, last = b"".join(one["body"] for one in sent[1:]).splitlines()
    assert json.loads(last) == errors.public_error(errors.ENDING)
    assert not sent[-1].get("more_body")


# --- headers --------------------------------------------------------------------------------------


def test_answers_vary_by_language_and_forbid_type_sniffing():
    given = [(b"content-type", b"text/css")]
    always = {b"x-content-type-options": b"nosniff", b"referrer-policy": b"no-referrer"}
    assert dict(safe_headers(given, POLICY)) == dict(given) | always
    own = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    assert dict(safe_headers([*own, (b"vary", b"Origin")], POLICY)) == {
        **dict(own), b"vary": b"Origin, Accept-Language", **always,
    }  # fmt: skip
    named = [(b"vary", b"Accept, Accept-Language")]
    assert dict(safe_headers([*own, *named], POLICY))[b"vary"] == named[0][1]


@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        ("http://elsewhere.example/sub/resources/heatmap?a=1", b"/sub/resources/heatmap?a=1"),
        ("https://elsewhere.example//other.example/", b"/other.example/"),
        ("/gradio_api/info", b"/gradio_api/info"),
    ],
)
def test_a_redirect_never_leaves_the_host(place, wanted):
    assert dict(safe_headers([(b"location", place.encode())], POLICY))[b"location"] == wanted


def test_only_named_pages_may_show_the_page_inside_them():
    assert "https://huggingface.co" in POLICY.split("frame-ancestors", 1)[1]
    others = ["https://courses.example", "http://10.0.0.7:8000", "https://*.school.example"]
    assert policy_for(others) == f"{POLICY} {' '.join(others)}"
    for one in ("*", "https://a.example/x", "https://a;script-src *", "a.example", "", "data:"):
        with pytest.raises(ValueError, match="https://HOST"):
            policy_for([one])

    gate = gate_before(HTMLResponse(""))
    gate.policy = policy_for(others)
    assert aio.answer(gate, "/").headers["content-security-policy"] == gate.policy


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("localhost:7860", 200), ("127.0.0.1", 200), ("[::ffff:127.0.0.1]:80", 200),
        ("[::ffff:10.0.0.1]", 421), ("[::1]:7860", 200), ("viz.example", 200),
        ("VIZ.example:80", 200), ("", 421), ("evil.example:7860", 421), ("10.0.0.1", 421),
        ("localhost.evil.example", 421), ("[::1", 421), ("127.0.0.1.evil.example", 421),
    ],
)  # fmt: skip
def test_a_local_server_refuses_other_host_names(name, status, monkeypatch):
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    inside = Inside()
    gate = gate_before(inside)
    gate.hosts = hosts_for("127.0.0.1", ["viz.example"], "")
    got, content = exchange(gate, "/", method="GET", headers=[(b"host", name.encode())])
    assert got == status
    assert bool(inside.scopes) == (status == 200)
    if status == 421:
        assert content["code"] == "unknown_host"


def test_host_checks_are_off_on_a_network_or_behind_a_proxy(monkeypatch):
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    assert hosts_for("0.0.0.0", [], "") is None
    assert hosts_for("::", [], "") is None
    assert hosts_for("127.0.0.1", ["*"], "") is None
    assert hosts_for("127.0.0.1", [], "https://viz.example/below") == {"viz.example"}
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "127.0.0.1")
    assert hosts_for("::1", [], "") is None


def test_a_long_query_is_refused_before_it_is_parsed():
    long, many = b"a=" + b"b" * limits.MAX_QUERY_BYTES, b"a&" * limits.MAX_PARAMETERS
    for path in ("/health", "/", RESOURCES + "heatmap", API + "queue/data"):
        for query in (long, many):
            inside = Inside()
            found = exchange(inside, path, method="GET", query_string=query)
            assert found == (414, errors.public_error(errors.TOO_LONG))
            assert inside.asked == []


@pytest.mark.parametrize(
    ("query", "language"),
    [
        (b"__lang=fr", "fr"), (b"run=a&__lang=zh&head=1", "zh"), (b"__lang=de&__lang=fr", "de"),
        (b"x__lang=fr", "en"), (b"__lang=f%72", "en"), (b"__lang=", "en"), (b"", "en"),
    ],
)  # fmt: skip
def test_the_language_is_found_in_a_query(query, language):
    assert guard.language_of(asked_for(RESOURCES + "heatmap", query_string=query)) == language


def test_bodies_that_come_at_once_are_parsed_one_by_one(monkeypatch):
    """Between two the loop goes once around, so that others are answered."""
    seen: list[str] = []
    loads = json.loads
    monkeypatch.setattr(guard.json, "loads", lambda text: seen.append("parse") or loads(text))

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        await guard.object_in(Request(scope, receive))
        await Response()(scope, receive, send)

    async def burst() -> None:
        async def others() -> None:
            while seen.count("parse") < 20:
                seen.append("other")
                await asyncio.sleep(0)

        gate, sent = gate_before(inside), list[Any]()

        async def send(message: Any) -> None:
            sent.append(message)

        async def one() -> None:
            coming = [body(b"{}")]

            async def comes() -> Any:
                return coming.pop() if coming else await asyncio.Future()

            await gate(asked_for(RESOURCES + "kept"), comes, send)

        await asyncio.gather(others(), *(one() for _ in range(20)))

    aio.run(burst())
    assert seen.count("parse") == 20
    assert "parse, parse" not in ", ".join(seen)


# --- in the visitor's language --------------------------------------------------------------------


@pytest.mark.parametrize("language", [one for one in languages() if one != "en"])
def test_every_refusal_is_in_the_language_that_is_asked_for(language):
    """Each case of REFUSED, a long query, and each sentence that is declared for all routes."""
    asked_in = {"query_string": f"__lang={language}".encode()}
    long = (414, str(errors.TOO_LONG), [RESOURCES + "x"], [{"long": b"&" * 64}])
    for status, sentence, paths, requests in (*REFUSED, long):
        for asked in requests:
            given = {key: value for key, value in asked.items() if key not in ("sent", "long")}
            query = asked_in["query_string"] + asked.get("long", b"")
            sent = body(asked.get("sent", b""))
            found = exchange(Inside(), paths[0], sent, query_string=query, **given)
            assert found[0] == status
            assert found[1]["detail"] != sentence
    declared = [one for one in vars(errors).values() if isinstance(one, InvalidRequest)]
    assert len(declared) > 15
    with speaking(language):
        assert [one for one in declared if errors.public_error(one)["detail"] == str(one)] == []


def test_no_module_before_the_routes_declares_a_sentence_as_english_alone():
    for module in (guard, errors, addresses, http_server):
        assert "InvalidCall" not in Path(module.__file__).read_text(encoding="utf-8")
