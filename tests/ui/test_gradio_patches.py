"""What Gradio makes us do. A test here that says what Gradio itself does fails once it no longer
does so: then the patch can go."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import fastapi
import gradio as gr
import gradio.routes
import httpx
import loops
import pytest
import uvicorn
from gradio import http_server, processing_utils, state_holder
from gradio.data_classes import PredictBodyInternal
from gradio.server_messages import ProcessCompletedMessage
from uvicorn.server import ServerState

from transformer import Model
from transformer.runs.memory_budget import Limits, MemoryBudget
from transformer.ui import build, gradio_patches, page_queue
from transformer.ui.fair_scheduler import Line, Resource
from transformer.ui.gradio_patches import PATCHES, NoSessions
from transformer.ui.limits import ANSWERS, BUSY, MISTAKE
from transformer.ui.page_queue import Messages, Queue
from transformer.ui.service import Service

pytestmark = pytest.mark.slow

GRADIOS = [(where, name, getattr(where, name)) for where, name, _ in PATCHES]  # not yet installed


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradio as it is, until a test installs ours."""
    for where, name, theirs in GRADIOS:
        monkeypatch.setattr(where, name, theirs)


def sent_from(address: str) -> Any:
    """A request."""
    return Mock(client=Mock(host=address), headers={}, scope=None)


def page() -> gr.Blocks:
    with gr.Blocks(analytics_enabled=False) as made:
        gr.api(lambda: 1, api_name="one")
    return made.queue()


def body(made: gr.Blocks, session: str | None) -> PredictBodyInternal:
    return PredictBodyInternal(session_hash=session, data=[], fn_index=next(iter(made.fns)))


async def with_strangers(made: gr.Blocks, sessions: list[str | None]) -> list[Any]:
    """Whether the queue goes on after one waits of each of these sessions, whose messages nobody
    keeps, and how many still wait."""
    queue = made._queue
    queue.max_thread_count = 1
    queue.start()
    try:
        await asyncio.sleep(0.01)
        for session in sessions:
            try:
                await queue.push(body(made, session), sent_from("here"), None)
            except KeyError:  # raised after it was put into the queue
                continue
            queue.pending_messages_per_session.clear()
        for _ in range(500):
            if queue.stopped or not len(queue):
                break
            await asyncio.sleep(0.01)
        return [not queue.stopped, len(queue)]
    finally:
        queue.close()


