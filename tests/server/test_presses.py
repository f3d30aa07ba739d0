"""The lines that a press of a button is answered with: what they say of waiting, and how many."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import httpx
from fastapi import FastAPI
from kit import aio
from kit.client import visiting

from transformer import Model
from transformer.server import status_routes
from transformer.server.http.limits import AT_ONCE, MAX_WAITING
from transformer.server.http.slots import Caller, Slots
from transformer.server.kept.service import Service
from transformer.server.page import presses
from transformer.server.page.presses import MAX_UNREAD_LINES, Update


def lines_of(slots: Slots, work: Callable[[], Iterator[Update]]) -> AsyncGenerator[str, None]:
    return presses._lines(slots, work)


def test_who_waits_is_told_each_place_in_line_once_and_then_the_answer(monkeypatch):
    monkeypatch.setattr(presses, "PLACE_S", 0.001)

    async def press() -> list[Any]:
        slots = Slots(1)
        running, first = (slots.join(Caller(name)) for name in ("a", "b"))
        lines = lines_of(slots, lambda: iter([{"status": "done"}]))
        first_two = [await anext(lines)]
        asyncio.get_running_loop().call_later(0.1, running.leave)
        first_two.append(await anext(lines))
        first.leave()
        return [json.loads(line) for line in (*first_two, *[line async for line in lines])]

    assert aio.run(press()) == [{"before": 2}, {"before": 1}, {"status": "done"}]


def test_a_slow_client_gets_few_lines_of_progress_and_always_the_last():
    async def press() -> list[Any]:
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def work() -> Iterator[Update]:
            for number in range(30):
                yield {"running": True, "number": number}
                asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(60)
            yield {"running": False}
            loop.call_soon_threadsafe(done.set)

        lines = lines_of(Slots(1), work)
        first = await anext(lines)
        await asyncio.wait_for(done.wait(), 60)
        return [json.loads(line) for line in (first, *[line async for line in lines])]

    *progress, last = aio.run(press())
    assert last == {"running": False}
    assert [line["number"] for line in progress] == list(range(1 + MAX_UNREAD_LINES))


def test_a_silent_press_sends_an_empty_line_and_an_error_is_its_last(monkeypatch, capfd):
    monkeypatch.setattr(presses, "ALIVE_S", 0.01)

    async def press(error: Exception) -> list[str]:
        go_on = asyncio.Event()

        def work() -> Iterator[Update]:
            asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(60)
            raise error
            yield

        loop, lines = asyncio.get_running_loop(), lines_of(Slots(1), work)
        first = await anext(lines)
        go_on.set()
        return [first, *[line async for line in lines if line != "\n"]]

    silence, last = aio.run(press(ValueError("the place must be 1; got 2")))
    assert (silence, json.loads(last)["detail"]) == ("\n", "the place must be 1; got 2")
    _, last = aio.run(press(AttributeError("my words")))
    assert "my words" not in last + capfd.readouterr().err


def test_a_visitor_leaves_and_a_full_server_is_not_ready(tiny_model: Model):
    service = Service([tiny_model], trainings=0)
    app = FastAPI()
    app.include_router(status_routes(service, dict))
    transport = httpx.ASGITransport(app)

    async def visit() -> list[httpx.Response]:
        with visiting("me"):
            async with httpx.AsyncClient(transport=transport, base_url="http://page") as client:
                answers = [await client.post("leave"), await client.get("ready")]
                service.shares["model"].join(Caller("one more"))
                return [*answers, await client.get("ready"), await client.get("health")]

    slots = service.shares["model"]
    for place in range(AT_ONCE + MAX_WAITING - 1):
        slots.join(Caller(f"{place}"))
    with service.requests.open("me") as mine, service.requests.open("you") as other:
        left, ready, full, health = aio.run(visit())
        assert (left.status_code, mine.is_over(), other.is_over()) == (204, True, False)
    assert (ready.status_code, ready.json()["status"]) == (200, "ok")
    assert (full.status_code, full.json()["status"]) == (503, "full")
    facts = health.json()
    assert (facts["status"], facts["running"], facts["models"]) == ("ok", 2, ["tiny"])
    assert facts["resources"]["model"] == {"running": AT_ONCE, "waiting": MAX_WAITING}
    assert facts["weight_bytes"] == {"tiny": tiny_model.weight_bytes}


def test_the_objects_of_the_buttons_are_checked(tiny_model: Model):
    works = presses.works(Service([tiny_model], trainings=0))
    with visiting("me"):
        (wrong,) = works["runs"]({"model": "tiny", "text": "The fox", "method": "fly"})
        assert (wrong["status"]["kind"], wrong["running"]) == ("error", False)
        (batch,) = works["batches"]({"lines": "The fox\nThe bird said"})
        assert batch["batch"]["texts"] == ["The fox", "The bird said"]
        assert batch["batch"]["padding_hidden"]
        assert batch["status"]["text"].startswith("2 sentences, padded to ")
        (bare,) = works["batches"]({"lines": "The fox", "bare": True})
        assert not bare["batch"]["padding_hidden"]
        assert bare["status"]["text"].startswith("1 sentence, padded to ")
        assert bare["status"]["text"].endswith("The batch was read without the padding mask.")
        typed = {"text": "my words", "lines": ""}
        (page,) = works["examples"]({"model": "tiny", "typed": typed})
        assert page["example"]["own"] == {"text": "my words"}  # an empty box is nobody's text
