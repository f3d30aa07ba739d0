"""A visitor who watches networks learn: one training after the other, as the tab *Learn* asks."""

from __future__ import annotations

import asyncio
import time

import httpx

from benchmarks.load_report import Report
from benchmarks.visitor import PageFacts, Refused, Visitor

PLAN = {"task": "induction", "n_steps": 400, "width": 64}  # some twenty seconds beside a class
LOOK_S = 0.5  # how often the page asks


async def learn(client: httpx.AsyncClient, facts: PageFacts, report: Report, end: float) -> None:
    """Train until time is up; each training is followed to its end, the last one as well."""
    visitor = Visitor(client, facts)
    await visitor.open()
    while time.monotonic() < end:
        try:
            report.trained.append(await _trained(visitor))
        except (Refused, httpx.HTTPError) as error:
            report.faults.append(f"a training: {type(error).__name__}: {str(error)[:200]}")
            await asyncio.sleep(1)


async def _trained(visitor: Visitor) -> float:
    """One training from its start to its end: seconds. Raises Refused if nothing was learned."""
    began = time.monotonic()
    begun = await visitor.ask("train", plan=PLAN, question="")
    known = None
    while True:
        told = await visitor.ask("learned", id=begun["id"], known=known)
        known = told["changed"]
        if told["state"] == "ended":
            break
        await asyncio.sleep(LOOK_S)
    if not told["step"]:
        raise Refused(f"ended after no step: {told['why']}")
    return time.monotonic() - began
