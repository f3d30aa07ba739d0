"""What Gradio makes us do. A test here that says what Gradio itself does fails once it no longer
does so: then the patch can go."""

import asyncio
import inspect
import re
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import fastapi
import gradio as gr
import gradio.blocks
import gradio.routes
import pytest
import uvicorn
from gradio import http_server, processing_utils, state_holder
from gradio.data_classes import PredictBodyInternal
from gradio.server_messages import ProcessCompletedMessage
from kit import aio
from uvicorn.server import ServerState

from transformer import Model
from transformer.ui import build, gradio_patches, page_queue
from transformer.ui.errors import BUSY, MISTAKE
from transformer.ui.fair_scheduler import Line, Resource
from transformer.ui.gradio_patches import PATCHES, NoSessions
from transformer.ui.limits import ANSWERS
from transformer.ui.memory_budget import Limits, MemoryBudget
from transformer.ui.page_queue import Messages, Queue
from transformer.ui.service import Service

pytestmark = pytest.mark.slow

GRADIOS = [(where, name, getattr(where, name)) for where, name, _ in PATCHES]  # not yet installed


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpatched Gradio, until a test installs the patches."""
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


async def with_strangers(made: gr.Blocks, session: str) -> list[Any]:
    """Whether the queue still runs after three events of a session without a message box, and how
    many still wait."""
    queue = made._queue
    queue.max_thread_count = 1
    queue.start()
    try:
        await asyncio.sleep(0.01)
        for _ in range(3):
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
def test_the_queue_survives_events_of_an_evicted_session(session: str) -> None:
    async def asked() -> list[Any]:
        return await with_strangers(page(), session)

    assert not aio.run(asked())[0]
    gradio_patches.install()
    assert aio.run(asked()) == [True, 0]


def test_a_visitor_who_leaves_is_removed_from_the_queue() -> None:
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

    assert aio.run(asked()) == ["stays", "stays"]


def sessions_after(*answers: tuple[str, int]) -> tuple[list[str], list[str]]:
    """Sessions whose messages are kept, and those of whom Gradio keeps a set of requests, after
    unfetched answers of these sizes."""

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

    return aio.run(asked())


def test_unfetched_answers_are_evicted_by_bytes_oldest_first(
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
        await box.put(ProcessCompletedMessage(output={"data": ["x" * 10_000]}, success=True))
        await box.get()
        return counted

    before, after = aio.run(asked())
    assert (10_000 < before < 12_000, after) == (True, 0)


def test_no_session_state_is_kept(tiny_model: Model) -> None:
    """Nor does the page need it."""

    async def kept(of: type[state_holder.StateHolder]) -> int:
        with gr.Blocks(analytics_enabled=False) as made:
            box = gr.Textbox()
        holder = of()
        holder.set_blocks(made)
        for session in ("a", "b", "c"):
            holder[session]._update_value_in_config(box._id, "x")
        return len(holder.session_data)

    async def built() -> gr.Blocks:
        return build(Service([tiny_model]))

    assert aio.run(kept(state_holder.StateHolder)) == 3
    assert aio.run(kept(NoSessions)) == 0
    page = aio.run(built())
    assert isinstance(page.app.state_holder, NoSessions)
    assert [block for block in page.blocks.values() if block.stateful] == []


def test_files_named_by_an_input_are_not_fetched() -> None:
    block = Mock(proxy_url=None, async_move_resource_to_block_cache=AsyncMock(return_value="copy"))
    named = {"path": "http://127.0.0.1:1/x", "meta": {"_type": "gradio.FileData"}}
    for n_fetched in (1, 0):
        aio.run(processing_utils.async_move_files_to_cache([{"deep": named}], block))
        assert block.async_move_resource_to_block_cache.await_count == n_fetched
        block.reset_mock()
        gradio_patches.install()


def test_a_wrong_number_of_inputs_is_refused_without_quoting_them() -> None:
    async def refuse(*inputs: str) -> None:
        """As a function of two inputs does."""
        with gr.Blocks(analytics_enabled=False) as made:
            boxes = [gr.Textbox(), gr.Textbox()]
            boxes[0].submit(lambda *_: None, boxes, None, api_name="two")
        made.validate_inputs(next(iter(made.fns.values())), [*inputs])

    with pytest.raises(Exception, match="my words"):
        aio.run(refuse("my words"))
    gradio_patches.install()
    for inputs in (["my words"], ["a", "b", "c"]):
        with pytest.raises(gr.Error, match=f"two needs 2 inputs; got {len(inputs)}") as refused:
            aio.run(refuse(*inputs))
        assert not refused.value.print_exception
    aio.run(refuse("a", "b"))


def test_a_full_queue_evicts_for_another_address_and_serves_in_turn() -> None:
    async def results() -> tuple[list[Any], ...]:
        queue = page()._queue
        assert isinstance(queue, Queue)
        queue.shares = {"events": Line(Resource(1, waiting=3))}
        at_once, order = [], []
        for address, session in [*(("a", f"s{place}") for place in range(5)), ("b", "other")]:
            sent = body(queue.blocks, session)
            done, said, kind = await queue.push(sent, sent_from(address), None)
            at_once += [] if done else [(said, kind)]
        boxes = list(queue.pending_messages_per_session.values())
        messages = [box.get_nowait() for box in boxes for _ in range(box.qsize())]
        ended = [it.output["error"] for it in messages if isinstance(it, ProcessCompletedMessage)]
        while len(queue):
            (event,) = queue.get_events()[0]
            order.append(event.session_hash)
            await asyncio.sleep(0.002)
            queue._taken.pop(event._id).leave()
        return at_once, ended, order

    gradio_patches.install()
    at_once, ended, order = aio.run(results())
    assert (at_once, ended) == ([(str(BUSY), "queue_full")], [str(BUSY)])
    assert order == ["s0", "other", "s1", "s2"]


@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
def test_cross_origin_requests_get_no_credentials(method: str) -> None:
    async def app() -> fastapi.FastAPI:
        return gradio.routes.App.create_app(page())

    asking = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "GET"}
    for credentials in ("true", None):
        answer = aio.answer(aio.run(app()), "/gradio_api/app_id", method, headers=asking)
        assert answer.headers["access-control-allow-origin"] == asking["Origin"]
        assert answer.headers.get("access-control-allow-credentials") == credentials
        gradio_patches.install()


def answer_of_a_mistake(error: Exception) -> str:
    """The messages that follow a handler's error."""

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

    return aio.run(asked())


