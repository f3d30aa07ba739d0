"""One visitor of the page, over HTTP: the same calls that the page's own scripts make."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from typing import Any

from benchmarks.http_client import LOST, Client, Whole

GONE = 410  # a run that a server does not keep
PLAN = {"task": "induction", "n_steps": 400, "width": 64}  # some twenty seconds while a class works
ASKED_S = 0.5  # how often the page asks for a training
BUSY_S = 60  # that a busy server is asked again
TIMES = 30  # that a run is requested which a server must regenerate


class Refused(RuntimeError):
    """The server answered with an error; the message is its own."""


class Lost(RuntimeError):
    """The connection ended before the answer did: the page says so, and the text is kept."""


class Visitor:
    """A separate session; one request at a time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.session = secrets.token_hex(5)
        self._headers = {"x-session": self.session}  # by which a load balancer knows whose it is
        self._again: dict[str, Any] = {}  # what makes a run again where it is not kept
        self.made_again = 0
        self.asked_again = 0  # because the server was busy
        self.places: list[int] = []  # the places in the queue that were reported

    async def open(self) -> int:
        """Load the page; returns its bytes."""
        answer = await self._client.get("")
        if answer.status != 200:
            raise Refused(answer.body.decode())
        return len(answer.body)

    async def generate(self, text: str, model: str = "stories", **settings: Any) -> dict[str, Any]:
        """Press Generate with these settings; returns what the page knows of the run.

        Raises Refused with the sentence of a refusal, Lost if the connection is lost.
        """
        asked = {"model": model, "text": text, **settings}
        last: dict[str, Any] = {"running": True}
        try:
            async with self._client.stream("resources/runs", asked, self._headers) as answer:
                if answer.status != 200:
                    said = (await answer.body()).decode()
                    raise (Lost if answer.status == 502 else Refused)(said)
                async for line in answer.lines():
                    last = json.loads(line) if line else last
                    if "before" in last:
                        self.places.append(last["before"])
        except LOST as error:
            raise Lost(f"{type(error).__name__}: {error}") from error
        if "detail" in last:
            raise Refused(last["detail"])
        if last.get("running", True):
            raise Lost("the answer ended before the run did")
        if last["status"]["kind"] != "done":
            raise Refused(last["status"]["text"])
        facts = last["tokens"]
        self._again[facts["run"]] = facts["request"]
        return dict(facts)

    async def ask(self, question: str, /, **data: Any) -> dict[str, Any]:
        """What a component's script asks the server. Raises Refused with the sentence."""
        answer = await self._ask(question, data)
        again = self._again.get(data.get("run")) if answer.status == GONE else None
        for times in range(TIMES if again else 0):  # as ask.js does
            await asyncio.sleep(min(times, 1))
            answer = await self._ask(question, data | {"made": {data["run"]: again}})
            if answer.status != GONE:
                self.made_again += 1
                break
        if answer.status != 200:
            raise Refused(answer.body.decode())
        found: dict[str, Any] = answer.json()
        return found

    async def train(self) -> float:
        """One training of PLAN, as the tab *Learn* asks for it: seconds until it has ended.

        Raises Refused if nothing was learned.
        """
        began = time.monotonic()
        begun = await self.ask("train", plan=PLAN)
        told = await self.ask("learned", id=begun["id"])
        while told["state"] != "ended":
            await asyncio.sleep(ASKED_S)
            told = await self.ask("learned", id=begun["id"])
        if not told["step"]:
            raise Refused(f"ended after no step: {told['why']}")
        return time.monotonic() - began

    async def _ask(self, question: str, data: Any) -> Whole:
        """The answer; a busy server is asked again when it says, as ask.js does."""
        give_up = time.monotonic() + BUSY_S
        while True:
            path = f"resources/{question}"
            answer = await self._client.post(path, data, self._headers)
            after = float(answer.headers.get("retry-after", "inf"))
            if time.monotonic() + after > give_up:
                return answer
            self.asked_again += 1
            await asyncio.sleep(after)
