"""Who is here: a generation ends when its visitor stops it, starts another, or leaves.

Also who asks now, and what all visitors share.
"""

from __future__ import annotations

import ipaddress
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from transformer.inference.deadline import Deadline
from transformer.ui.fair_scheduler import Asker, FairScheduler, Resource
from transformer.ui.limits import (
    ADDRESS_SHARE,
    AT_ONCE,
    EXPORTS_AT_ONCE,
    MAX_BEGUN,
    MAX_BEGUN_EXPERIMENTS,
    MAX_CALLS,
    MAX_CALLS_WAITING,
    MAX_EVENTS,
    MAX_EXPERIMENTS_WAITING,
    MAX_EXPORTS,
    MAX_IDLE,
    MAX_QUESTIONS,
    MAX_SECONDS,
    MAX_TRAININGS,
    MAX_TRAININGS_WAITING,
)

ASKER: ContextVar[str] = ContextVar("asker", default="")  # the session that is answered here
ADDRESS: ContextVar[str] = ContextVar("address", default="")  # where its request comes from
SLICE_S = 1.0  # that a request runs the network before it steps aside for those who wait


def asker() -> Asker:
    """Who asked for what this thread or task does."""
    return Asker(ADDRESS.get(), ASKER.get())


def address_of(host: str) -> str:
    """The address whose share a caller takes: of an IPv6 one the network, which has 2^64."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host
    return host if found.version == 4 else str(ipaddress.ip_network((found, 64), strict=False))


def shares(trainings: int = MAX_TRAININGS, slice_s: float = SLICE_S) -> FairScheduler:
    """Everything that takes long.

    model: generation. experiments: what-if. files: exports. idle: views that the page asks for when
    it rests. tools: calls over MCP. questions: all that the page's views ask. events: all else that
    goes through Gradio's queue.
    """

    def share(count: int) -> int:
        return math.ceil(count * ADDRESS_SHARE)

    return FairScheduler(
        {
            "model": Resource(
                AT_ONCE, begun=MAX_BEGUN, address=share(MAX_BEGUN), slice_s=slice_s
            ),
            "experiments": Resource(
                1, waiting=MAX_EXPERIMENTS_WAITING, begun=MAX_BEGUN_EXPERIMENTS,
                address=share(MAX_BEGUN_EXPERIMENTS), slice_s=slice_s / 2,  # one runs at a time
            ),
            "trainings": Resource(trainings, waiting=MAX_TRAININGS_WAITING),
            "files": Resource(EXPORTS_AT_ONCE, waiting=MAX_EXPORTS),
            "idle": Resource(1, waiting=MAX_IDLE),
            "tools": Resource(MAX_CALLS, waiting=MAX_CALLS_WAITING, address=share(MAX_CALLS)),
            "questions": Resource(MAX_QUESTIONS, address=share(MAX_QUESTIONS)),
            "events": Resource(MAX_EVENTS, address=share(MAX_EVENTS)),
        }
    )  # fmt: skip


class Visitors:
    """The requests under way, by visitor (a session of the page or of a program).

    on_leave: what else is to be done when one has left.
    """

    def __init__(self, *on_leave: Callable[[str], object]) -> None:
        self._flags: dict[str, set[threading.Event]] = {}
        self._lock = threading.Lock()
        self.on_leave = list(on_leave)

    @contextmanager
    def request(
        self, visitor: str, shares: FairScheduler | None = None, seconds: float = MAX_SECONDS
    ) -> Iterator[Deadline]:
        """The deadline that a request of this visitor has, while it is under way.

        shares: of whose "model" it takes a place first. Raises Busy.
        """
        flag = threading.Event()
        with self._lock:
            self._flags.setdefault(visitor, set()).add(flag)
        try:
            if shares is None:
                yield Deadline(seconds, flag)
            else:
                who = Asker(ADDRESS.get(), visitor)
                with shares.taken("model", who, lambda: not flag.is_set()) as place:
                    yield Deadline(seconds, flag, place.step_aside)
        finally:
            with self._lock:
                flags = self._flags.get(visitor, set())
                flags.discard(flag)
                if not flags:
                    self._flags.pop(visitor, None)

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
