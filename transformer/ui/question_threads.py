"""The threads in which questions of the page are answered, each once it has a place.

Those of low priority are for what nobody waits for with a click: views when the page rests, and
files.
"""

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
from transformer.ui.fair_scheduler import Busy, FairScheduler
from transformer.ui.limits import EXPORTS_AT_ONCE, MAX_QUESTIONS
from transformer.ui.visitors import asker
from transformer.views.declaration import Answer

NICENESS = 15  # a thread without it gets thirty times the processor's time


def _give_way() -> None:
    """Lower this thread's priority, and that of the threads that it starts for its products.

    Linux alone has a priority for each thread.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


_QUESTIONS = ThreadPoolExecutor(MAX_QUESTIONS, "questions")
_IDLE = ThreadPoolExecutor(EXPORTS_AT_ONCE + 1, "idle", initializer=_give_way)


def answering(
    shares: FairScheduler, resource: str, work: Callable[[Any], Answer]
) -> Callable[..., Awaitable[Answer]]:
    """`work`, done in a thread once it has a place; while it waits it holds none.

    resource: "questions", or "files" or "idle" for a thread of low priority.
    """
    threads = _QUESTIONS if resource == "questions" else _IDLE

    async def answer(data: Any) -> Answer:
        try:
            async with shares.held(resource, asker()):
                if deadline.is_over():
                    return {"error": say("nobody waits for this any more")}
                context = copy_context()  # says who waits for it
                return await asyncio.wrap_future(threads.submit(context.run, work, data))
        except Busy as busy:
            return {"error": str(busy)}

    answer.__name__ = work.__name__
    return answer
