"""Calls of programs: when they are computed, what ends them, and what is said of them."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import orjson
import pytest
import uvicorn
from fastapi import FastAPI
from kit import aio
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from transformer import Model
from transformer.inference import deadline
from transformer.server import application
from transformer.server.http import http_server
from transformer.server.http.errors import (
    CLOSED,
    ENDING,
    HANDLERS,
    MISTAKE,
    NO_EVENT,
    NO_HASH,
    Busy,
    public_error,
)
from transformer.server.http.limits import MAX_CALLS, MAX_UNREAD_ANSWERS
from transformer.server.http.requests import Streamed
from transformer.server.kept.service import Service
from transformer.server.kept.store import CALLS, Limits, MemoryBudget
from transformer.server.programs import protocol
from transformer.server.programs.api import Endpoint
from transformer.server.programs.protocol import (
    Message,
    Programs,
    _data,
    _encoded,
    program_routes,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def service(tiny_model: Model) -> Service:
    return Service([tiny_model], trainings=0)


def programs(service: Service, *functions: Callable[..., Any]) -> Programs:
    endpoints = {each.__name__: Endpoint(each, "events") for each in functions}
    return Programs(service, endpoints, {})


def post(asked: Programs, stream: str, name: str, *inputs: Any, n_bytes: int = 1) -> str:
    call = asked.call_of(name, list(inputs), stream, n_bytes)
    return str(asked.post(stream, call)["event_id"])


async def read(asked: Programs, stream: str) -> list[Message | None]:
    return [message async for message in asked.messages(stream)]


def test_a_call_is_computed_once_its_stream_is_read(service: Service) -> None:
    computed: list[int] = []

    def double(number: int) -> int:
        computed.append(number)
        return 2 * number

    async def calls() -> None:
        asked = programs(service, double)
        events = [post(asked, "mine", "double", number) for number in (1, 2)]
        await asyncio.sleep(0.05)
        assert computed == []
        found = {it["event_id"]: it["output"]["data"] for it in await read(asked, "mine") if it}
        assert found == {events[0]: [2], events[1]: [4]}
        assert await read(asked, "mine") == []

    aio.run(calls())


def test_a_call_posted_meanwhile_is_answered_on_the_open_stream(service: Service) -> None:
    go_on = threading.Event()

    def wait(number: int) -> int:
        assert go_on.wait(60)
        return number

    async def calls() -> list[Any]:
        asked = programs(service, wait)
        post(asked, "mine", "wait", 1)
        reading = asyncio.create_task(read(asked, "mine"))
        await asyncio.sleep(0.05)
        post(asked, "mine", "wait", 2)
        await asyncio.sleep(0.05)
        go_on.set()
        return sorted(it["output"]["data"][0] for it in await reading if it)

    assert aio.run(calls()) == [1, 2]


@pytest.mark.parametrize("end", ["leave", "cancel", "shut down"])
def test_a_call_ends_with_its_client_or_its_server(service: Service, end: str) -> None:
    ended, begun = threading.Event(), threading.Event()

    def endless() -> None:
        begun.set()
        while not deadline.is_over():
            pass
        ended.set()

    async def calls() -> list[Message | None]:
        asked = programs(service, endless)
        event = post(asked, "mine", "endless")
        reading = asyncio.create_task(read(asked, "mine"))
        assert await asyncio.to_thread(begun.wait, 60)
        if end == "leave":
            reading.cancel()
        elif end == "cancel":
            asked.cancel(event, "another")
            await asyncio.sleep(0.05)
            assert not ended.is_set()
            asked.cancel(event, "mine")
        else:
            asked.end()
        assert await asyncio.to_thread(ended.wait, 60)
        return [] if end == "leave" else await reading

    (last,) = aio.run(calls()) or [None]
    error = {"error": str(ENDING), "title": ENDING.code}
    outputs = {"leave": None, "cancel": {}, "shut down": error}
    assert (last["output"] if last else None) == outputs[end]


def test_unread_calls_are_bounded_in_number_and_bytes(service: Service) -> None:
    asked = programs(service, len)
    kept, service.budget = service.budget, MemoryBudget(10**9, {CALLS: Limits(most_bytes=5_000)})
    try:
        for stream in ("a", "b", "c"):
            post(asked, stream, "len", "x", n_bytes=1_500)
        assert [asked.has(stream) for stream in ("a", "b", "c")] == [False, True, True]
        for _ in range(MAX_CALLS):
            post(asked, "many", "len", "x")
        with pytest.raises(Busy, match="your own requests"):
            post(asked, "many", "len", "x")
    finally:
        service.budget = kept


def test_a_calls_error_is_answered_and_logged_without_its_values(
    service: Service, capfd: pytest.CaptureFixture[str]
) -> None:
    def fails(error: Exception) -> None:
        raise error

    def answer(error: Exception) -> Any:
        async def call() -> Any:
            asked = programs(service, fails)
            post(asked, "mine", "fails", error)
            (message,) = await read(asked, "mine")
            return message

        return aio.run(call())

    mistake = answer(AttributeError("my words"))
    assert mistake["output"] == {"error": str(MISTAKE), "title": MISTAKE.code}
    assert not mistake["success"]
    logged = capfd.readouterr().err
    assert logged.startswith("a mistake: AttributeError in server/test_programs.py, fails, line ")
    assert "my words" not in logged
    sentence = "the place must be 1; got 2"
    assert answer(ValueError(sentence))["output"]["error"] == sentence
    assert capfd.readouterr().err == ""


def test_inputs_with_defaults_may_be_left_out_and_none_is_quoted(service: Service) -> None:
    """Programs that post inputs in order still work when an endpoint gains an input."""
    asked = programs(service, lambda a, b: None)
    asked.endpoints = {"two": Endpoint(lambda a, b, c=3: None, "events")}
    assert asked.call_of("two", ["a", "b"], None, 1).inputs == ["a", "b"]
    for inputs, got in ((["my words"], "1"), (["a", "b", "c", "d"], "4"), ("my words", "str")):
        with pytest.raises(ValueError, match=f"^two needs from 2 to 3 inputs; got {got}$"):
            asked.call_of("two", inputs, None, 1)


@pytest.mark.parametrize(
    ("hosts", "origin", "allowed"),
    [
        (None, "https://elsewhere.example", True), (frozenset(), "http://localhost:3000", True),
        (frozenset(), "https://elsewhere.example", False), (frozenset(), "null", False),
        (frozenset(), "http://localhost.elsewhere.example", False),
    ],
)  # fmt: skip
def test_other_sites_ask_without_credentials_and_never_a_local_server(
    service: Service, hosts: frozenset[str] | None, origin: str, allowed: bool
) -> None:
    app = aio.run(application(service, hosts=hosts)).app
    asking = {"Origin": origin, "Access-Control-Request-Method": "POST", "host": "localhost"}
    for method in ("GET", "OPTIONS"):
        found = aio.answer(app, "/gradio_api/app_id", method, headers=asking).headers
        assert ("access-control-allow-origin" in found) == allowed
        assert "access-control-allow-credentials" not in found


def test_unfinished_headers_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEADERS_S", 0.05)

    async def closed(kind: type[H11Protocol]) -> bool:
        """Whether a connection that begins a request, and says no more, is closed."""

        config = uvicorn.Config(Mock(), http=kind)
        config.load()
        transport = Mock(is_closing=lambda: False)
        transport.get_extra_info.return_value = None
        connection = kind(config, ServerState(), {})
        connection.connection_made(transport)
        connection.data_received(b"GET / HTTP/1.1\r\nHost: a")
        await asyncio.sleep(0.2)
        return bool(transport.close.called)

    assert not aio.run(closed(H11Protocol))
    assert aio.run(closed(http_server.Connection))


def test_a_busy_server_is_said_on_the_stream(service: Service) -> None:
    async def refused() -> Any:
        def full() -> None:
            raise Busy()

        asked = programs(service, full)
        post(asked, "mine", "full")
        (message,) = await read(asked, "mine")
        return message

    problem = public_error(Busy())
    wanted = {"error": problem["detail"], "title": problem["code"]}
    assert aio.run(refused())["output"] == wanted


def test_of_calls_whose_answers_are_not_read_few_begin(service: Service) -> None:
    computed: list[int] = []

    async def calls() -> None:
        asked = programs(service, computed.append)
        for number in range(20):
            post(asked, "mine", "append", number)
        messages = asked.messages("mine")
        for read_before in range(3):
            await anext(messages)
            await asyncio.sleep(0.1)
            assert len(computed) <= read_before + MAX_UNREAD_ANSWERS
        rest = [message async for message in messages]
        assert (len(rest), sorted(computed)) == (17, list(range(20)))
        assert asked.counts() == {"streams": 0, "calls": 0}

    aio.run(calls())


def test_an_answer_that_waits_to_be_read_is_kept_by_its_connection_alone(service: Service) -> None:
    class Large(dict[str, int]):
        """An answer that can be asked whether it is still there."""

    made = list[weakref.ref[Large]]()

    def large() -> Large:
        made.append(weakref.ref(answer := Large(a=1)))
        return answer

    async def calls() -> None:
        asked = programs(service, large)
        post(asked, "mine", "large")
        messages = asked.messages("mine")
        parts, sent, go_on = _encoded(messages, _data), list[Any](), asyncio.Event()

        async def send(message: Any) -> None:
            content = message.get("body", b"")
            sent.append(len(content))
            if sent[-1:] == [0] and len(sent) > 2:  # all before has been read by then
                await go_on.wait()

        streaming = asyncio.create_task(Streamed(parts, "text/plain").stream_response(send))
        while len(sent) < 3:
            await asyncio.sleep(0.01)
        gc.collect()
        assert [each() for each in made] == [None]
        go_on.set()
        await streaming
        assert sent[1] > 50

    aio.run(calls())


def test_a_call_that_has_not_begun_is_cancelled_too(service: Service) -> None:
    go_on, computed = threading.Event(), list[int]()

    def wait(number: int) -> int:
        assert go_on.wait(60)
        computed.append(number)
        return number

    async def calls() -> list[Any]:
        asked = programs(service, wait)
        events = [post(asked, "mine", "wait", number) for number in range(4)]
        reading = asyncio.create_task(read(asked, "mine"))
        await asyncio.sleep(0.05)
        asked.cancel(events[3], "another")
        asked.cancel(events[2], "mine")
        go_on.set()
        return [it["output"] for it in await reading if it]

    assert {} in aio.run(calls())
    assert sorted(computed) == [0, 1, 3]


def add(a: int, b: int = 2) -> int:
    return a + b


@pytest.fixture
def routes(service: Service) -> FastAPI:
    """Of one endpoint, which Gradio's frontend would call by the number 3."""
    app = FastAPI(exception_handlers=HANDLERS)
    endpoints = {"add": Endpoint(add, "events")}
    app.include_router(program_routes(Programs(service, endpoints, {3: "add"})))
    return app


