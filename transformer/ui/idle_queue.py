"""What the page asks for and nobody waits for with a click: views when it rests, and files."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from transformer.inference import deadline
from transformer.messages import say
from transformer.ui.limits import EXPORTS_AT_ONCE, MAX_EXPORTS, MAX_IDLE
from transformer.views.declaration import Answer

NICENESS = 15  # a thread without it gets thirty times the processor's time


def _give_way() -> None:
    """Lower this thread's priority, and that of the threads that it starts for its products.

    Linux alone has a priority for each thread.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


class Lane:
    """Threads of low priority for what takes long. Who waits for one holds no thread, and is
    refused where `most` others wait or are served already; who has gone is not served."""

    def __init__(self, name: str, n_threads: int, most: int) -> None:
        self._threads = ThreadPoolExecutor(n_threads, name, initializer=_give_way)
        self._here, self._most = 0, most

    def answering(self, work: Callable[[Any], Answer]) -> Callable[..., Awaitable[Answer]]:
        """`work`, done in this lane."""

        async def answer(data: Any) -> Answer:
            if self._here >= self._most:
                return {
                    "error": say("The server is busy with other requests; try again in a moment")
                }
            self._here += 1
            try:
                context = copy_context()  # says who waits for it
                done = self._threads.submit(context.run, _unless_over, work, data)
                return await asyncio.wrap_future(done)
            finally:
                self._here -= 1

        answer.__name__ = work.__name__
        return answer


def _unless_over(work: Callable[[Any], Answer], data: Any) -> Answer:
    return {"error": say("nobody waits for this any more")} if deadline.is_over() else work(data)


IDLE = Lane("idle", 1, MAX_IDLE)
FILES = Lane("files", EXPORTS_AT_ONCE, MAX_EXPORTS)
