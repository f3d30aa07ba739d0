"""Who may run the network now: what takes long steps aside for a while when others wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SLICE_S = 1.0  # of the network, before a request steps aside for those who wait
PATIENCE_S = 2.0  # after which one that stepped aside goes before those who are new
LOOK_S = 0.1  # how often one that waits looks whether it is still wanted


class Turns:
    """So many requests run at a time. One that has run for slice_s is no longer new: if others
    wait, it steps aside between two of its steps, the new ones go first, and those that stepped
    aside go on in turn. What a request computes does not depend on when it does.

    most: requests that have begun, those included that stepped aside.
    """

    def __init__(self, at_once: int, most: int, slice_s: float = SLICE_S) -> None:
        self.at_once, self.most, self.slice_s = at_once, most, slice_s
        self._free = at_once
        self._turns: list[Turn] = []
        self._waiting: list[Turn] = []
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, is_wanted: Callable[[], bool]) -> Iterator[Turn]:
        """Waits for a turn as long as it is wanted, and gives it back at the end."""
        turn = Turn(self)
        with self._changed:
            self._turns.append(turn)
            self._wait(turn, is_wanted)
        try:
            yield turn
        finally:
            with self._changed:
                self._turns.remove(turn)
                self._give(turn)

    def room(self) -> int:
        """How many may have begun now: as many new ones as run at a time, beside the others."""
        with self._changed:
            n_old = sum(turn.is_old() for turn in self._turns)
        return min(self.at_once + n_old, self.most)

    def step_aside(self, turn: Turn, is_wanted: Callable[[], bool]) -> float:
        """Between two steps: let others go first if it is their turn; how long that took, s."""
        began = time.monotonic()
        if not turn.has or began - turn.since < self.slice_s or not self._waiting:
            return 0.0
        with self._changed:
            self._give(turn)
            self._wait(turn, is_wanted)
        return time.monotonic() - began

    def _give(self, turn: Turn) -> None:
        if turn.has:
            turn.has = False
            self._free += 1
            self._changed.notify_all()

    def _take(self, turn: Turn) -> bool:
        if self._free and min(self._waiting, key=lambda one: one.since) is turn:
            turn.has = True
            self._free -= 1
        return turn.has

    def _wait(self, turn: Turn, is_wanted: Callable[[], bool]) -> None:
        turn.since = time.monotonic() + (PATIENCE_S if turn.is_old() else 0.0)
        self._waiting.append(turn)
        while not self._take(turn) and is_wanted():
            self._changed.wait(LOOK_S)
        self._waiting.remove(turn)
        turn.since = time.monotonic()
        turn.began = turn.began or turn.since
        self._changed.notify_all()  # the next one may have room too


class Turn:
    """One request's: whether it has it, and since when (while it waits: its place among those who
    do). began: when it had it first."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self.has, self.since, self.began = False, 0.0, 0.0

    def is_old(self) -> bool:
        """Whether its first slice is over."""
        return bool(self.began) and time.monotonic() - self.began >= self._turns.slice_s

    def step_aside(self, is_wanted: Callable[[], bool]) -> float:
        """See Turns."""
        return self._turns.step_aside(self, is_wanted)
