"""Whatever is sent to a server, from many callers who leave when they like, while it is busy.

    python -m benchmarks.fuzz [--inputs 100000] [--seed 1] [--port 7896]

Every address of the page, its private ones and those of the tools too, gets values of wrong kinds,
odd texts, half of a good request, and bytes that are nothing at all, by plain HTTP and through
gradio_client, while both places of the network are taken and every tenth caller goes away before
the answer. A fault is an answer of the kind 5xx (but for "busy"), the server's code or addresses in
an answer, an end of the queue, requests that go on when nobody is left, or more than a tenth more
memory at the end, when nothing is under way any more, than on average in the second fifth, by
when what visits leave has filled its room. Memory is what the system calls resident; it is told
after each twentieth, beside what the server says that it keeps. Faults end with status 1.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import psutil
from gradio_client import Client

from benchmarks import API, command_line, served
from transformer.views import PICTURES

CALLERS = 24  # at the same time
LEAVES = 0.1  # of the callers, before the answer
LEAVE_S = 0.3
FETCHES = 0.3  # of those who asked, the result
PATIENCE_S = 1.0  # after which they leave
GROWTH = 1.10
PARTS = 20
SETTLED = slice(PARTS // 5, 2 * PARTS // 5)  # of the parts: the second fifth
PROGRAMS = 3  # of gradio_client, shared
DRAIN_S = 60.0
BUSY = ["Once upon a time", "stories", 200, *[None] * 4, 1, 1, 1.0, None, None]
TELLTALE = ("Traceback", "site-packages", " object at 0x", "/transformer/ui/")
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1, 7, 2**31, 2**70, 0.5, 1e308, "", " ", "\x00", "x" * 3000, "é🦊" * 40,
    "\u202e", "<script>alert(1)</script>", "{{value}}", "../../etc/passwd", "decoder.0.self",
    "decoder.99.cross", "stories", "translate-en-fr", "beam", "zero", "residual", "self", [], {},
    [None], ["a"] * 9, ["stories", 1], {"a": {"b": []}}, {"interventions": [], "forced_tokens": []},
    {"interventions": [{"type": "ablate"}], "forced_tokens": [1, "2"]}, {"__type__": "update"},
    [[[[[[[[]]]]]]]], {"query": "z=%"},
    {"path": "http://127.0.0.1:9/x", "meta": {"_type": "gradio.FileData"}},
)  # fmt: skip
GARBAGE = (
    b"", b"null", b"[]", b"{", b"\xff\xfe", b'{"data": NaN}', b"[" * 5000 + b"]" * 5000,
    b'{"data": "\\ud800"}', b"a=b&c=d", b"x" * 4000,
)  # fmt: skip
GETS = ("", "config", "health", f"{API}/info", f"{API}/queue/status", "theme.css", "robots.txt",
        f"{API}/app_id", "assets/none.js", f"{API}/file=/etc/passwd", "?deep_link=abc")  # fmt: skip


@dataclass
class Found:
    """What came back, and what should not have."""

    answers: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    memory: list[int] = field(default_factory=list)  # after each part, resident bytes
    end: int = 0

    @property
    def settled(self) -> int:
        """The average of the second fifth, bytes."""
        return round(statistics.mean(self.memory[SETTLED]))

    def check(self, kind: str, status: int, text: str) -> None:
        """Count an answer; 503 says that the server is busy."""
        self.answers[f"{kind} {status}"] += 1
        if status >= 500 and status != 503:
            self.faults[f"{kind} {status}: {text[:200]}"] += 1
        for told in TELLTALE:
            if told in text and status != 200:
                self.faults[f"{kind} tells {told!r}: {text[:200]}"] += 1


class Sender:
    """Makes requests at random, always the same ones for a seed."""

    def __init__(self, client: httpx.AsyncClient, found: Found, seed: int) -> None:
        self.client, self.found = client, found
        self.random = random.Random(seed)
        self.events: list[dict[str, Any]] = []
        self.names: list[str] = []
        self.runs: list[str] = ["none"]
        self.programs: list[Client] = []

    async def learn(self) -> None:
        """What the page says of itself: its events."""
        config = (await self.client.get("config")).json()
        self.events = config["dependencies"]
        self.names = [event["api_name"] for event in self.events if event["api_name"]]
        url, quiet = str(self.client.base_url), {"verbose": False, "analytics_enabled": False}
        for _ in range(PROGRAMS):
            self.programs.append(await asyncio.to_thread(Client, url, **quiet))

    def value(self) -> Any:
        """Any value, of a kept run's id now and then."""
        return self.random.choice(ODD if self.random.random() < 0.9 else self.runs)

    def session(self) -> Any:
        """A session of its own, one of a few that many share, or what is none."""
        names: tuple[Any, ...] = ("", "x" * 65, None, 7, [])
        kind = self.random.random()
        if kind < 0.1:
            return self.random.choice(names)
        return f"shared{self.random.randrange(9)}" if kind < 0.3 else self.random.randbytes(8).hex()

    async def one(self) -> None:
        """One request, and the look at its answer."""
        kinds = (self.join, self.call, self.question, self.tool, self.program, self.raw, self.get,
                 self.farewell)  # fmt: skip
        kind = self.random.choices(kinds, (50, 50, 40, 10, 5, 20, 10, 10))[0]
        sending = asyncio.ensure_future(kind())
        leaves = self.random.random() < LEAVES
        most = LEAVE_S if leaves else 2 * PATIENCE_S
        with suppress(httpx.HTTPError, asyncio.TimeoutError):
            await asyncio.wait_for(sending, self.random.uniform(0, most) if leaves else most)

    async def send(self, kind: str, method: str, path: str, **content: Any) -> httpx.Response:
        answer = await self.client.request(method, path, **content)
        self.found.check(kind, answer.status_code, answer.text)
        return answer

    async def join(self) -> None:
        event = self.random.choice(self.events)
        count = len(event["inputs"]) + self.random.choice((0, 0, 0, -1, 1))
        body = {
            "fn_index": event["id"] if self.random.random() < 0.95 else self.value(),
            "data": [self.value() for _ in range(count)], "session_hash": self.session(),
        }  # fmt: skip
        answer = await self.send("join", "POST", f"{API}/queue/join", json=body)
        if answer.status_code == 200 and self.random.random() < FETCHES:
            asked = {"session_hash": body["session_hash"]}
            await self.send("data", "GET", f"{API}/queue/data", params=asked)

    async def call(self) -> None:
        name = self.random.choice(self.names)
        event = next(event for event in self.events if event["api_name"] == name)
        data = [self.value() for _ in event["inputs"]]
        if name in ("trace", "score") and self.random.random() < 0.5:
            data = ["A short text", "stories", *data[2:]]
        answer = await self.send("call", "POST", f"{API}/call/{name}", json={"data": data})
        if answer.status_code == 200 and self.random.random() < FETCHES:
            path = f"{API}/call/{name}/{answer.json()['event_id']}"
            told = (await self.send("result", "GET", path)).text
            if '"run": "' in told:
                self.runs = [*self.runs[-20:], told.split('"run": "')[1].split('"')[0]]

    async def question(self) -> None:
        name = self.random.choice([*PICTURES, "grade", "train", "learned", "kept", "export"])
        keys = ("run", "batch", "site", "head", "position", "stack", "kind", "other", "form", "row")
        asked = {key: self.value() for key in self.random.sample(keys, 4)}
        data = asked if self.random.random() < 0.8 else self.value()
        headers = {"x-session": str(self.session())}
        await self.send("question", "POST", f"resources/{name}", json=data, headers=headers)

    async def tool(self) -> None:
        called = {"name": self.random.choice(self.names), "arguments": {"text": self.value()}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
        accept = {"Accept": "application/json, text/event-stream"}
        await self.send("tool", "POST", f"{API}/mcp/", json=body, headers=accept)

    async def program(self) -> None:
        """As a program calls an endpoint; whoever leaves gives the job up."""
        name = self.random.choice(self.names)
        event = next(event for event in self.events if event["api_name"] == name)
        data = [self.value() for _ in event["inputs"]]
        kind, job = "program refused", None
        try:
            job = self.random.choice(self.programs).submit(*data, api_name=f"/{name}")
            await asyncio.wrap_future(job.future)
            kind = "program answered"
        except Exception as error:  # the client has many kinds, for a full queue one of its own
            self.found.check("program", 400, str(error))
        except asyncio.CancelledError:
            kind = "program left"
            if asyncio.current_task().cancelling():  # else the client gave its job up
                raise
        finally:
            self.found.answers[kind] += 1
            if job is not None and not job.done():
                await asyncio.to_thread(job.cancel)

    async def raw(self) -> None:
        paths = (f"{API}/queue/join", "resources/heatmap", f"{API}/call/generate",
                 f"{API}/cancel", f"{API}/mcp/", "leave", f"{API}/upload")  # fmt: skip
        in_json = "application/json"
        kinds = (in_json, in_json, in_json, "multipart/form-data; boundary=x", "text/plain")
        headers = {"Content-Type": self.random.choice(kinds)}
        content = self.random.choice(GARBAGE)
        path = self.random.choice(paths)
        await self.send("raw", "POST", path, content=content, headers=headers)

    async def get(self) -> None:
        method = self.random.choice(("GET", "GET", "HEAD", "DELETE", "OPTIONS"))
        await self.send("get", method, self.random.choice(GETS))

    async def farewell(self) -> None:
        asked = {"session_hash": self.session(), "fn_index": self.value(), "event_id": self.value()}
        if self.random.random() < 0.5:
            await self.send("cancel", "POST", f"{API}/cancel", json=asked)
        else:
            headers = {"x-session": str(asked["session_hash"])}
            await self.send("leave", "POST", "leave", headers=headers)


async def fuzz(url: str, inputs: int, process: psutil.Process, seed: int = 1) -> Found:
    """So many requests to the server of this process; it is busy all the time."""
    found = Found()
    # A request that is given up may keep its place in the client's pool: there is room for all.
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as client:
        sender = Sender(client, found, seed)
        await sender.learn()
        busy = [asyncio.ensure_future(_busy(client)) for _ in range(2)]
        for part in range(PARTS):
            left = iter(range(inputs * part // PARTS, inputs * (part + 1) // PARTS))
            await asyncio.gather(*(_caller(sender, left) for _ in range(CALLERS)))
            found.memory.append(process.memory_info().rss)
            await _tell(client, found)
        for task in busy:
            task.cancel()
    async with httpx.AsyncClient(base_url=url, timeout=30) as client:
        await _drained(client, found)
        found.end = process.memory_info().rss
    if found.end > GROWTH * found.settled:
        found.faults[f"memory grew from {found.settled:,} to {found.end:,} bytes"] += 1
    return found


async def _tell(client: httpx.AsyncClient, found: Found) -> None:
    with suppress(httpx.HTTPError):
        kept = (await client.get("health")).json()["kept_bytes"]
        part, rss = len(found.memory), found.memory[-1]
        print(f"{part}/{PARTS}: {rss / 1e6:.0f} MB, of them kept {kept / 1e6:.0f}", file=sys.stderr)


async def _caller(sender: Sender, left: Iterator[int]) -> None:
    for _ in left:
        await sender.one()


async def _busy(client: httpx.AsyncClient) -> None:
    """A program that generates all the time."""
    while True:
        with suppress(httpx.HTTPError, KeyError, json.JSONDecodeError):
            event = (await client.post(f"{API}/call/generate", json={"data": BUSY})).json()
            await client.get(f"{API}/call/generate/{event['event_id']}")
        await asyncio.sleep(0.01)


async def _drained(client: httpx.AsyncClient, found: Found) -> None:
    """Once nobody asks any more, nothing waits or runs, and the server still answers."""
    give_up = time.monotonic() + DRAIN_S
    health = (await client.get("health")).json()
    while health["waiting"] or health["running"]:
        if time.monotonic() > give_up:
            found.faults[f"still waiting {health['waiting']}, running {health['running']}"] += 1
            break
        await asyncio.sleep(0.5)
        health = (await client.get("health")).json()
    if health["status"] != "ok":
        found.faults[f"health says {health['status']}"] += 1
    event = (await client.post(f"{API}/call/limits", json={"data": []})).json()["event_id"]
    if "characters" not in (await client.get(f"{API}/call/limits/{event}")).text:
        found.faults["the server answers nothing any more"] += 1
    await asyncio.sleep(15)  # until what is free has gone back to the system


def main() -> None:
    """Start a server, send, tell."""
    parser = command_line(__spec__, __doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=7896)
    asked = parser.parse_args()
    began = time.monotonic()
    with served(asked.port, "--mcp") as (pid, _):
        url = f"http://127.0.0.1:{asked.port}/"
        found = asyncio.run(fuzz(url, asked.inputs, psutil.Process(pid), asked.seed))
    told = {
        "inputs": asked.inputs, "seconds": round(time.monotonic() - began),
        "memory": found.memory,
        "memory_settled": found.settled, "memory_end": found.end,
        "answers": dict(sorted(found.answers.items())), "faults": dict(found.faults),
    }  # fmt: skip
    print(json.dumps(told, indent=1))
    sys.exit(bool(found.faults))


if __name__ == "__main__":
    main()
