"""Runs that the page may still ask about, kept on the server under ids that cannot be guessed."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TypeVar

from transformer.messages import invalid, say
from transformer.runs.compact_trace import bytes_of, moved
from transformer.runs.run import Batch, Run
from transformer.ui.limits import (
    LEFT_AGE_S,
    MAX_ADDRESS_BYTES,
    MAX_AGE_S,
    MAX_OLD_RUN_BYTES,
    MAX_RUN_BYTES,
    MAX_RUNS,
    MAX_VISITOR_RUNS,
)

Item = TypeVar("Item", Run, Batch)

Kept = Run | Batch
LEFT, OLDER, LOOKED_AT = range(3)  # ranks of runs, in the order in which they make room
CANDIDATE_BYTES = 200  # an object and its numbers


class RunGone(ValueError):
    """An id of no run that is kept, or kept any longer."""


@dataclasses.dataclass(slots=True)
class _Entry:
    """What is kept of one run or batch, whose it is, and until when (by the monotonic clock).

    answer: the same for all that came in one answer. left: its visitor has gone, and nobody has
    asked for it since.
    """

    item: Kept
    size: int
    visitor: str
    address: str
    answer: object
    until: float
    left: bool = False


class RunStore:
    """id -> Run or Batch; pinned ones stay.

    An id is 128 random bits: who does not know it cannot reach the run. A visitor's own oldest runs
    make room for the newer ones, and above address_bytes those of an address, so that nobody fills
    the store alone. Where room is short for all,
    runs go in this order, of each kind the least recently used first: those whose visitor has left;
    those of which their visitor has used another one since; and only then what visitors look at,
    which is all that came in one answer.
    Only these last may take all of max_bytes: the others go above old_bytes.
    """

    def __init__(
        self,
        max_items: int = MAX_RUNS,
        max_bytes: int = MAX_RUN_BYTES,
        max_age_s: float = MAX_AGE_S,
        max_own: int = MAX_VISITOR_RUNS,
        old_bytes: int = MAX_OLD_RUN_BYTES,
        address_bytes: int = MAX_ADDRESS_BYTES,
        address_of: Callable[[str], str] = lambda visitor: "",
    ) -> None:
        self._limits = (max_items, max_bytes, max_age_s, max_own)
        self._old_bytes = min(old_bytes, max_bytes)
        self._address_bytes, self._address_of = address_bytes, address_of
        self._entries: OrderedDict[str, _Entry] = OrderedDict()  # the least recently used first
        self._pinned: dict[str, Kept] = {}
        self._lock = threading.Lock()

    def put(self, item: Kept, visitor: str = "", key: str | None = None) -> str:
        """Keep it for a while; returns its id. visitor: whose it is, if known. key: the id that it
        had where it was made before."""
        return self.put_all([item], visitor, None if key is None else [key])[0]

    def put_all(
        self, items: Sequence[Kept], visitor: str = "", keys: Sequence[str] | None = None
    ) -> list[str]:
        """Keep what comes in one answer; returns the ids."""
        keys = keys or [secrets.token_urlsafe(16) for _ in items]
        until, answer, address = time.monotonic() + self._limits[2], object(), ""
        if visitor:
            address = self._address_of(visitor)
        kept = {
            key: _Entry(item, size_of(item), visitor, address, answer, until)
            for key, item in zip(keys, items, strict=True)
        }
        with self._lock:
            self._entries.update(kept)
            self._drop()
        return list(kept)

    def pin(self, item: Kept) -> str:
        """Keep it as long as the server runs; returns its id, the same on every server."""
        labels = repr((item.model, item.labels)).encode()
        key = f"example-{hashlib.sha256(labels).hexdigest()[:16]}"
        self._pinned[key] = item
        return key

    def unpin(self, key: str) -> None:
        """What was pinned need stay no longer."""
        self._pinned.pop(key, None)

    def run(self, key: object) -> Run:
        """The run of an id. Raises RunGone if there is none, ValueError if it is a batch's."""
        item = self._get(key)
        if not isinstance(item, Run):
            raise invalid("this id belongs to a batch; needed: that of a run")
        return item

    def batch(self, key: object) -> Batch:
        """The batch of an id. Raises RunGone if there is none, ValueError if it is a run's."""
        item = self._get(key)
        if not isinstance(item, Batch):
            raise invalid("this id belongs to a run; needed: that of a batch")
        return item

    def any(self, key: object) -> Kept:
        """Either. Raises RunGone if there is none."""
        return self._get(key)

    def has(self, key: object) -> bool:
        """Whether it is still kept. Asking does not make it stay longer."""
        with self._lock:
            self._drop()
            return isinstance(key, str) and (key in self._pinned or key in self._entries)

    def leave(self, visitor: str, age_s: float = LEFT_AGE_S) -> None:
        """This visitor has left: the runs go soon, unless one of them is asked for again."""
        soon = time.monotonic() + age_s
        with self._lock:
            for entry in self._entries.values():
                if visitor and entry.visitor == visitor:
                    entry.until, entry.left = min(entry.until, soon), True

    def sweep(self) -> tuple[int, int]:
        """Let go what is too old; returns how many are kept, and their bytes."""
        with self._lock:
            self._drop()
            return len(self._entries), sum(entry.size for entry in self._entries.values())

    def _get(self, key: object) -> Kept:
        with self._lock:
            self._drop()
            if isinstance(key, str) and key in self._pinned:
                return self._pinned[key]
            if not isinstance(key, str) or key not in self._entries:
                raise RunGone(say("the server no longer keeps this run; generate it again"))
            entry = self._entries[key]
            entry.until, entry.left = time.monotonic() + self._limits[2], False
            self._entries.move_to_end(key)
            return entry.item

    def _drop(self) -> None:
        """Too old ones; then a visitor's oldest beyond its share; then as many as there is no room
        for, but never the last one put."""
        max_items, max_bytes, _, max_own = self._limits
        now = time.monotonic()
        for key in [key for key, entry in self._entries.items() if entry.until <= now]:
            del self._entries[key]
        if not self._entries:
            return
        newest = next(reversed(self._entries.values()))
        self._drop_own(newest, max_own)
        count, total = len(self._entries), sum(entry.size for entry in self._entries.values())
        if count <= max_items and total <= self._old_bytes:
            return
        for key, rank in self._first_to_go()[:-1]:
            if count <= max_items and total <= (
                max_bytes if rank == LOOKED_AT else self._old_bytes
            ):
                return
            count, total = count - 1, total - self._entries.pop(key).size

    def _drop_own(self, newest: _Entry, max_own: int) -> None:
        """What goes beyond the share of the newest's visitor and of its address, but never what
        came with it."""
        older = [(k, e) for k, e in self._entries.items() if e.answer is not newest.answer]
        n_new = len(self._entries) - len(older)
        own = [key for key, entry in older if newest.visitor and entry.visitor == newest.visitor]
        for key in own[: max(0, len(own) + n_new - max_own)]:
            del self._entries[key]
        if not newest.address:
            return
        near = [e for e in self._entries.values() if e.address == newest.address]
        total = sum(entry.size for entry in near)
        for key, entry in older:
            if total <= self._address_bytes:
                return
            if entry.address == newest.address and key in self._entries:
                total -= self._entries.pop(key).size

    def _first_to_go(self) -> list[tuple[str, int]]:
        """All ids as they make room, each with its rank. What a visitor looks at is one answer with
        runs and one batch; what those do of whom nothing is known, such as tools, are the newest
        runs, as many as one visitor may have: they may be several."""
        ranks: dict[str, int] = {}
        looked_at: dict[tuple[str, type], object] = {}
        of_nobody = 0
        for key, entry in reversed(self._entries.items()):
            of_nobody += not entry.visitor
            seen = looked_at.setdefault((entry.visitor or key, type(entry.item)), entry.answer)
            is_seen = seen is entry.answer and (entry.visitor or of_nobody <= self._limits[3])
            ranks[key] = LEFT if entry.left else LOOKED_AT if is_seen else OLDER
        return [(key, ranks[key]) for key in sorted(self._entries, key=ranks.__getitem__)]


def size_of(item: Run | Batch) -> int:
    """Bytes of the trace, and about those of the candidates: nearly all there is."""
    steps = item.steps if isinstance(item, Run) else ()
    return bytes_of(item.trace) + CANDIDATE_BYTES * sum(len(step.candidates) for step in steps)


def on_cpu(item: Item) -> Item:
    """The same in main memory, so that kept runs do not fill the accelerator.

    The steps' candidates are described, so that nothing holds their logits any longer.
    """
    if isinstance(item, Run):
        for step in item.steps:
            len(step.candidates)
    if all(x.device.type == "cpu" for made in item.trace.residuals.values() for x in made):
        return item
    changes: dict[str, object] = {"trace": moved(item.trace, "cpu")}
    if isinstance(item, Run):
        changes["position_matrices"] = {k: m.cpu() for k, m in item.position_matrices.items()}
        changes["candidate_labels"] = dict(item.candidate_labels)
    return dataclasses.replace(item, **changes)  # type: ignore[arg-type]
