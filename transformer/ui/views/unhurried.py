"""Views that the page asks for when it rests: one after the other, and behind every click."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from transformer.ui.views.answers import Answer, server_function

NICENESS = 15  # a thread without it gets thirty times the processor's time


def _give_way() -> None:
    """Lower this thread's priority, and that of the threads that it starts for its products.

    Linux alone has a priority for each thread.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


_WORKER = ThreadPoolExecutor(1, "unhurried", initializer=_give_way)


def unhurried(
    of: Any, view: Callable[..., Answer]
) -> Callable[[dict[str, Any]], Awaitable[Answer]]:
    """`server_function` of a view that takes long; while it waits it holds none of the threads
    that answer clicks."""
    work = server_function(of, view)

    async def answer(data: dict[str, Any]) -> Answer:
        return await asyncio.wrap_future(_WORKER.submit(work, data))

    answer.__name__ = view.__name__
    return answer
