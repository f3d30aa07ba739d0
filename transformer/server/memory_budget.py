"""One budget in bytes for everything that is kept for later requests.

A server's visits, or a program that works with many runs, produce runs, networks and numbers. Each
is an entry with a kind, an owner, bytes and a last use; the least recently used are evicted.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ENTRY_BYTES = 1_000  # of an entry, apart from its value


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much of one kind is kept, and how long.

    most_bytes: reserved for this kind; None: it shares all the room that is not reserved. most:
    entries. most_own: entries of one owner. age_s: seconds since any entry of its owner was used.
    """

    most_bytes: int | None = None
    most: float = math.inf
    most_own: float = math.inf
    age_s: float = math.inf


@dataclass(slots=True, eq=False)
class _Entry:
    """number: how many entries came before it. used, until: times of the monotonic clock; until:
    when it is evicted even if its owner is active."""

    kind: str
    key: Hashable
    value: Any
    n_bytes: int
    owner: Hashable
    number: int
    used: float
    until: float = math.inf


class MemoryBudget:
    """(kind, key) -> value, at most most_bytes of it; safe to share between threads.

    kinds: every kind's limits. If there is no room for a new entry, the least recently used are
    evicted: first of its owner and kind, at their limit of entries; then of its kind; then of all
    kinds without reserved bytes. The newest entry always stays.
    """

    def __init__(self, most_bytes: int, kinds: Mapping[str, Limits]) -> None:
        self.most_bytes, self.kinds = most_bytes, dict(kinds)
        # The least recently used first.
        self._entries: OrderedDict[tuple[str, Hashable], _Entry] = OrderedDict()
        self._seen: dict[Hashable, float] = {}  # when an entry of an owner was last used
        self._numbers, self._lock = itertools.count(), threading.Lock()

    def put(
        self, kind: str, key: Hashable, value: Any, n_bytes: int, owner: Hashable = None
    ) -> None:
        """Keep a value; it replaces one of the same key. owner: None if unknown."""
        now = time.monotonic()
        with self._lock:
            self._entries.pop((kind, key), None)
            n_bytes += ENTRY_BYTES
            entry = _Entry(kind, key, value, n_bytes, owner, next(self._numbers), now)
            self._entries[kind, key] = entry
            if owner is not None:
                self._seen[owner] = now
                self._keep(self._of(kind, owner), self.kinds[kind].most_own)
            self._make_room(kind)

    def get(self, kind: str, key: Hashable, default: Any = None) -> Any:
        """The value, which now counts as just used, or `default`."""
        now = time.monotonic()
        with self._lock:
            entry = self._entry(kind, key, now)
            if entry is None:
                return default
            entry.used, entry.until = now, math.inf
            self._entries.move_to_end((kind, key))
            if entry.owner is not None:
                self._seen[entry.owner] = now
            return entry.value

    def has(self, kind: str, key: Hashable) -> bool:
        """Whether there is a value. Does not count as use."""
        with self._lock:
            return self._entry(kind, key, time.monotonic()) is not None

    def of(self, kind: str, owner: Hashable = None) -> list[Any]:
        """All values of a kind, or those of an owner, oldest first. Does not count as use."""
        with self._lock:
            self._drop_old()
            return [one.value for one in sorted(self._of(kind, owner), key=lambda one: one.number)]

    def resize(self, kind: str, key: Hashable, n_bytes: int) -> None:
        """Update the bytes of a value that has grown or shrunk, if it is still kept."""
        with self._lock:
            entry = self._entries.get((kind, key))
            if entry is not None:
                entry.n_bytes = n_bytes + ENTRY_BYTES
                self._make_room(kind)

    def discard(self, kind: str, key: Hashable) -> None:
        """Remove the entry."""
        with self._lock:
            self._entries.pop((kind, key), None)

    def clear(self, kind: str) -> None:
        """Remove every entry of a kind."""
        with self._lock:
            for one in [one for one in self._entries.values() if one.kind == kind]:
                del self._entries[kind, one.key]

    def leave(self, owner: Hashable, age_s: float) -> None:
        """Evict each entry of an owner after age_s, unless it is used again."""
        until = time.monotonic() + age_s
        with self._lock:
            for one in self._entries.values():
                if one.owner == owner:
                    one.until = min(one.until, until)

    def sweep(self) -> None:
        """Evict what is too old."""
        with self._lock:
            self._drop_old()

    def held(self) -> dict[str, dict[str, int]]:
        """The number of entries ("count") and their "bytes", by kind."""
        with self._lock:
            self._drop_old()
            found = {kind: {"count": 0, "bytes": 0} for kind in self.kinds}
            for one in self._entries.values():
                found[one.kind]["count"] += 1
                found[one.kind]["bytes"] += one.n_bytes
            return found

    def _entry(self, kind: str, key: Hashable, now: float) -> _Entry | None:
        entry = self._entries.get((kind, key))
        if entry is None or not self._is_old(entry, now):
            return entry
        del self._entries[kind, key]
        return None

    def _of(self, kind: str, owner: Hashable = None) -> list[_Entry]:
        entries = self._entries.values()
        return [one for one in entries if one.kind == kind and owner in (None, one.owner)]

    def _is_old(self, entry: _Entry, now: float) -> bool:
        used = self._seen.get(entry.owner, entry.used)
        return entry.until <= now or used + self.kinds[entry.kind].age_s <= now

    def _drop_old(self) -> None:
        now, entries = time.monotonic(), list(self._entries.items())
        self._entries = OrderedDict((at, one) for at, one in entries if not self._is_old(one, now))
        owners = {one.owner for one in self._entries.values()}
        self._seen = {owner: used for owner, used in self._seen.items() if owner in owners}

    def _make_room(self, kind: str) -> None:
        """Evict entries after one of this kind was added or has grown."""
        limits = self.kinds[kind]
        most_bytes = math.inf if limits.most_bytes is None else limits.most_bytes
        self._keep(self._of(kind), limits.most, most_bytes)
        entries = list(self._entries.values())
        shared = [one for one in entries if self.kinds[one.kind].most_bytes is None]
        reserved = sum(one.n_bytes for one in entries) - sum(one.n_bytes for one in shared)
        self._keep(shared, math.inf, self.most_bytes - reserved)

    def _keep(self, entries: Sequence[_Entry], most: float, most_bytes: float = math.inf) -> None:
        """Evict the first of these until both limits are kept; never the last."""
        n_left, n_bytes = len(entries), sum(one.n_bytes for one in entries)
        for one in entries[:-1]:
            if n_left <= most and n_bytes <= most_bytes:
                return
            del self._entries[one.kind, one.key]
            n_left, n_bytes = n_left - 1, n_bytes - one.n_bytes
