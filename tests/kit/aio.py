"""Coroutines in tests that share their process with Playwright, what an application answers to one
request, and what is waited for."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import httpx

Result = TypeVar("Result")


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """asyncio.run in a thread: Playwright's synchronous face keeps a loop in the main one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def answer(app: Any, path: str, method: str = "GET", **asked: Any) -> httpx.Response:
    """Of an ASGI application, in this process."""

    async def answered() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://page") as client:
            return await client.request(method, path, **asked)

    return run(answered())


def wait_until(asked: Callable[[], object]) -> None:
    """As long as a busy machine may need to start a process."""
    give_up = time.monotonic() + 240
    while not asked():
        assert time.monotonic() < give_up
        time.sleep(0.005)
