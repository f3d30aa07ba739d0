"""Who is here: a generation ends when its visitor stops it, starts another, or leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from transformer.inference.patience import Patience
from transformer.ui.limits import MAX_SECONDS


class Visitors:
    """The requests under way, by visitor (a session of the page or of a program).

    on_leave: what else is to be done when one has left.
    """

    def __init__(self, *on_leave: Callable[[str], object]) -> None:
        self._flags: dict[str, set[threading.Event]] = {}
        self._lock = threading.Lock()
        self.on_leave = list(on_leave)

    @contextmanager
    def request(self, visitor: str, seconds: float = MAX_SECONDS) -> Iterator[Patience]:
        """The patience that a request of this visitor has, while it is under way."""
        flag = threading.Event()
        with self._lock:
            self._flags.setdefault(visitor, set()).add(flag)
        try:
            yield Patience(seconds, flag)
        finally:
            with self._lock:
                flags = self._flags.get(visitor, set())
                flags.discard(flag)
                if not flags:
                    self._flags.pop(visitor, None)

    def stop(self, visitor: str) -> None:
        """End what this visitor has under way, if anything."""
        with self._lock:
            flags = list(self._flags.get(visitor, ()))
        for flag in flags:
            flag.set()

    def leave(self, visitor: str) -> None:
        """This visitor is gone."""
        self.stop(visitor)
        for told in self.on_leave:
            told(visitor)

    def under_way(self) -> int:
        """How many requests there are."""
        with self._lock:
            return sum(len(flags) for flags in self._flags.values())