def test_a_handlers_error_is_logged_and_answered_without_its_values(
    capfd: pytest.CaptureFixture[str],
) -> None:
    mistake = AttributeError("my words")
    assert "my words" in answer_of_a_mistake(mistake)
    assert "my words" in capfd.readouterr().err
    gradio_patches.install()
    assert str(MISTAKE) in answer_of_a_mistake(mistake)
    logged = capfd.readouterr().err
    assert logged.startswith("a mistake: AttributeError in test_gradio_patches.py, line ")
    assert "my words" not in logged
    assert "the place must be" in answer_of_a_mistake(ValueError("the place must be 1; got 2"))
    assert capfd.readouterr().err == ""
    assert "a sentence" in answer_of_a_mistake(gr.Error("a sentence", print_exception=False))


def test_unfinished_headers_time_out(
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

    assert not aio.run(closed(http_server.Server))
    assert aio.run(closed(gradio_patches.Server))


def test_launch_needs_neither_an_http_request_nor_ipv4() -> None:
    """So a proxy, IPv6 and a crowd end its server: see test_crowd.py."""
    assert "httpx.get(" in inspect.getsource(gr.Blocks.launch)
    assert "s.bind((LOCALHOST_NAME, port))" in inspect.getsource(http_server.start_server)
    gradio_patches.install()
    assert gradio.blocks.httpx.get("http://127.0.0.1:9/").is_success
    assert http_server.LOCALHOST_NAME == "127.0.0.1"


def test_gradios_scripts_still_need_our_patches() -> None:
    """first.js stops a clock of its loading message, which it knows by its source, and says what
    the browser's language is."""
    assets = Path(gr.__file__).parent / "templates" / "frontend" / "assets"
    scripts = {path.name: path.read_text("utf-8") for path in assets.glob("*.js")}
    clock = re.compile(r"performance\.now\(\)-[^;]*/1e3")
    assert any(name.startswith("statustracker") for name in scripts if clock.search(scripts[name]))
    whole = "\n".join(scripts.values())
    assert "window.navigator.language||window.navigator.languages[0]" in whole
    assert "return document.documentElement.lang" not in whole
