"""One LRU cache, limited in bytes and age, of what visits keep: runs, networks, calls, classes."""

from __future__ import annotations

import hashlib
import itertools
import math
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from transformer.runs import compact_trace
from transformer.runs.batch import Batch
from transformer.runs.memo import bytes_of, forget_memoized, memoized_bytes
from transformer.runs.run import Run
from transformer.server.http import limits
from transformer.server.http.errors import NO_MEMORY, Busy, RunExpired
from transformer.server.http.process import return_memory

T = TypeVar("T")
Kept = Run | Batch
ENTRY_BYTES = 1_000  # of an entry, apart from its value
CANDIDATE_BYTES = 200  # an object and its numbers
OBJECT_BYTES = 14_000  # of all other objects of a run
MAX_TRIES = 2
SWEPT_AT_ONCE = 200  # entries, in about a millisecond
# Of PyTorch's allocators (Linux, Windows, CUDA), the C++ library and oneDNN, as RuntimeError.
# The last is what torch's parser of arguments says when its tables could not be allocated.
OUT_OF_MEMORY_WORDS = (
    "allocate memory", "not enough memory", "out of memory", "bad_alloc", "create a memory",
    "unknown parameter type",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much of one kind is kept, and how long.

    most_bytes: reserved for this kind; inf: shares the unreserved room. most: entries. most_own:
    entries of one owner. age_s: time to live after the owner's last use.
    """

    most_bytes: float = math.inf
    most: float = math.inf
    most_own: float = math.inf
    age_s: float = math.inf


# Runs, which can be made again, do not push out kinds that have a share of the bytes.
RUNS, MODELS, TRAININGS, RECORDS = "runs", "models", "trainings", "recorded"
CALLS, CLASSES = "calls", "classes"
KINDS = {
    RUNS: Limits(most_own=limits.MAX_VISITOR_RUNS, age_s=limits.SILENT_S),
    RECORDS: Limits(age_s=limits.MAX_AGE_S),
    MODELS: Limits(
        most_bytes=limits.MAX_LEARNED_BYTES,
        most_own=limits.MAX_OWN_MODELS,
        age_s=limits.MAX_AGE_S,
    ),
    TRAININGS: Limits(most_bytes=limits.MAX_LEARNED_BYTES, most_own=1, age_s=limits.MAX_AGE_S),
    CALLS: Limits(
        most_bytes=limits.MAX_CALL_BYTES, most=limits.MAX_CALLERS, age_s=limits.LEFT_AGE_S
    ),
    CLASSES: Limits(most_bytes=limits.MAX_CLASS_BYTES, age_s=limits.CLASS_AGE_S),
}


@dataclass(slots=True, eq=False)
class _Entry:
    """used: the monotonic clock's time of the last use. number: counts the puts."""

    kind: str
    key: Hashable
    value: Any
    n_bytes: int
    owner: Hashable
    used: float
    number: int


class MemoryBudget:
    """(kind, key) -> value, at most most_bytes of it; safe to share between threads.

    A new entry evicts the least recently used: of its owner and kind beyond their limit of entries,
    then of its kind, then of all kinds without reserved bytes; never itself. Entries that are too
    old are not returned, and `sweep` evicts them.
    """

    def __init__(
        self, most_bytes: int = limits.MAX_KEPT_BYTES, kinds: Mapping[str, Limits] = KINDS
    ) -> None:
        self.most_bytes, self.kinds = most_bytes, dict(kinds)
        # Of each kind the least recently used first, and their bytes.
        self._entries = {kind: OrderedDict[Hashable, _Entry]() for kind in kinds}
        self._n_bytes = dict.fromkeys(kinds, 0)
        self._of_owner: dict[Hashable, set[_Entry]] = {}
        # When an owner last used an entry, or left, and its entries' time to live from then.
        self._seen: dict[Hashable, tuple[float, float]] = {}
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._failures, self._failed = 0, 0.0

    def put(
        self, kind: str, key: Hashable, value: Any, n_bytes: int, owner: Hashable = None
    ) -> None:
        """Keep a value; it replaces one of the same key. owner: None if unknown."""
        with self._lock:
            now, n_bytes = time.monotonic(), n_bytes + ENTRY_BYTES
            if (replaced := self._entries[kind].get(key)) is not None:
                self._remove(replaced)
            entry = _Entry(kind, key, value, n_bytes, owner, now, next(self._numbers))
            self._entries[kind][key] = entry
            self._n_bytes[kind] += n_bytes
            if owner is not None:
                self._seen[owner] = now, math.inf
                self._of_owner.setdefault(owner, set()).add(entry)
                own = [each for each in self._of_owner[owner] if each.kind == kind]
                for _ in range(len(own) - int(min(self.kinds[kind].most_own, len(own)))):
                    own.remove(oldest := min(own, key=lambda each: (each.used, each.number)))
                    self._remove(oldest)
            self._make_room(kind)

    def get(self, kind: str, key: Hashable, default: Any = None) -> Any:
        """The value, which now counts as just used, or `default`."""
        with self._lock:
            now = time.monotonic()
            if (entry := self._current(kind, key, now)) is None:
                return default
            entry.used = now
            self._entries[kind].move_to_end(key)
            if entry.owner is not None:
                self._seen[entry.owner] = now, math.inf
            return entry.value

    def peek(self, kind: str, key: Hashable) -> Any:
        """The value, or None. Does not count as use."""
        with self._lock:
            entry = self._current(kind, key, time.monotonic())
            return None if entry is None else entry.value

    def has(self, kind: str, key: Hashable) -> bool:
        """Whether there is a value. Does not count as use."""
        return self.has_each(kind, (key,))[0]

    def has_each(self, kind: str, keys: Iterable[Hashable]) -> list[bool]:
        """Whether there is a value of each key. Does not count as use."""
        with self._lock:
            now = time.monotonic()
            return [self._current(kind, key, now) is not None for key in keys]

    def of(self, kind: str, owner: Hashable = None) -> list[Any]:
        """All values of a kind, or an owner's, the oldest first. Does not count as use."""
        with self._lock:
            now, own = time.monotonic(), self._of_owner.get(owner, ())
            of = self._entries[kind].values() if owner is None else own
            entries = [entry for entry in of if entry.kind == kind and not self._is_old(entry, now)]
        return [entry.value for entry in sorted(entries, key=lambda entry: entry.number)]

    def resize(self, kind: str, key: Hashable, n_bytes: int) -> None:
        """Update a value's bytes, if it is still kept."""
        with self._lock:
            if (entry := self._entries[kind].get(key)) is not None:
                self._set_bytes(entry, n_bytes)
                self._make_room(kind)

    def discard(self, kind: str, key: Hashable) -> None:
        """Remove the entry."""
        with self._lock:
            if (entry := self._entries[kind].get(key)) is not None:
                self._remove(entry)

    def leave(self, owner: Hashable) -> None:
        """Evict all entries of an owner after LEFT_AGE_S, unless one is used again."""
        with self._lock:
            if owner in self._seen:
                self._seen[owner] = time.monotonic(), limits.LEFT_AGE_S

    def sweep(self) -> None:
        """Evict what is too old, and what has no room beside what was memoized on runs."""
        with self._lock:
            every = [entry for kind in self._entries.values() for entry in kind.values()]
        for at in range(0, len(every), SWEPT_AT_ONCE):
            some = every[at : at + SWEPT_AT_ONCE]
            runs = [entry for entry in some if entry.kind == RUNS]
            sizes = [size_of(entry.value) + memoized_bytes(entry.value) for entry in runs]
            with self._lock:
                for entry, n_bytes in zip(runs, sizes, strict=True):
                    if self._is_kept(entry):
                        self._set_bytes(entry, n_bytes)
                now = time.monotonic()
                for entry in some:
                    if self._is_kept(entry) and self._is_old(entry, now):
                        self._remove(entry)
        with self._lock:
            if RUNS in self.kinds:
                self._make_room(RUNS)

    def held(self) -> dict[str, dict[str, int]]:
        """The number of entries ("count") and their "bytes", by kind."""
        with self._lock:
            return {
                kind: {"count": len(of), "bytes": self._n_bytes[kind]}
                for kind, of in self._entries.items()
            }

    def attempt(self, work: Callable[[], T]) -> T:
        """The result of work(); if an allocation fails, all runs are evicted and it is tried once
        more. Raises Busy if that fails too."""
        (result,) = self.attempt_steps(lambda: iter((work(),)))
        return result

    def attempt_steps(self, begin: Callable[[], Iterator[T]]) -> Iterator[T]:
        """Yield from begin(), retried from its start as `attempt` does."""
        for _ in range(MAX_TRIES):
            try:
                yield from begin()
                return
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
            self._drop_runs()  # here: `error` would hold the memory of what has failed
        raise Busy(NO_MEMORY)

    def failures(self) -> dict[str, Any]:
        """The number of failed allocations, and the seconds since the last."""
        ago = round(time.monotonic() - self._failed, 1) if self._failures else None
        return {"failed": self._failures, "seconds_ago": ago}

    def _drop_runs(self) -> None:
        self._failures, self._failed = self._failures + 1, time.monotonic()
        with self._lock:
            for entry in [*self._entries[RUNS].values()]:
                self._remove(entry)
        forget_memoized()
        return_memory()

    def _current(self, kind: str, key: Hashable, now: float) -> _Entry | None:
        entry = self._entries[kind].get(key)
        return None if entry is None or self._is_old(entry, now) else entry

    def _is_old(self, entry: _Entry, now: float) -> bool:
        seen, most = self._seen.get(entry.owner, (entry.used, math.inf))
        return seen + min(most, self.kinds[entry.kind].age_s) <= now

    def _is_kept(self, entry: _Entry) -> bool:
        return self._entries[entry.kind].get(entry.key) is entry

    def _set_bytes(self, entry: _Entry, n_bytes: int) -> None:
        self._n_bytes[entry.kind] += n_bytes + ENTRY_BYTES - entry.n_bytes
        entry.n_bytes = n_bytes + ENTRY_BYTES

    def _remove(self, entry: _Entry) -> None:
        del self._entries[entry.kind][entry.key]
        self._n_bytes[entry.kind] -= entry.n_bytes
        if entry.owner is not None:
            own = self._of_owner[entry.owner]
            own.discard(entry)
            if not own:
                del self._of_owner[entry.owner], self._seen[entry.owner]

    def _make_room(self, kind: str) -> None:
        """Evict entries after one of this kind was added or has grown."""
        own = self.kinds[kind]
        self._evict([kind], own.most, own.most_bytes)
        shared = [each for each, its in self.kinds.items() if its.most_bytes == math.inf]
        reserved = sum(self._n_bytes.values()) - sum(self._n_bytes[each] for each in shared)
        self._evict(shared, math.inf, self.most_bytes - reserved)

    def _evict(self, kinds: Sequence[str], most: float, most_bytes: float) -> None:
        """Evict the least recently used until both limits are kept; never the last."""
        while (count := sum(len(self._entries[kind]) for kind in kinds)) > 1:
            if count <= most and sum(self._n_bytes[kind] for kind in kinds) <= most_bytes:
                return
            oldest = (next(iter(self._entries[kind].values()), None) for kind in kinds)
            entries = (entry for entry in oldest if entry is not None)
            self._remove(min(entries, key=lambda entry: (entry.used, entry.number)))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed, in Python, NumPy, PyTorch or below them."""
    lacks = isinstance(error, RuntimeError) and any(
        sign in str(error) for sign in OUT_OF_MEMORY_WORDS
    )
    return lacks or isinstance(error, MemoryError)


class RunStore:
    """id -> Run or Batch, in a memory budget; pinned ones stay.

    An id is 128 random bits, so that nobody can guess it. An evicted run is made again from its
    request (see `page_runs`). Values memoized on a run count with it from the next sweep on.
    """

    def __init__(self, budget: MemoryBudget | None = None) -> None:
        self._budget = budget or MemoryBudget()
        self._pinned: dict[str, Kept] = {}

    def put(self, item: Kept, visitor: str = "", key: str | None = None) -> str:
        """Keep it for a while; returns its id. key: the id that it had before."""
        key = key or secrets.token_urlsafe(16)
        self._budget.put(RUNS, key, item, size_of(item), visitor or None)
        return key

    def pin(self, item: Kept) -> str:
        """Keep it for ever; returns its id, the same on every server."""
        labels = repr((item.model, item.labels)).encode()
        key = f"example-{hashlib.sha256(labels).hexdigest()[:16]}"
        self._pinned[key] = item
        return key

    def run(self, key: object) -> Run:
        """The run of an id. Raises RunExpired if there is none, ValueError if it is a batch's."""
        item = self.any(key)
        if not isinstance(item, Run):
            raise ValueError("this id belongs to a batch; needed: that of a run")
        return item

    def batch(self, key: object) -> Batch:
        """The batch of an id. Raises RunExpired if there is none, ValueError if it is a run's."""
        item = self.any(key)
        if not isinstance(item, Batch):
            raise ValueError("this id belongs to a run; needed: that of a batch")
        return item

    def any(self, key: object) -> Kept:
        """The run or the batch of an id. Raises RunExpired if there is none."""
        item: Kept | None = None
        if isinstance(key, str):
            item = self._pinned[key] if key in self._pinned else self._budget.get(RUNS, key)
        if item is None:
            raise RunExpired()
        return item

    def is_pinned(self, key: object) -> bool:
        """Whether it is kept for ever, as the page's examples are."""
        return isinstance(key, str) and key in self._pinned

    def has(self, key: object) -> bool:
        """Whether it is still kept. Does not count as use."""
        return self.has_each((key,))[0]

    def has_each(self, keys: Sequence[object]) -> list[bool]:
        """Whether each is still kept. Does not count as use."""
        names = [key if isinstance(key, str) else "" for key in keys]
        kept = self._budget.has_each(RUNS, names)
        return [self.is_pinned(key) or is_kept for key, is_kept in zip(keys, kept, strict=True)]


def size_of(item: Run | Batch) -> int:
    """Bytes of the trace, and about those of candidates and of a search: nearly all there is."""
    n_candidates, search = 0, None
    if isinstance(item, Run):
        n_candidates, search = sum(len(step.candidates) for step in item.steps), item.search
    return (
        OBJECT_BYTES
        + compact_trace.bytes_of(item.trace)
        + CANDIDATE_BYTES * n_candidates
        + (bytes_of(search) if search else 0)
    )
