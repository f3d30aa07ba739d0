"""Who is here: a generation ends when its visitor stops it, starts another, or leaves."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from transformer.inference.deadline import Deadline
from transformer.ui.limits import MAX_SECONDS
from transformer.ui.turns import Turns

ASKER: ContextVar[str] = ContextVar("asker", default="")  # whose question this thread answers
KNOWN = 1_000  # visitors whose address is remembered, in memory alone


class Visitors:
    """The requests under way, by visitor (a session of the page or of a program).

    on_leave: what else is to be done when one has left.
    """

    def __init__(self, *on_leave: Callable[[str], object]) -> None:
        self._flags: dict[str, set[threading.Event]] = {}
        self._addresses: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()
        self.on_leave = list(on_leave)

    @contextmanager
    def request(
        self, visitor: str, turns: Turns | None = None, seconds: float = MAX_SECONDS
    ) -> Iterator[Deadline]:
        """The deadline that a request of this visitor has, while it is under way.

        turns: of which it takes one first.
        """
        flag = threading.Event()
        with self._lock:
            self._flags.setdefault(visitor, set()).add(flag)
        try:
            if turns is None:
                yield Deadline(seconds, flag)
            else:
                with turns.taken(lambda: not flag.is_set()) as turn:
                    yield Deadline(seconds, flag, turn.step_aside)
        finally:
            with self._lock:
                flags = self._flags.get(visitor, set())
                flags.discard(flag)
                if not flags:
                    self._flags.pop(visitor, None)

    def met(self, visitor: str, address: str) -> None:
        """A request of this visitor came from there."""
        with self._lock:
            self._addresses[visitor] = address
            self._addresses.move_to_end(visitor)
            if len(self._addresses) > KNOWN:
                self._addresses.popitem(last=False)

    def address(self, visitor: str) -> str:
        """Where this visitor's last request came from; "" if that is not known."""
        with self._lock:
            return self._addresses.get(visitor, "")

    def stop(self, visitor: str) -> None:
        """End what this visitor has under way, if anything; "" is nobody's name."""
        with self._lock:
            flags = list(self._flags.get(visitor, ())) if visitor else []
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