@pytest.mark.parametrize(
    ("path", "sent", "result"),
    [
        ("/call/add", {"data": [5, 6]}, 11), ("/call/add", {"data": [5]}, 7),
        ("/call/v2/add", {"b": 6, "a": 5}, 11), ("/call/v2/add", {"a": 5}, 7),
    ],
)  # fmt: skip
def test_a_call_by_places_or_by_names_is_answered_once(
    routes: FastAPI, path: str, sent: dict[str, Any], result: int
) -> None:
    event = aio.answer(routes, path, "POST", json=sent).json()["event_id"]
    answer = aio.answer(routes, f"{path}/{event}")
    assert answer.text == f"event: complete\ndata: [{result}]\n\n"
    assert answer.headers["content-type"].startswith("text/event-stream")
    again = aio.answer(routes, f"{path}/{event}")
    assert (again.status_code, again.json()) == (404, public_error(NO_EVENT))


def test_the_calls_of_a_session_are_answered_on_one_stream_that_is_closed(
    routes: FastAPI, service: Service
) -> None:
    sent = {"session_hash": "mine", "fn_index": 3}
    events = [
        aio.answer(routes, "/queue/join", "POST", json={**sent, "data": [a, 1]}).json()["event_id"]
        for a in (1, 2, 3)
    ]
    cancelled = {"event_id": events[1], "session_hash": "mine"}
    assert aio.answer(routes, "/cancel", "POST", json=cancelled).json() == {"success": True}
    assert aio.answer(routes, "/reset", "POST", json={}).json() == {"success": True}
    lines = aio.answer(routes, "/queue/data?session_hash=mine").text.split("\n\n")
    *messages, end, rest = [orjson.loads(line[6:]) if line else {} for line in lines]
    assert (end, rest) == ({"msg": "close_stream"}, {})
    outputs = {message["event_id"]: message["output"].get("data") for message in messages}
    assert outputs == {events[0]: [2], events[1]: None, events[2]: [4]}


