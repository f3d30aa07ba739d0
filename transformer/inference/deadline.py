"""Time limits of requests, checked between two steps of the network."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from transformer.checks import InvalidCall, InvalidRequest

TIME, CANCELLED = "time", "cancelled"
YieldSlot = Callable[[Callable[[], bool]], float]


class Deadline:
    """Passes after this many seconds, or when its flag is set.

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

    @property
    def has_end(self) -> bool:
        """Whether it passes by itself."""
        return math.isfinite(self._end)

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


def current() -> Deadline:
    """The deadline of this thread's or task's work; without one, it never passes."""
    return _CURRENT.get() or Deadline(math.inf)


@contextmanager
def until(deadline: Deadline) -> Iterator[Deadline]:
    """Apply a deadline to generation in this block and thread."""
    token = _CURRENT.set(deadline)
    try:
        yield deadline
    finally:
        _CURRENT.reset(token)


@contextmanager
def renewed(seconds: float, flag: threading.Event | None = None) -> Iterator[Deadline]:
    """A new time limit for this block. Its flag is the outer deadline's, unless another is given,
    and so is its yield_slot."""
    outer = current()
    with until(Deadline(seconds, flag or outer.flag, outer.yield_slot)) as deadline:
        yield deadline


def is_over() -> bool:
    """Whether this thread's request has to stop now; False without a deadline."""
    return current().is_over()


def check() -> None:
    """Raise InvalidRequest if this thread's request has to stop: no partial result is used."""
    if not is_over():
        return
    if current().why == CANCELLED:
        raise InvalidCall("cancelled", "nobody waits for this any more")
    raise InvalidRequest("too_slow", "this takes longer than one request may: take a shorter text")
