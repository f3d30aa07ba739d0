"""One budget in bytes for all that is kept because it may be asked for again.

A server's visits, and a program that looks at many runs, leave runs, networks and numbers behind.
All of it is kept here, each thing with its kind, its owner, its bytes and its last use; what was
used least recently makes room.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

ENTRY_BYTES = 1_000  # of an entry, apart from its value


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much of one kind is kept, and how long.

    most_bytes: a share of the budget of its own, which other kinds do not take; None: the kind
    shares all the room that is left. most: entries. most_own: entries of one owner. age_s: seconds
    since the entry was used, or anything else of its owner.
    """

    most_bytes: int | None = None
    most: float = math.inf
    most_own: float = math.inf
    age_s: float = math.inf


@dataclass(slots=True, eq=False)
class _Entry:
    """used, until: by the monotonic clock. until: when it goes although it is in use."""

    value: Any
    n_bytes: int
    owner: Hashable
    used: float
    until: float = math.inf


@dataclass(slots=True, eq=False)
class _Owner:
    """Whose entries they are, each (kind, key), and when one of them was last used."""

    used: float
    entries: dict[tuple[str, Hashable], None] = dataclasses.field(default_factory=dict)


class MemoryBudget:
    """(kind, key) -> value, at most most_bytes of it; safe to share between threads.

    kinds: every kind's limits. Where there is no room for a new entry, the least recently used ones
    go: first of its owner and kind, if that has its share of entries; then of its kind; then of all
    kinds without bytes of their own. The newest entry always stays.
    """

    def __init__(self, most_bytes: int, kinds: Mapping[str, Limits]) -> None:
        self.most_bytes, self.kinds = most_bytes, dict(kinds)
        # Each kind's entries, the least recently used first.
        self._entries: dict[str, OrderedDict[Hashable, _Entry]] = {k: OrderedDict() for k in kinds}
        self._bytes = dict.fromkeys(kinds, 0)
        self._owners: dict[Hashable, _Owner] = {}
        self._lock = threading.Lock()

    def put(
        self, kind: str, key: Hashable, value: Any, n_bytes: int, owner: Hashable = None
    ) -> None:
        """Keep a value; it replaces one of the same key. owner: None if unknown."""
        now = time.monotonic()
        with self._lock:
            self._discard(kind, key)
            n_bytes += ENTRY_BYTES
            self._entries[kind][key] = _Entry(value, n_bytes, owner, now)
            self._bytes[kind] += n_bytes
            if owner is not None:
                mine = self._owners.setdefault(owner, _Owner(now))
                mine.used, mine.entries[kind, key] = now, None
                self._drop_own(kind, mine)
            self._make_room(kind)

    def get(self, kind: str, key: Hashable, default: Any = None) -> Any:
        """What is kept there, and stays longer now; else `default`."""
        now = time.monotonic()
        with self._lock:
            entry = self._entry(kind, key, now)
            if entry is None:
                return default
            entry.used, entry.until = now, math.inf
            self._entries[kind].move_to_end(key)
            if entry.owner in self._owners:
                self._owners[entry.owner].used = now
            return entry.value

    def has(self, kind: str, key: Hashable) -> bool:
        """Whether something is kept there. Asking does not make it stay longer."""
        with self._lock:
            return self._entry(kind, key, time.monotonic()) is not None

    def of(self, kind: str, owner: Hashable = None) -> list[Any]:
        """All values of a kind, or an owner's, in the order in which they came; as `has`."""
        now = time.monotonic()
        with self._lock:
            mine = self._owners.get(owner)
            owned = [key for one, key in mine.entries if one == kind] if mine else []
            keys = list(self._entries[kind]) if owner is None else owned
            found = [self._entry(kind, key, now) for key in keys]
            return [entry.value for entry in found if entry is not None]

    def keys(self, kind: str) -> list[Any]:
        """All keys of a kind, the least recently used first."""
        with self._lock:
            return list(self._entries[kind])

    def resize(self, kind: str, key: Hashable, n_bytes: int) -> None:
        """A kept value has grown or shrunk; nothing happens where it is kept no longer."""
        with self._lock:
            entry = self._entries[kind].get(key)
            if entry is not None:
                self._bytes[kind] += n_bytes + ENTRY_BYTES - entry.n_bytes
                entry.n_bytes = n_bytes + ENTRY_BYTES
                self._make_room(kind)

    def discard(self, kind: str, key: Hashable) -> None:
        """It need stay no longer."""
        with self._lock:
            self._discard(kind, key)

    def clear(self, *kinds: str) -> None:
        """Remove every entry of these kinds."""
        with self._lock:
            for kind in kinds:
                for key in list(self._entries[kind]):
                    self._discard(kind, key)

    def leave(self, owner: Hashable, age_s: float) -> None:
        """The owner has left: each of its entries goes after age_s, unless it is used again."""
        until = time.monotonic() + age_s
        with self._lock:
            for kind, key in self._owners[owner].entries if owner in self._owners else ():
                entry = self._entries[kind][key]
                entry.until = min(entry.until, until)

    def sweep(self) -> None:
        """Let go what is too old."""
        with self._lock:
            self._drop_old()

    def held(self) -> dict[str, dict[str, int]]:
        """By kind, how many entries are kept ("count") and their "bytes"."""
        with self._lock:
            self._drop_old()
            return {
                kind: {"count": len(entries), "bytes": self._bytes[kind]}
                for kind, entries in self._entries.items()
            }

    def _entry(self, kind: str, key: Hashable, now: float) -> _Entry | None:
        entry = self._entries[kind].get(key)
        if entry is not None and self._is_old(kind, entry, now):
            self._discard(kind, key)
            return None
        return entry

    def _is_old(self, kind: str, entry: _Entry, now: float) -> bool:
        owner = self._owners.get(entry.owner)
        used = max(entry.used, owner.used) if owner else entry.used
        return entry.until <= now or used + self.kinds[kind].age_s <= now

    def _discard(self, kind: str, key: Hashable) -> None:
        entry = self._entries[kind].pop(key, None)
        if entry is None:
            return
        self._bytes[kind] -= entry.n_bytes
        if entry.owner in self._owners:
            entries = self._owners[entry.owner].entries
            del entries[kind, key]
            if not entries:
                del self._owners[entry.owner]

    def _drop_old(self) -> None:
        now = time.monotonic()
        for kind, entries in self._entries.items():
            for key in [key for key, one in entries.items() if self._is_old(kind, one, now)]:
                self._discard(kind, key)

    def _drop_own(self, kind: str, owner: _Owner) -> None:
        """What goes beyond the number of entries that an owner may have of a kind."""
        entries = self._entries[kind]
        own = [key for one, key in owner.entries if one == kind]
        too_many = len(own) - self.kinds[kind].most_own
        if too_many > 0:
            for key in sorted(own, key=lambda key: entries[key].used)[: int(too_many)]:
                self._discard(kind, key)

    def _make_room(self, kind: str) -> None:
        """After an entry of this kind has come or grown."""
        entries, limits = self._entries[kind], self.kinds[kind]
        most = math.inf if limits.most_bytes is None else limits.most_bytes
        while len(entries) > 1 and (len(entries) > limits.most or self._bytes[kind] > most):
            self._discard(kind, next(iter(entries)))
        shared = [one for one, its in self.kinds.items() if its.most_bytes is None]
        while sum(self._bytes.values()) > self.most_bytes:
            first = {one: next(iter(kept)) for one in shared if (kept := self._entries[one])}
            if sum(len(self._entries[one]) for one in first) <= 1:
                return
            oldest = min(first, key=lambda one: self._entries[one][first[one]].used)
            self._discard(oldest, first[oldest])