def test_a_call_that_no_endpoint_can_answer_is_refused(routes: FastAPI) -> None:
    for path, sent, status, problem in (
        ("/call/v2/add", {"b": 1}, 400, "add needs a; got ['b']"),
        ("/call/v2/add", {"a": 1, "c": 2}, 400, "c"),
        ("/call/v2/fly", {}, 404, str(CLOSED)),
        ("/call/fly", {"data": []}, 404, str(CLOSED)),
        ("/call/add", {"data": [1], "session_hash": ""}, 400, str(NO_HASH)),
        ("/queue/join", {"data": [1], "session_hash": "a", "fn_index": 4}, 400, str(NO_EVENT)),
        ("/queue/join", {"data": [1], "session_hash": "a"}, 400, str(NO_EVENT)),
        ("/queue/join", {"data": [1], "fn_index": 3}, 400, str(NO_HASH)),
    ):
        answer = aio.answer(routes, path, "POST", json=sent)
        assert answer.status_code == status, path
        assert problem in answer.json()["detail"]


def test_a_client_that_waits_long_hears_that_the_stream_is_alive(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "ALIVE_S", 0.01)
    go_on = threading.Event()

    async def calls() -> list[Message | None]:
        asked = programs(service, go_on.wait)
        post(asked, "mine", "wait", 60)
        messages = asked.messages("mine")
        silence = await anext(messages)
        go_on.set()
        return [silence, *[message async for message in messages if message]]

    silence, last = aio.run(calls())
    assert silence is None
    assert last is not None
    assert last["output"]["data"] == [True]
