"""One address asks without end for what takes long; another one is served."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpx
import loops
import pytest
import serving

pytestmark = pytest.mark.slow

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
            asked = {"run": theirs, "other": TEXT.replace("dog", "cat") * 4, "place": 70 + place}
            headers = {"x-session": f"loop {place}"}
            while True:
                await many.post("resources/patching", json=asked, headers=headers)

        async def ask(place: int) -> None:
            began = time.monotonic()
            asked = {"run": mine, "place": place, "by": "zero"}
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
