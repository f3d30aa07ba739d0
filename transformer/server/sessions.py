"""The current session and address, each session's open requests, and the shared resources."""

from __future__ import annotations

import ipaddress
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any

from transformer.inference.deadline import Deadline, current_flag
from transformer.server import limits
from transformer.server.fair_scheduler import Caller, Line, Resource

NOBODY = Caller()
_CALLER: ContextVar[Caller] = ContextVar("caller", default=NOBODY)
SLICE_S = 1.0  # that a request runs the network before it steps aside for those who wait


def caller() -> Caller:
    """The address and session of the request that this thread or task answers."""
    return _CALLER.get()


def set_caller(**of: str) -> Token[Caller]:
    """Say whose request this task answers from now on: its address, its session, or both."""
    return _CALLER.set(_CALLER.get()._replace(**of))


def reset_caller(token: Token[Caller]) -> None:
    """Undo `set_caller`."""
    _CALLER.reset(token)


def address_of(host: str) -> str:
    """The address whose share a caller takes: of an IPv6 one the network, which has 2^64."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host
    return host if found.version == 4 else str(ipaddress.ip_network((found, 64), strict=False))


def shares(trainings: int = limits.MAX_TRAININGS) -> dict[str, Line]:
    """Everything that takes long.

    model: generation. experiments: what-if. files: exports. idle: what takes long and a thread of
    low priority answers. questions: all that the page's views ask. events: programs' calls that
    read what there is. pages: descriptions of the page and the API, as they are made.
    """

    def shared(at_once: int, **settings: Any) -> Resource:
        """Of which one address may have begun no more than its share."""
        most = math.ceil(settings.get("begun", at_once) * limits.ADDRESS_SHARE)
        return Resource(at_once, address=most, **settings)

    resources = {
        "model": shared(limits.AT_ONCE, begun=limits.MAX_BEGUN, slice_s=SLICE_S, last=True),
        "experiments": shared(
            1, waiting=limits.MAX_EXPERIMENTS_WAITING, begun=limits.MAX_BEGUN_EXPERIMENTS,
            slice_s=SLICE_S / 2, last=True,
        ),
        "trainings": Resource(trainings, waiting=limits.MAX_TRAININGS_WAITING),
        "files": Resource(limits.EXPORTS_AT_ONCE, waiting=limits.MAX_EXPORTS),
        "idle": Resource(limits.IDLE_AT_ONCE, patience_s=limits.MAX_QUESTION_WAIT_S),
        "questions": shared(limits.MAX_QUESTIONS, patience_s=limits.MAX_QUESTION_WAIT_S),
        "events": shared(limits.MAX_EVENTS),
        "pages": Resource(limits.MAX_PAGES),
    }  # fmt: skip
    return {name: Line(resource) for name, resource in resources.items()}


class Sessions:
    """The requests under way, by visitor (a session of the page or of a program).

    on_leave: what else is to be done when one has left.
    """

    def __init__(self, *on_leave: Callable[[str], object]) -> None:
        self._flags: dict[str, set[threading.Event]] = {}
        self._lock = threading.Lock()
        self.on_leave = list(on_leave)

    @contextmanager
    def request(
        self, visitor: str, line: Line | None = None, seconds: float = limits.MAX_SECONDS
    ) -> Iterator[Deadline]:
        """The deadline that a request of this visitor has, while it is under way.

        line: where it takes a place first. Raises Busy.
        """
        flag = current_flag() or threading.Event()
        with self._lock:
            self._flags.setdefault(visitor, set()).add(flag)
        try:
            if line is None:
                yield Deadline(seconds, flag)
            else:
                who = caller()._replace(session=visitor)
                with line.taken(who, lambda: not flag.is_set()) as place:
                    yield Deadline(seconds, flag, place.yield_slot)
        finally:
            with self._lock:
                flags = self._flags.get(visitor, set())
                flags.discard(flag)
                if not flags:
                    self._flags.pop(visitor, None)

    def stop(self, visitor: str) -> None:
        """Cancel this visitor's open requests; tool calls ("") belong to no session."""
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
