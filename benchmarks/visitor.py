"""One visitor of the page, over HTTP: the same calls that the page's own scripts make."""

from __future__ import annotations

import asyncio
import copy
import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from gradio_client.utils import apply_diff

from benchmarks import API

GONE = 410  # a run that a server does not keep
PLAN = {"task": "induction", "n_steps": 400, "width": 64}  # some twenty seconds while a class works
ASKED_S = 0.5  # how often the page asks for a training
BUSY_S = 60  # that a busy server is asked again
TIMES = 30  # that a run is requested which a server must regenerate


class Refused(RuntimeError):
    """The server answered with an error; the message is its own."""


class Lost(RuntimeError):
    """The connection ended before the answer did: the page says so, and the text is kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PageFacts:
    """What the page's configuration says of its events."""

    config: Mapping[str, Any]


async def page_facts(client: httpx.AsyncClient) -> PageFacts:
    """Read them from a running server."""
    return PageFacts(config=(await client.get("config")).json())


def page_inputs(config: Mapping[str, Any], chosen: Mapping[str, Any]) -> tuple[int, list[Any]]:
    """(number of the event, values to send) of a press on Generate.

    The values are the page's, except for `chosen`, which names controls by elem_id
    or label. Raises ValueError for a control that is not there.
    """
    (event,) = (e for e in config["dependencies"] if e["api_name"] == "page_generate")
    props = {part["id"]: part["props"] for part in config["components"]}
    wanted = [props[number] for number in event["inputs"]]
    names = [prop.get("elem_id") or prop.get("label") for prop in wanted]
    if unknown := set(chosen) - set(names):
        raise ValueError(f"the page has no control {unknown.pop()!r}; it has {names}")
    values = [chosen.get(name, prop.get("value")) for name, prop in zip(names, wanted, strict=True)]
    return event["id"], values


class Visitor:
    """A separate session; one request at a time."""

    def __init__(self, client: httpx.AsyncClient, facts: PageFacts) -> None:
        self._client = client
        self._facts = facts
        self.session = secrets.token_hex(5)
        self._headers = {"x-session": self.session}  # by which a load balancer knows whose it is
        self._again: dict[str, Any] = {}  # what makes a run again where it is not kept
        self.made_again = 0
        self.asked_again = 0  # because the server was busy
        self.places: list[int] = []  # the places in the queue that were reported

    async def open(self) -> int:
        """Load the page; returns its bytes."""
        answer = await self._client.get("")
        answer.raise_for_status()
        return len(answer.content)

    async def generate(self, **chosen: Any) -> dict[str, Any]:
        """Press Generate with these controls changed; returns what the page knows of the run.

        Raises Refused with the sentence of a refusal, Lost if the connection is lost.
        """
        event, values = page_inputs(self._facts.config, chosen)
        try:
            joined = await self._client.post(
                f"{API}/queue/join",
                headers=self._headers,
                json={"data": values, "fn_index": event, "session_hash": self.session},
            )
            if joined.status_code == 502:
                raise Lost(joined.text)
            if joined.status_code != 200:
                raise Refused(joined.text)
            outputs = await self._outputs()
        except httpx.TransportError as error:
            raise Lost(f"{type(error).__name__}: {error}") from error
        facts, status = outputs[0], outputs[1]
        if not isinstance(status, dict) or status["kind"] != "done":
            raise Refused(str(status))
        self._again[facts["run"]] = facts["link"]
        return dict(facts)

    async def ask(self, question: str, /, **data: Any) -> dict[str, Any]:
        """What a component's script asks the server. Raises Refused with the sentence."""
        answer = await self._ask(question, data)
        again = self._again.get(data.get("run")) if answer.status_code == GONE else None
        for times in range(TIMES if again else 0):  # as ask.js does
            await asyncio.sleep(min(times, 1))
            answer = await self._ask(question, data | {"made": {data["run"]: again}})
            if answer.status_code != GONE:
                self.made_again += 1
                break
        if answer.status_code != 200:
            raise Refused(answer.text)
        found: dict[str, Any] = answer.json()
        return found

    async def train(self) -> float:
        """One training of PLAN, as the tab *Learn* asks for it: seconds until it has ended.

        Raises Refused if nothing was learned.
        """
        began = time.monotonic()
        begun = await self.ask("train", plan=PLAN, question="")
        told = await self.ask("learned", id=begun["id"], known=None)
        while told["state"] != "ended":
            await asyncio.sleep(ASKED_S)
            told = await self.ask("learned", id=begun["id"], known=told["changed"])
        if not told["step"]:
            raise Refused(f"ended after no step: {told['why']}")
        return time.monotonic() - began

    async def _ask(self, question: str, data: Any) -> httpx.Response:
        """The answer; a busy server is asked again when it says, as ask.js does."""
        give_up = time.monotonic() + BUSY_S
        while True:
            path = f"resources/{question}"
            answer = await self._client.post(path, json=data, headers=self._headers)
            after = float(answer.headers.get("retry-after", "inf"))
            if time.monotonic() + after > give_up:
                return answer
            self.asked_again += 1
            await asyncio.sleep(after)

    async def _outputs(self) -> list[Any]:
        """The last values of an event's outputs, put together from the differences sent."""
        values: list[Any] = []
        async for message in self._messages():
            if message["msg"] == "estimation" and message["rank"] is not None:
                self.places.append(message["rank"])
            if message["msg"] not in ("process_generating", "process_completed"):
                continue
            if not message["success"]:
                raise Refused(str(message["output"]))
            values = _updated(values, message)
            if message["msg"] == "process_completed":
                return values
        raise Lost("the stream ended before the run did")

    async def _messages(self) -> AsyncIterator[dict[str, Any]]:
        stream = self._client.stream(
            "GET",
            f"{API}/queue/data",
            params={"session_hash": self.session},
            headers=self._headers,
        )
        async with stream as lines:
            async for line in lines.aiter_lines():
                if line.startswith("data:"):
                    yield json.loads(line[5:])


def _updated(values: list[Any], message: dict[str, Any]) -> list[Any]:
    """Values after a message; after the first, a generator's outputs come as differences."""
    data = message["output"].get("data", [])
    if message["msg"] == "process_completed" or not values:
        return data or values
    return [apply_diff(copy.deepcopy(old), new) for old, new in zip(values, data, strict=True)]
