"""Threads that do a request's work once it may compute."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from transformer.inference import deadline
from transformer.server import limits
from transformer.server.sessions import caller, using
from transformer.server.slots import Place, Slots

NICENESS = 15  # a thread without it gets thirty times the processor's time
T = TypeVar("T")


def _lower_priority() -> None:
    """That of this thread and of those it starts for its products; Linux alone has one for each."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


# Requests that stepped aside for others keep their threads.
_NORMAL = ThreadPoolExecutor(
    limits.MAX_BEGUN + limits.MAX_BEGUN_EXPERIMENTS + limits.MAX_EVENTS + limits.MAX_QUESTIONS,
    "requests",
)
_LOW = ThreadPoolExecutor(
    limits.EXPORTS_AT_ONCE + limits.IDLE_AT_ONCE, "idle", initializer=_lower_priority
)


async def in_thread(shares: Mapping[str, Slots], name: str, work: Callable[[], T]) -> T:
    """The result of work(), run in a thread once a slot is free.

    While it waits it holds no thread. Raises Busy.
    """
    place = await shares[name].placed(caller())
    try:
        deadline.check()
    except BaseException:
        place.leave()
        raise
    return await begin(place, work, low_priority=name in ("files", "idle"))


def begin(place: Place, work: Callable[[], T], low_priority: bool = False) -> asyncio.Future[T]:
    """Do the work in a thread with this task's context; the place is given up when it ends."""
    context = copy_context()  # language, session and deadline of the request

    def in_place() -> T:
        with using(place):
            return work()

    done = (_LOW if low_priority else _NORMAL).submit(context.run, in_place)
    done.add_done_callback(lambda _: place.leave())  # also where it is cancelled before it begins
    return asyncio.wrap_future(done)
