"""The long benchmarks' short forms: visitors at once, of whom each gets its own result and none
waits long; odd requests of every kind; and one address that asks without end."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpx
import loops
import psutil
import pytest
import serving

import transformer
from benchmarks import results
from benchmarks.fuzz import fuzz
from benchmarks.load import load, tasks_for

pytestmark = pytest.mark.slow


def test_visitors_at_once_each_get_what_they_get_alone() -> None:
    server = serving.running()
    tasks = tasks_for([transformer.load("stories"), server.translator], 6)
    report = loops.run(load(server.url, tasks, visitors=6, seconds=4, server=None))
    assert report.failures() == []
    figures = report.figures()
    assert figures["pages_opened"] == 6
    assert figures["generations"] >= 6
    assert figures["clicks"] >= 6
    assert psutil.Process(server.process.pid).memory_info().rss < 1_500_000_000


def test_a_mixed_up_result_is_a_fault() -> None:
    server = serving.running()
    one, other = tasks_for([transformer.load("stories")], 2)
    (mixed,) = [type(one)(chosen=one.chosen, alone=other.alone)]
    report = loops.run(load(server.url, [mixed], visitors=1, seconds=0.2, server=None))
    assert any("other tokens than alone" in fault for fault in report.failures())


def test_kept_results_hold_what_was_promised() -> None:
    """The long forms' figures, as `make load` and `make soak` wrote them."""
    kept = results.load()
    every = [(name, figures) for name in ("load", "soak") for figures in kept[name].values()]
    assert every
    for name, figures in every:
        assert figures["faults"] == 0, name
        assert figures["visitors"] >= 60, name
        assert figures["click_p95_s"] < 1, name
        kept = figures["kept_bytes"] - figures.get("kept_settled_bytes", figures["kept_bytes"])
        room = figures["memory_settled_bytes"] + kept
        assert figures["memory_end_bytes"] <= 1.1 * room, name
        assert figures["memory_end_bytes"] < 1_500_000_000, name
        assert figures["start_s"] < 60, name


def test_odd_requests_from_callers_who_leave_do_the_server_no_harm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, sleep = serving.running(), asyncio.sleep
    # Memory, before which it waits long at the end, is judged over many more.
    monkeypatch.setattr(asyncio, "sleep", lambda seconds, *more: sleep(min(seconds, 1), *more))
    found = loops.run(fuzz(server.url, 120, psutil.Process(server.process.pid)))
    faults = [fault for fault in found.faults if not fault.startswith("memory grew")]
    assert faults == []
    assert sum(found.answers.values()) > 55


# --- one address that asks without end ------------------------------------------------------------

API = "gradio_api"
LOOPS, TRIES = 10, 4
TEXT = "Once upon a time there was a little dog who liked to play in the park with a red ball. "


def client_from(address: str) -> httpx.AsyncClient:
    """On this machine, which has all of 127.0.0.0/8."""
    transport = httpx.AsyncHTTPTransport(local_address=address)
    return httpx.AsyncClient(base_url=serving.running().url, transport=transport, timeout=120)


async def read(client: httpx.AsyncClient, text: str) -> dict[str, Any]:
    path = f"{API}/call/v2/trace"
    joined = await client.post(path, json={"text": text, "model": "stories"})
    answer = await client.get(f"{path}/{joined.json()['event_id']}")
    found = json.loads(answer.text.split("data: ", 1)[1].split("\n")[0])
    return dict(found[0])


async def seconds_beside_a_loop() -> tuple[list[float], list[str]]:
    """Of importance, for another address than that which loops; and what is refused."""
    took, refused = [], []
    async with client_from("127.0.0.1") as many, client_from("127.0.0.2") as other:
        theirs = (await read(many, TEXT * 4))["run"]
        mine = (await read(other, TEXT))["run"]

        async def loop(place: int) -> None:
            asked = {"run": theirs, "other": TEXT.replace("dog", "cat") * 4, "position": 70 + place}
            headers = {"x-session": f"loop {place}"}
            while True:
                await many.post("resources/patching", json=asked, headers=headers)

        async def ask(place: int) -> None:
            began = time.monotonic()
            asked = {"run": mine, "position": place, "by": "zero"}
            answer = await other.get("resources/importance", params=asked)
            took.append(time.monotonic() - began)
            refused.extend([] if answer.is_success else [answer.text])

        await ask(3)  # alone
        looping = [asyncio.create_task(loop(place)) for place in range(LOOPS)]
        while (await other.get("health")).json()["resources"]["experiments"]["waiting"] < LOOPS - 4:
            await asyncio.sleep(0.02)
        for place in range(TRIES):
            await ask(4 + place)
        for task in looping:
            task.cancel()
        await asyncio.gather(*looping, return_exceptions=True)
    return took, refused


def test_one_who_loops_an_experiment_on_ten_connections_keeps_nobody_out() -> None:
    took, refused = loops.run(seconds_beside_a_loop())
    assert refused == []
    assert max(took[1:]) < 2 + 10 * took[0]
