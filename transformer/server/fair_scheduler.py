"""Fair shares of everything that takes long: which request runs next, and how many may wait.

Start-time fair queuing over two levels, addresses and the sessions of an address: whoever has used
a resource least is served first; a newcomer starts level with the others. Source: Goyal, Vin and
Cheng 1996. Departures: having fewer running requests counts before less use; and within one slice
of use, requests that have not begun go first, so that short requests need not wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

from transformer.server.errors import YOURS_WAIT, Busy
from transformer.server.limits import (
    MAX_THREADS_WAITING,
    MAX_VISITOR_WAITING,
    MAX_WAITING,
)

LOOK_S = 0.1  # how often a waiting thread looks whether its request is still wanted
KNOWN = 2_000  # addresses and sessions whose use of a resource is remembered


class Caller(NamedTuple):
    """An address and one of its sessions; tool calls have the session ""."""

    address: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """How many requests run at once; how many wait, and how many of these may hold a thread.

    begun: requests that run or have stepped aside; None: as many as run. address: how many of them
    may be of one address; None: all. slice_s: seconds that one runs before it steps aside. last:
    a request with a place here may not wait for another resource. patience_s: seconds that a task
    waits before it is refused; None: without end.
    """

    at_once: int
    waiting: int = MAX_WAITING
    threads: int = MAX_THREADS_WAITING
    begun: int | None = None
    address: int | None = None
    slice_s: float = math.inf
    last: bool = False
    patience_s: float | None = None


_LENT: ContextVar[Place | None] = ContextVar("lent", default=None)
_AT: ContextVar[Line | None] = ContextVar("at", default=None)  # where this request has a place


class Place:
    """A request's place at a resource: waiting, running (`has`), stepped aside, or refused."""

    def __init__(
        self, line: Line, caller: Caller, wake: Callable[[Place], object] | None, kind: str
    ) -> None:
        self.line, self.caller, self.wake, self.kind = line, caller, wake, kind
        self.has = self.began = self.refused = False
        self.since = 0.0
        self.ready = threading.Event()

    def wait(self, is_wanted: Callable[[], bool]) -> None:
        """Block until it runs or is refused; give up when the caller has left."""
        while not self.ready.wait(LOOK_S):
            if not is_wanted():
                self.leave()
                return

    def yield_slot(self, is_wanted: Callable[[], bool]) -> float:
        """Let waiting requests run if a slice is over; returns the seconds that this took."""
        began = time.monotonic()
        if not self.has or not self.line.yield_slot(self):
            return 0.0
        self.wait(is_wanted)
        return time.monotonic() - began

    def leave(self) -> None:
        """Give the place up, whether it runs or waits."""
        with self.line._change():
            if self in self.line._places:
                self.line._places.remove(self)
                self.line._take_back(self)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let this request use it within the block; it is given up at the end."""
        lent, at = _LENT.set(self), _AT.set(self.line)
        try:
            yield
        finally:
            _LENT.reset(lent)
            _AT.reset(at)
            self.leave()


class Line:
    """The requests that run or wait at one resource."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self._places: list[Place] = []  # in the order in which they came
        self._running = 0
        self._used: dict[Hashable, float] = {}  # virtual start times of addresses and of Callers
        self._clock: dict[Hashable, float] = {}  # virtual time of all (None), and of an address
        self._lock = threading.Lock()

    @contextmanager
    def taken(
        self, caller: Caller, is_wanted: Callable[[], bool] = lambda: True
    ) -> Iterator[Place]:
        """Block until there is a place, and give it up at the end.

        A place here that the request came with (see `Place.lent`) is used. The place has `has`
        False if it was no longer wanted. Raises Busy; AssertionError where the request holds a
        `last` place of another resource, since two such requests could wait for each other.
        """
        lent, at = _LENT.get(), _AT.get()
        if lent is not None and lent.line is self:
            yield lent
            return
        assert at in (None, self) or not at.resource.last, "holds a place of another resource"
        place = self.join(caller, kind="thread")
        try:
            place.wait(is_wanted)
            if place.refused:
                raise Busy()
            _AT.set(self)
            yield place
        finally:
            _AT.set(at)  # no token: a generator may go on in another context
            place.leave()

    async def placed(self, caller: Caller) -> Place:
        """Wait in a task, which holds no thread meanwhile, until the request runs.

        Raises Busy also where it has waited for `patience_s`.
        """
        loop, ready = asyncio.get_running_loop(), asyncio.Event()

        def wake(_: Place) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(ready.set)

        place = self.join(caller, wake)
        try:
            async with asyncio.timeout(self.resource.patience_s):
                await ready.wait()
        except TimeoutError:
            place.leave()
            raise Busy() from None
        except BaseException:
            place.leave()
            raise
        if place.refused:
            raise Busy()
        return place

    @asynccontextmanager
    async def held(self, caller: Caller) -> AsyncIterator[None]:
        """`placed` until the end of the block."""
        place = await self.placed(caller)
        try:
            yield
        finally:
            place.leave()

    def join(
        self, caller: Caller, wake: Callable[[Place], object] | None = None, kind: str = "task"
    ) -> Place:
        """A new place. wake: called with it once it runs or is refused, outside of any lock.

        kind: "thread" where a thread waits, "task" where none does.
        Raises Busy if too many wait, unless another address, or another session of the same, has
        more of them: then its newest waiting request is refused.
        """
        place = Place(self, caller, wake, kind)
        with self._change() as woken:
            woken += self._make_room(place)
            for parent, name in _levels(caller):
                self._used[name] = max(self._used.get(name, 0.0), self._clock.get(parent, 0.0))
            self._places.append(place)
        return place

    def yield_slot(self, place: Place) -> bool:
        """Whether a running request's slice is over and others wait: they run in its place."""
        nobody_waits = len(self._places) <= self._running
        if time.monotonic() - place.since < self.resource.slice_s or nobody_waits:
            return False
        with self._change():
            place.ready.clear()
            self._take_back(place)
        return True

    def counts(self) -> dict[str, int]:
        """How many run, and how many wait or have stepped aside."""
        with self._lock:
            return {"running": self._running, "waiting": len(self._places) - self._running}

    def before(self, place: Place) -> int:
        """The least number of requests served before it; 0 once it runs."""
        with self._lock:
            waiting = sorted((one for one in self._places if not one.has), key=self._order())
            return waiting.index(place) + self.resource.at_once if place in waiting else 0

    def _make_room(self, place: Place) -> list[Place]:
        """The waiting request that the new one displaces, if any. Raises Busy."""
        room = self.resource.threads if place.kind == "thread" else self.resource.waiting
        peers = [one for one in self._places if not one.began and one.kind == place.kind]
        same = sum(one.caller == place.caller for one in peers) if place.caller.session else 0
        if same >= MAX_VISITOR_WAITING:
            raise Busy(YOURS_WAIT)
        if len(peers) < room:
            return []
        addresses, own = Counter(one.caller.address for one in peers), place.caller.address
        if _has_less(addresses, own):
            own = addresses.most_common(1)[0][0]
        near = [one for one in peers if one.caller.address == own]
        sessions = Counter(one.caller for one in near)
        if own == place.caller.address and not _has_less(sessions, place.caller):
            raise Busy()
        most = max(sessions.values())
        out = next(one for one in reversed(near) if sessions[one.caller] == most)
        out.refused = True
        self._places.remove(out)
        return [out]

    @contextmanager
    def _change(self) -> Iterator[list[Place]]:
        """Start what can run after the block, and wake it, and the places of the list."""
        woken: list[Place] = []
        with self._lock:
            yield woken
            while (best := self._best()) is not None:
                for parent, name in _levels(best.caller):
                    used = self._used.get(name, 0.0)
                    self._clock[parent] = max(self._clock.get(parent, 0.0), used)
                best.has = best.began = True
                best.since = time.monotonic()
                self._running += 1
                woken.append(best)
        for place in woken:
            place.ready.set()
            if place.wake is not None:
                place.wake(place)

    def _best(self) -> Place | None:
        """The request that runs next, if there is room."""
        if self._running >= self.resource.at_once:
            return None
        begun = Counter(one.caller.address for one in self._places if one.began)
        room = begun.total() < (self.resource.begun or self.resource.at_once)
        most = self.resource.address or math.inf
        may = [
            one
            for one in self._places
            if not one.has and (one.began or (room and begun[one.caller.address] < most))
        ]
        return min(may, key=self._order(), default=None)

    def _order(self) -> Callable[[Place], tuple[Any, ...]]:
        running = [one.caller for one in self._places if one.has]
        busy: Counter[Hashable] = Counter(name for one in running for _, name in _levels(one))

        def order(place: Place) -> tuple[Any, ...]:
            levels = _levels(place.caller)
            ahead = [self._used.get(name, 0.0) - self._clock.get(it, 0.0) for it, name in levels]
            (address, session), slice_s = ahead, self.resource.slice_s
            return (
                busy[levels[0][1]], max(0.0, address - slice_s),
                busy[levels[1][1]], max(0.0, session - slice_s),
                place.began, address, session,
            )  # fmt: skip

        return order

    def _take_back(self, place: Place) -> None:
        if not place.has:
            return
        place.has = False
        self._running -= 1
        for _, name in _levels(place.caller):
            self._used[name] = self._used.pop(name, 0.0) + time.monotonic() - place.since
        for known in (self._used, self._clock):
            while len(known) > KNOWN:
                del known[next(iter(known))]


def _levels(caller: Caller) -> tuple[tuple[str | None, Hashable], tuple[str | None, Hashable]]:
    """(parent, name) of the address and of the session."""
    return (None, caller.address), (caller.address, caller)


def _has_less(counts: Counter[Any], own: Any) -> bool:
    """Whether another one has more, even if `own` gets one more."""
    return counts[own] + 1 < max(counts.values(), default=0)
