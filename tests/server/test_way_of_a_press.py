"""How many of our Python files a press of *Generate* and a click on a head run through.

A higher number is a new layer on the way, to be judged and not only to be entered here.
"""

import gc
import json
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from kit import aio

import transformer
from transformer import Model
from transformer.inference.engines.compiled import engine_of
from transformer.server import application
from transformer.server.http import requests
from transformer.server.http.guard import RESOURCES, SESSION
from transformer.server.kept.service import Service
from transformer.server.page.resources import ARRAYS

OURS = str(Path(transformer.__file__).parent)
PRESS, CLICK, TOGETHER = 41, 20, 49
HEADERS = {SESSION: "me", "accept": f"{ARRAYS}, application/json"}  # as the page sends them


@contextmanager
def noted(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Our files of which a function is called here, or in a thread that begins meanwhile."""
    files = set[str]()

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call" and (path := frame.f_code.co_filename).startswith(OURS):
            files.add(path.removeprefix(OURS))

    gc.collect()  # finalizers of what other tests have left
    before, of_threads = sys.getprofile(), threading.getprofile()
    with ThreadPoolExecutor(1) as threads, monkeypatch.context() as changed:
        changed.setattr(requests, "_NORMAL", threads)
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            yield files
        finally:
            sys.setprofile(before)
            threading.setprofile(of_threads)  # type: ignore[arg-type]


@pytest.fixture
def files(tiny_model: Model, monkeypatch: pytest.MonkeyPatch) -> tuple[set[str], set[str]]:
    """Of a press and of a click, both the second of their kind: the first loads things."""
    engine = engine_of(tiny_model.network)
    if engine is None:
        pytest.skip("needs a C compiler: without it the network itself generates")
    service = Service([replace(tiny_model, engine=engine)], trainings=0)

    async def visit(client: httpx.AsyncClient) -> tuple[set[str], set[str]]:
        with noted(monkeypatch) as press:
            asked = {"model": "tiny", "text": "The fox", "max_new_tokens": 5}
            answer = await client.post(f"{RESOURCES}/runs", json=asked)
        last = json.loads(answer.text.splitlines()[-1])
        query = f"run={last['tokens']['run']}&site=decoder.0.self&head=1&numbers=true"
        with noted(monkeypatch) as click:
            answer = await client.get(f"{RESOURCES}/heatmap?{query}")
        assert answer.status_code == 200, answer.text
        return press, click

    async def visits() -> tuple[set[str], set[str]]:
        transport = httpx.ASGITransport((await application(service)).app)
        url = "http://localhost"
        async with httpx.AsyncClient(transport=transport, base_url=url, headers=HEADERS) as client:
            await visit(client)
            return await visit(client)

    return aio.run(visits())


def test_a_press_and_a_click_run_through_few_files(files: tuple[set[str], set[str]]) -> None:
    press, click = files
    assert "/inference/generation.py" in press
    assert "/views/attention/heatmap.py" in click
    assert len(press) <= PRESS, sorted(press)
    assert len(click) <= CLICK, sorted(click)
    assert len(press | click) <= TOGETHER, sorted(press | click)
