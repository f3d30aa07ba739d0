"""The requests that the server answers: whose request a thread or task works for, the threads and
slots that they share, and which are open."""

from __future__ import annotations

import asyncio
import copy
import ipaddress
import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar

from transformer.inference.deadline import Deadline, check, current, enter, renewed
from transformer.server import limits
from transformer.server.errors import Busy
from transformer.server.slots import Caller, Place, Slots

T = TypeVar("T")
NICENESS = 15  # a thread without it gets thirty times the processor's time
SLICE_S = 1.0  # that a request runs the network before it steps aside for those who wait


# A deadline's request is the Place in which it is computed or, before it has one, its Caller.


def caller() -> Caller:
    """The address and session of the request that this thread or task answers."""
    request = current().request
    return request.caller if isinstance(request, Place) else request or Caller()


def set_caller(**of: str) -> None:
    """Set the address or session, or both, of the request that this task answers."""
    _set_request(caller()._replace(**of))


def _set_request(request: Caller | Place) -> None:
    """Go on with another request, under the same deadline."""
    deadline = copy.copy(current())
    deadline.request = request
    enter(deadline)


def time_limit(seconds: float, flag: threading.Event | None = None) -> Deadline:
    """A new deadline of this thread's request, which steps aside for others as it is checked.
    flag: the outer deadline's by default."""
    outer = current()
    yield_slot = outer.request.yield_slot if isinstance(outer.request, Place) else None
    return Deadline(seconds, flag or outer.flag, yield_slot, outer.request)


@contextmanager
def using(place: Place) -> Iterator[None]:
    """Let this thread's request compute in a place within the block; it is left at the end."""
    outer = current()
    _set_request(place)
    try:
        yield
    finally:
        enter(outer)  # no token: a generator may go on in another context
        place.leave()


@contextmanager
def taken(slots: Slots, patience_s: float = math.inf) -> Iterator[None]:
    """Block this thread until its request may compute here, and leave at the end.

    The place that the request has here already is used. Raises Busy, also where it has waited for
    so long or its client has left; AssertionError where it has a `last` place elsewhere, since two
    such requests could wait for each other.
    """
    held = current().request
    if isinstance(held, Place) and held.slots is slots:
        yield
        return
    assert not (isinstance(held, Place) and held.slots.last), "holds a place elsewhere"
    with using(place := slots.join(caller(), holds_thread=True)):
        with renewed(patience_s) as patience:
            place.wait(lambda: not patience.is_over())
        if not place.has:
            raise Busy()
        yield


def address_of(host: str) -> str:
    """The address that a caller's share is counted by: of IPv6 the network, of 2^64 addresses."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host
    return host if found.version == 4 else str(ipaddress.ip_network((found, 64), strict=False))


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

    def wanted() -> T:
        check()
        return work()

    place = await shares[name].placed(caller())
    return await begin_in_thread(place, wanted, low_priority=name in ("files", "idle"))


def begin_in_thread(
    place: Place, work: Callable[[], T], low_priority: bool = False
) -> asyncio.Future[T]:
    """Do the work in a thread with this task's context; the place is given up when it ends."""
    context = copy_context()  # language, session and deadline of the request

    def in_place() -> T:
        with using(place):
            return work()

    done = (_LOW if low_priority else _NORMAL).submit(context.run, in_place)
    done.add_done_callback(lambda _: place.leave())  # also where it is cancelled before it begins
    return asyncio.wrap_future(done)


def shares(trainings: int = limits.MAX_TRAININGS) -> dict[str, Slots]:
    """The slots of each kind of slow work, by name.

    model: generation. experiments: what-if. files: exports. idle: what takes long and a thread of
    low priority answers. questions: all that the page's views ask. events: programs' calls that
    read what there is. pages: descriptions of the API, as they are made.
    """

    def shared(at_once: int, **settings: Any) -> Slots:
        """Of which one address may have begun no more than its share."""
        most = math.ceil(settings.get("begun", at_once) * limits.ADDRESS_SHARE)
        return Slots(at_once, of_address=most, **settings)

    return {
        "model": shared(limits.AT_ONCE, begun=limits.MAX_BEGUN, slice_s=SLICE_S, last=True),
        "experiments": shared(
            1, waiting=limits.MAX_EXPERIMENTS_WAITING, begun=limits.MAX_BEGUN_EXPERIMENTS,
            slice_s=SLICE_S / 2, last=True,
        ),
        "trainings": Slots(trainings, waiting=limits.MAX_TRAININGS_WAITING),
        "files": Slots(limits.EXPORTS_AT_ONCE, waiting=limits.MAX_EXPORTS),
        "idle": Slots(limits.IDLE_AT_ONCE, patience_s=limits.MAX_QUESTION_WAIT_S),
        "questions": shared(limits.MAX_QUESTIONS, patience_s=limits.MAX_QUESTION_WAIT_S),
        "events": shared(limits.MAX_EVENTS),
        "pages": Slots(limits.MAX_PAGES),
    }  # fmt: skip


class OpenRequests:
    """The requests under way, each with its visitor (a session of the page or of a program).

    on_leave: called when a visitor has left.
    """

    def __init__(self, *on_leave: Callable[[str], object]) -> None:
        self._open: list[tuple[str, threading.Event]] = []
        self._lock = threading.Lock()
        self._on_leave = on_leave

    @contextmanager
    def open(self, visitor: str, seconds: float = limits.MAX_SECONDS) -> Iterator[Deadline]:
        """Register a visitor's request while the block runs; gives its deadline."""
        flag = current().flag or threading.Event()
        with self._lock:
            self._open.append((visitor, flag))
        try:
            yield time_limit(seconds, flag)
        finally:
            with self._lock:
                self._open.remove((visitor, flag))

    def stop(self, visitor: str) -> None:
        """Cancel this visitor's open requests; tool calls ("") belong to no session."""
        with self._lock:
            flags = [flag for name, flag in self._open if name and name == visitor]
        for flag in flags:
            flag.set()

    def leave(self, visitor: str) -> None:
        """This visitor is gone; tool calls ("") belong to none."""
        self.stop(visitor)
        for told in self._on_leave if visitor else ():
            told(visitor)

    def under_way(self) -> int:
        """The number of open requests."""
        return len(self._open)
