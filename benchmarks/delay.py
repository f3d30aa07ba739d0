"""How long the most expensive requests of strangers delay another visitor's short one.

    python -m benchmarks.delay [--strangers 6] [--seconds 30] [--port 7893]

Every stranger asks, from an address of its own and over and over, for what takes the 20 s that a
request may: a long prompt, 200 tokens, and a mask without its causal part, by which no fast engine
and no cache helps. The visitor asks for five tokens, again and again: first alone, then beside
them. A delay above two seconds ends with status 1.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from contextlib import suppress

import httpx

from benchmarks import API, command_line, served

MOST_S = 2.0
DEAR = {
    "text": "Once upon a time there was a little dog. " * 48,
    "max_new_tokens": 200,
    "interventions": [{"type": "mask", "stack": "decoder", "without": ["causal"]}],
}
CHEAP = {"text": "Once upon a time", "max_new_tokens": 5}


async def generated(client: httpx.AsyncClient, asked: dict[str, object], address: str) -> float:
    """Ask from this address, as a proxy on this machine tells it; seconds until the answer."""
    began, headers = time.monotonic(), {"X-Forwarded-For": address}
    path = f"{API}/call/v2/generate"
    joined = await client.post(path, json=asked, headers=headers)
    answer = await client.get(f"{path}/{joined.json()['event_id']}", headers=headers)
    if "event: complete" not in answer.text:
        raise RuntimeError(answer.text[:500])
    return time.monotonic() - began


async def short_ones(client: httpx.AsyncClient, seconds: float) -> list[float]:
    """One after the other, with a rest in between; seconds each."""
    end, took = time.monotonic() + seconds, []
    while time.monotonic() < end:
        took.append(await generated(client, CHEAP, "10.0.0.1"))
        await asyncio.sleep(0.3)
    return took


async def stranger(client: httpx.AsyncClient, place: int, took: list[float]) -> None:
    """Asks for the most expensive, for ever."""
    while True:
        took.append(await generated(client, DEAR, f"10.0.1.{place}"))


async def measured(url: str, strangers: int, seconds: float) -> dict[str, float]:
    """The short requests' seconds, alone and beside so many strangers."""
    async with httpx.AsyncClient(base_url=url, timeout=600) as client:
        await short_ones(client, 1.0)
        alone = await short_ones(client, seconds / 3)
        dear: list[float] = []
        asking = [asyncio.create_task(stranger(client, n, dear)) for n in range(strangers)]
        await asyncio.sleep(0.5)
        beside = await short_ones(client, seconds)
        for task in asking:
            if task.done():
                task.result()
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*asking)
    return {
        "strangers": strangers,
        "short_requests": len(beside),
        "alone_median_s": round(statistics.median(alone), 3),
        "alone_longest_s": round(max(alone), 3),
        "beside_median_s": round(statistics.median(beside), 3),
        "beside_longest_s": round(max(beside), 3),
        "longest_delay_s": round(max(beside) - statistics.median(alone), 3),
    }


def main() -> None:
    """Print the figures as JSON; status 1 if somebody waited too long."""
    parser = command_line(__spec__, __doc__)
    parser.add_argument("--strangers", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--port", type=int, default=7893)
    asked = parser.parse_args()
    os.environ["FORWARDED_ALLOW_IPS"] = "127.0.0.1"  # the server believes the addresses told here
    with served(asked.port):
        url = f"http://127.0.0.1:{asked.port}/"
        figures = asyncio.run(measured(url, asked.strangers, asked.seconds))
    print(json.dumps(figures, indent=2))
    sys.exit(figures["longest_delay_s"] > MOST_S)


if __name__ == "__main__":
    main()