@pytest.mark.parametrize("session", ["", "pushed out"])
def test_gradios_queue_ends_when_one_waits_whose_messages_are_not_kept(
    session: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def asked() -> list[Any]:
        return await with_strangers(page(), [session] * 3)

    going_on, _ = loops.run(asked())
    assert not going_on
    gradio_patches.install()
    assert loops.run(asked()) == [True, 0]


def test_who_leaves_no_longer_waits_in_the_queue() -> None:
    async def asked() -> list[str]:
        gradio_patches.install()
        made = page()
        queue = made._queue
        assert isinstance(queue, Queue)
        for session in ("stays", "leaves", "stays", "leaves"):
            await queue.push(body(made, session), sent_from("here"), None)
        queue.leave("leaves")
        assert len(queue.event_ids_to_events) == 2
        assert sum(queue.shares["events"].counts().values()) == 2  # their places are free again
        return [event.session_hash for event in queue._waiting()]

    assert loops.run(asked()) == ["stays", "stays"]


def sessions_after(*answers: tuple[str, int]) -> tuple[list[str], list[str]]:
    """Sessions whose messages are kept, and those of whom Gradio keeps a set of requests, after
    answers of so many characters that nobody has fetched."""

    async def asked() -> tuple[list[str], list[str]]:
        queue = page()._queue
        for session, size in answers:
            await queue.push(body(queue.blocks, session), sent_from("here"), None)
            event = list(queue.event_ids_to_events.values())[-1]
            await queue.remove_from_queue(event._id)
            output = {"data": ["x" * size]}
            queue.send_message(event, ProcessCompletedMessage(output=output, success=True))
        await queue.push(body(queue.blocks, "last"), sent_from("here"), None)
        return list(queue.pending_messages_per_session), list(queue.pending_event_ids_session)

    return loops.run(asked())


def test_gradio_keeps_answers_that_nobody_fetches_and_ours_go_by_bytes_the_oldest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [(f"s{place}", 900_000) for place in range(6)]
    kept, sets = sessions_after(*answers)
    assert len(kept) == len(sets) == 7
    kinds = {ANSWERS: Limits(most_bytes=3_000_000)}
    monkeypatch.setattr(page_queue, "memory_budget", lambda: MemoryBudget(10**9, kinds))
    gradio_patches.install()
    kept, sets = sessions_after(*answers)
    assert kept == sets == ["s3", "s4", "s5", "last"]


def test_fetched_messages_no_longer_count() -> None:
    async def asked() -> list[int]:
        counted: list[int] = []
        box = Messages(counted.append)
        for size in (10_000, 20_000):
            await box.put(ProcessCompletedMessage(output={"data": ["x" * size]}, success=True))
        for _ in range(2):
            await box.get()
        return counted

    first, both, second, none = loops.run(asked())
    assert 10_000 < first < 12_000
    assert both == first + second
    assert none == 0


def test_gradio_keeps_what_every_session_sent_and_got_and_we_do_not() -> None:
    async def kept(of: type[state_holder.StateHolder]) -> int:
        with gr.Blocks(analytics_enabled=False) as made:
            box = gr.Textbox()
        holder = of()
        holder.set_blocks(made)
        for session in ("a", "b", "c"):
            holder[session]._update_value_in_config(box._id, "x")
        return len(holder.session_data)

    assert loops.run(kept(state_holder.StateHolder)) == 3
    assert loops.run(kept(NoSessions)) == 0


def test_the_page_needs_nothing_kept_of_a_session(tiny_model: Model) -> None:
    async def asked() -> gr.Blocks:
        return build(Service([tiny_model]))

    page = loops.run(asked())
    assert isinstance(page._queue, Queue)
    assert isinstance(page.app.state_holder, NoSessions)
    assert [block for block in page.blocks.values() if block.stateful] == []


def test_gradio_fetches_what_an_input_names_and_we_do_not() -> None:
    block = Mock(proxy_url=None, async_move_resource_to_block_cache=AsyncMock(return_value="copy"))
    named = {"path": "http://127.0.0.1:1/x", "meta": {"_type": "gradio.FileData"}}
    for n_fetched in (1, 0):
        loops.run(processing_utils.async_move_files_to_cache([{"deep": named}], block))
        assert block.async_move_resource_to_block_cache.await_count == n_fetched
        block.reset_mock()
        gradio_patches.install()


def refusal(inputs: list[Any]) -> Exception | None:
    """What a function of two inputs says of these."""

    async def asked() -> gr.Blocks:
        with gr.Blocks(analytics_enabled=False) as made:
            boxes = [gr.Textbox(), gr.Textbox()]
            boxes[0].submit(lambda *_: None, boxes, None, api_name="two")
        return made

    made = loops.run(asked())
    try:
        made.validate_inputs(next(iter(made.fns.values())), inputs)
    except Exception as error:
        return error
    return None


def test_gradio_tells_what_was_sent_in_its_refusal_and_we_do_not() -> None:
    assert "my words" in str(refusal(["my words"]))
    gradio_patches.install()
    refused = refusal(["my words"])
    assert isinstance(refused, gr.Error)
    assert refused.message == "two needs 2 inputs; got 1"
    assert not refused.print_exception
    assert refusal(["a", "b"]) is None
    assert refusal(["a", "b", "c"]) is not None


def turns(*asked: tuple[str, str]) -> list[str]:
    """Sessions in the order in which they are served, one at a time; asked: (address, session)."""

    async def served() -> list[str]:
        queue = page()._queue
        if isinstance(queue, Queue):
            queue.shares = {"events": Line(Resource(1))}
        for address, session in asked:
            await queue.push(body(queue.blocks, session), sent_from(address), None)
        order = []
        while len(queue):
            (event,) = queue.get_events()[0]
            order.append(event.session_hash)
            if isinstance(queue, Queue):
                await asyncio.sleep(0.002)
                queue._taken.pop(event._id).leave()
        return order

    return loops.run(served())


def test_gradio_serves_whoever_asks_the_most_and_we_addresses_and_their_sessions_in_turn() -> None:
    many = [("a", "greedy")] * 4 + [("b", "other"), ("a", "neighbour")]
    assert turns(*many) == [session for _, session in many]
    gradio_patches.install()
    assert turns(*many) == ["greedy", "other", "neighbour", *["greedy"] * 3]


def test_a_full_queue_makes_room_for_another_address_and_tells_who_made_it() -> None:
    async def told() -> tuple[list[str], list[str], int]:
        queue = page()._queue
        queue.shares = {"events": Line(Resource(1, waiting=3))}
        at_once = []
        for address, session in [*(("a", f"s{place}") for place in range(5)), ("b", "other")]:
            sent = body(queue.blocks, session)
            done, said, kind = await queue.push(sent, sent_from(address), None)
            at_once += [] if done else [(said, kind)]
        boxes = list(queue.pending_messages_per_session.values())
        messages = [box.get_nowait() for box in boxes for _ in range(box.qsize())]
        ended = [it.output["error"] for it in messages if isinstance(it, ProcessCompletedMessage)]
        return at_once, ended, len(queue)

    gradio_patches.install()
    assert loops.run(told()) == ([(BUSY, "queue_full")], [BUSY], 4)  # and one runs


@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
def test_gradio_lets_any_site_ask_as_the_visitor_and_we_do_not(method: str) -> None:
    async def headers_for_another_site() -> httpx.Headers:
        transport = httpx.ASGITransport(app=gradio.routes.App.create_app(page()))
        asking = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "GET"}
        async with httpx.AsyncClient(transport=transport, base_url="http://served") as client:
            return (await client.request(method, "/gradio_api/app_id", headers=asking)).headers

    name = "access-control-allow-credentials"
    assert loops.run(headers_for_another_site())[name] == "true"
    gradio_patches.install()
    ours = loops.run(headers_for_another_site())
    assert name not in ours
    assert ours["access-control-allow-origin"] == "https://elsewhere.example"


