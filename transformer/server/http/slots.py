"""Slots: who may compute. A few requests at once, in turn by address and by session.

Of those who wait, one whose address has the fewest requests running goes first, then one whose
address was served longest ago; the sessions of an address take turns in the same way. A newcomer
is level with the one that has waited longest. A request that runs longer than a slice
steps aside while others wait; those that have not begun go before those that have.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from concurrent.futures import Future, wait
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from transformer.server.http.errors import YOURS_WAIT, Busy
from transformer.server.http.limits import MAX_THREADS_WAITING, MAX_VISITOR_WAITING, MAX_WAITING

LOOK_S = 0.1  # how often a waiting thread looks whether its request is still wanted


class Caller(NamedTuple):
    """An address and one of its sessions; tool calls have the session ""."""

    address: str = ""
    session: str = ""


class Place:
    """A request's place: waiting, running (`has`), or stepped aside.

    ready: done once it runs; it has the exception Busy where the place was given to another.
    """

    def __init__(self, slots: Slots, caller: Caller, holds_thread: bool) -> None:
        self.slots, self.caller, self.holds_thread = slots, caller, holds_thread
        self.has = self.began = False
        self.joined, self.since = time.monotonic(), 0.0
        self.ready: Future[None] = Future()

    @property
    def refused(self) -> bool:
        """Whether the place was given to another request."""
        return self.ready.done() and self.ready.exception() is not None

    def wait(self, is_wanted: Callable[[], bool]) -> None:
        """Block until it runs; leave when the request is no longer wanted. Raises Busy."""
        while not wait([self.ready], LOOK_S).done:
            if not is_wanted():
                self.leave()
                return
        self.ready.result()

    def yield_slot(self, is_wanted: Callable[[], bool]) -> float:
        """Let waiting requests run if a slice is over; returns the seconds that this took."""
        began = time.monotonic()
        if not self.has or not self.slots.step_aside(self):
            return 0.0
        self.wait(is_wanted)
        return time.monotonic() - began

    def leave(self) -> None:
        """Give the place up, whether it runs or waits."""
        self.slots.leave(self)


class Slots:
    """The requests that run or wait for one thing that takes long.

    at_once: how many run. waiting: how many wait, besides MAX_THREADS_WAITING that hold a thread.
    begun: how many run or have stepped aside; by default as many as run. of_address: how many of
    them may be of one address. slice_s: seconds after which one steps aside. patience_s: seconds
    that a task waits before it is refused. last: a request with a place here may not wait for
    another thing.
    """

    def __init__(
        self,
        at_once: int,
        *,
        waiting: int = MAX_WAITING,
        begun: int | None = None,
        of_address: float = math.inf,
        slice_s: float = math.inf,
        patience_s: float | None = None,
        last: bool = False,
    ) -> None:
        self.at_once, self.waiting = at_once, waiting
        self.begun, self.of_address = begun or at_once, of_address
        self.slice_s, self.patience_s, self.last = slice_s, patience_s, last
        self._places: list[Place] = []  # in the order in which they came
        # The last turn, and (turn, whether it was its own) of addresses and Callers that are here.
        self._turn, self._turns = 0, dict[Hashable, tuple[int, bool]]()
        self._began = 0.0  # when a request last began or went on
        self._lock = threading.Lock()

    @asynccontextmanager
    async def placed(self, caller: Caller) -> AsyncIterator[None]:
        """Wait in a task, which holds no thread meanwhile, and run the block in a place.

        Raises Busy.
        """
        place = self.join(caller)
        try:
            await asyncio.wait([ready := asyncio.wrap_future(place.ready)])
            ready.result()
            yield
        finally:
            place.leave()

    def join(self, caller: Caller, holds_thread: bool = False) -> Place:
        """A new place. holds_thread: whether a thread waits for it.

        Raises Busy if too many wait, unless another address, or another session of the same, has
        more of them: then its newest waiting request is refused.
        """
        place = Place(self, caller, holds_thread)
        with self._lock:
            refused = self._make_room(place)
            waiting = [other.caller for other in self._places if not other.has]
            self._level(caller.address, (other.address for other in waiting))
            self._level(caller, (other for other in waiting if other.address == caller.address))
            self._places.append(place)
        if refused is not None:
            refused.ready.set_exception(Busy())
        self._start()
        return place

    def leave(self, place: Place) -> None:
        """Take a place back, whether it runs or waits."""
        with self._lock:
            place.has = False
            self._places = [other for other in self._places if other is not place]
            callers = {other.caller for other in self._places}
            names = callers | {each.address for each in callers}
            self._turns = {name: turn for name, turn in self._turns.items() if name in names}
        self._start()

    def step_aside(self, place: Place) -> bool:
        """Whether a running request's slice is over and others wait: they run in its place."""
        with self._lock:
            is_over = time.monotonic() - place.since >= self.slice_s
            if not is_over or all(place.has for place in self._places):
                return False
            place.has, place.ready = False, Future()
        self._start()
        return True

    def counts(self) -> dict[str, int]:
        """How many run, and how many wait or have stepped aside."""
        with self._lock:
            running = sum(place.has for place in self._places)
            return {"running": running, "waiting": len(self._places) - running}

    def stalled_s(self) -> float:
        """Seconds for which requests have waited and none has begun or gone on."""
        with self._lock:
            joined = [place.joined for place in self._places if not place.has]
            return time.monotonic() - max(self._began, min(joined)) if joined else 0.0

    def before(self, place: Place) -> int:
        """The least number of requests served before it; 0 once it runs."""
        with self._lock:
            waiting = sorted((other for other in self._places if not other.has), key=self._order())
            return waiting.index(place) + self.at_once if place in waiting else 0

    def _level(self, name: Hashable, waiting: Iterable[Hashable]) -> None:
        """Let a new address or Caller begin level with the one that has waited longest."""
        longest, _ = min((self._turns[other] for other in waiting), default=(0, False))
        self._turns[name] = max(self._turns.get(name, (0, False)), (longest, False))

    def _start(self) -> None:
        """Start what can run."""
        started: list[Place] = []
        with self._lock:
            while (place := self._next()) is not None:
                place.has = place.began = True
                place.since = self._began = time.monotonic()
                self._turn += 1
                self._turns |= dict.fromkeys(
                    (place.caller.address, place.caller), (self._turn, True)
                )
                started.append(place)
        for place in started:  # outside of the lock: what hears of it may join or leave
            place.ready.set_result(None)

    def _next(self) -> Place | None:
        """The request that runs next, if there is room."""
        if sum(place.has for place in self._places) >= self.at_once:
            return None
        begun = Counter(place.caller.address for place in self._places if place.began)
        room = begun.total() < self.begun
        may = (
            place
            for place in self._places
            if not place.has
            and (place.began or (room and begun[place.caller.address] < self.of_address))
        )
        return min(may, key=self._order(), default=None)

    def _order(self) -> Callable[[Place], tuple[Any, ...]]:
        running = Counter[Hashable]()
        for place in self._places:
            running.update((place.caller.address, place.caller) if place.has else ())

        def order(place: Place) -> tuple[Any, ...]:
            names = (place.caller.address, place.caller)
            return (*((running[name], self._turns[name]) for name in names), place.began)

        return order

    def _make_room(self, place: Place) -> Place | None:
        """The waiting request that the new one displaces, if any. Raises Busy."""
        room = MAX_THREADS_WAITING if place.holds_thread else self.waiting
        waiting = [other for other in self._places if not other.began]
        peers = [other for other in (*waiting, place) if other.holds_thread == place.holds_thread]
        callers = Counter(peer.caller for peer in peers)
        if place.caller.session and callers[place.caller] > MAX_VISITOR_WAITING:
            raise Busy(YOURS_WAIT)
        if len(peers) <= room:
            return None
        addresses = Counter(peer.caller.address for peer in peers)
        # The newest of those who have most.
        refused = max(
            reversed(peers), key=lambda peer: (addresses[peer.caller.address], callers[peer.caller])
        )
        if refused is place:
            raise Busy()
        self._places.remove(refused)
        return refused
