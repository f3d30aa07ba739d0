"""How long a request may take: asked between two steps of the network, which then ends early."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

TIME, CANCELLED = "time", "cancelled"


class Patience:
    """Runs out after so many seconds, or when its flag is raised."""

    def __init__(self, seconds: float, flag: threading.Event | None = None) -> None:
        self._end = time.monotonic() + seconds
        self._flag = flag
        self.why: str | None = None  # TIME or CANCELLED, once it was found to have run out

    def is_over(self) -> bool:
        """Whether to stop now; `why` then says the reason."""
        if self.why is None and self._flag is not None and self._flag.is_set():
            self.why = CANCELLED
        elif self.why is None and time.monotonic() >= self._end:
            self.why = TIME
        return self.why is not None


_CURRENT: ContextVar[Patience | None] = ContextVar("patience", default=None)


@contextmanager
def until(patience: Patience) -> Iterator[None]:
    """What is generated inside, in this thread, ends early when the patience is over."""
    token = _CURRENT.set(patience)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def is_over() -> bool:
    """Whether the request that this thread works on is to stop now; never without a limit."""
    current = _CURRENT.get()
    return current is not None and current.is_over()


def why_over() -> str | None:
    """TIME or CANCELLED if this thread's request was told to stop, else None."""
    current = _CURRENT.get()
    return current.why if current is not None else None