def answer_of_a_mistake(error: Exception) -> str:
    """What is told of a handler's mistake."""

    def fails() -> None:
        raise error

    async def asked() -> str:
        with gr.Blocks(analytics_enabled=False) as made:
            gr.api(fails, api_name="fails")
        queue = made.queue()._queue
        made.create_limiter()
        queue.set_server_app(made.app)
        sent = body(made, "me")
        queue.ANAYLTICS_CACHE_FREQUENCY = 2**62  # as app.py has it
        place = {"path": "/gradio_api/queue/join", "query_string": b"", "root_path": ""}
        named = {"headers": [(b"host", b"served")], "scheme": "http", "method": "POST"}
        sent.request = fastapi.Request({"type": "http", "server": None, **place, **named})
        await queue.push(sent, sent.request, None)
        queue.active_jobs = [None]
        events, batch, _ = queue.get_events()
        queue.event_queue_per_concurrency_id[events[0].concurrency_id].current_concurrency += 1
        await queue.process_events(events, batch, 0.0, events[0].fn)
        box = queue.pending_messages_per_session["me"]
        messages = [box.get_nowait() for _ in range(box.qsize())]
        return str([message.model_dump() for message in messages])

    return loops.run(asked())


def test_gradio_tells_and_logs_whatever_a_mistake_holds_and_we_do_not(
    capfd: pytest.CaptureFixture[str],
) -> None:
    mistake = AttributeError("my words")
    assert "my words" in answer_of_a_mistake(mistake)
    assert "my words" in capfd.readouterr().err
    gradio_patches.install()
    assert MISTAKE in answer_of_a_mistake(mistake)
    logged = capfd.readouterr().err
    assert logged.startswith("a mistake: AttributeError in test_gradio_patches.py, line ")
    assert "my words" not in logged
    assert "the place must be" in answer_of_a_mistake(ValueError("the place must be 1; got 2"))
    assert capfd.readouterr().err == ""
    assert "a sentence" in answer_of_a_mistake(gr.Error("a sentence", print_exception=False))


def test_gradios_server_waits_for_a_request_without_end_and_ours_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gradio_patches, "HEADERS_S", 0.05)

    async def closed(kind: type[http_server.Server]) -> bool:
        """Whether a connection that begins a request, and says no more, is closed."""
        config = uvicorn.Config(Mock(), http="h11")
        kind(config)
        config.load()
        transport = Mock(is_closing=lambda: False)
        transport.get_extra_info.return_value = None
        connection = config.http_protocol_class(config, ServerState(), {})  # type: ignore[call-arg]
        connection.connection_made(transport)
        connection.data_received(b"GET / HTTP/1.1\r\nHost: a")  # type: ignore[attr-defined]
        await asyncio.sleep(0.2)
        return bool(transport.close.called)

    assert not loops.run(closed(http_server.Server))
    assert loops.run(closed(gradio_patches.Server))


def test_our_scripts_still_have_something_to_mend_in_gradios() -> None:
    """first.js stops a clock of its loading message, which it knows by its source, and says what
    the browser's language is; connection.js replaces fetch for the queue's two questions."""
    assets = Path(gr.__file__).parent / "templates" / "frontend" / "assets"
    scripts = {path.name: path.read_text("utf-8") for path in assets.glob("*.js")}
    clock = re.compile(r"performance\.now\(\)-[^;]*/1e3")
    assert any(name.startswith("statustracker") for name in scripts if clock.search(scripts[name]))
    whole = "\n".join(scripts.values())
    connects = re.findall(r"\.Client\.connect\([^{]*\{([^}]*)\}", whole)
    assert connects
    assert not any(re.search("headers|session", call) for call in connects)
    assert "window.navigator.language||window.navigator.languages[0]" in whole
    assert "return document.documentElement.lang" not in whole
