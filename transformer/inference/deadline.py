"""Time limits of requests, checked between two steps of the network."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from transformer.checks import InvalidCall, InvalidRequest

TIME, CANCELLED = "time", "cancelled"


YieldSlot = Callable[[Callable[[], bool]], float]


class Deadline:
    """Passes after so many seconds, or when its flag is set.

    yield_slot: called at each check, so between two steps. It may let other requests run first,
    while the function it is given says that this request is still wanted, and returns the seconds
    it took, which do not count.
    """

    def __init__(
        self,
        seconds: float,
        flag: threading.Event | None = None,
        yield_slot: YieldSlot | None = None,
    ) -> None:
        self._end = time.monotonic() + seconds
        self.flag, self.yield_slot = flag, yield_slot
        self.why: str | None = None  # TIME or CANCELLED, once it has passed

    def is_wanted(self) -> bool:
        """Whether a caller still waits for the result."""
        return self.flag is None or not self.flag.is_set()

    def is_over(self) -> bool:
        """Whether to stop now; `why` is then the reason."""
        if self.why is not None:
            return True
        if self.yield_slot is not None:
            self._end += self.yield_slot(self.is_wanted)
        if not self.is_wanted():
            self.why = CANCELLED
        elif time.monotonic() >= self._end:
            self.why = TIME
        return self.why is not None


_CURRENT: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def until(deadline: Deadline) -> Iterator[Deadline]:
    """Apply a deadline to generation in this block and thread."""
    token = _CURRENT.set(deadline)
    try:
        yield deadline
    finally:
        _CURRENT.reset(token)


@contextmanager
def renewed(seconds: float, yield_slot: YieldSlot | None = None) -> Iterator[Deadline]:
    """A new time limit for this block, with the outer deadline's flag and, unless given, its
    yield_slot."""
    current, flag = _CURRENT.get(), current_flag()
    if yield_slot is None and current is not None:
        yield_slot = current.yield_slot
    with until(Deadline(seconds, flag, yield_slot)) as deadline:
        yield deadline


def current_flag() -> threading.Event | None:
    """The event that cancels this thread's request; None without one."""
    current = _CURRENT.get()
    return current.flag if current is not None else None


def is_over() -> bool:
    """Whether this thread's request has to stop now; False without a deadline."""
    current = _CURRENT.get()
    return current is not None and current.is_over()


def why_over() -> str | None:
    """TIME or CANCELLED if this thread's request had to stop, else None."""
    current = _CURRENT.get()
    return current.why if current is not None else None


def check() -> None:
    """Raise InvalidRequest if this thread's request has to stop: no partial result is used."""
    if not is_over():
        return
    if why_over() == CANCELLED:
        raise InvalidCall("cancelled", "nobody waits for this any more")
    raise InvalidRequest("too_slow", "this takes longer than one request may: take a shorter text")
