"""Runs that the page may still ask about, kept on the server under ids that cannot be guessed."""

from __future__ import annotations

import dataclasses
import secrets
import threading
import time
from collections import OrderedDict
from typing import TypeVar

from transformer.inference.run import Batch, Lens, Run
from transformer.model.trace import AttentionRecord, Trace

Item = TypeVar("Item", Run, Batch)

MAX_ITEMS = 256
MAX_BYTES = 1_000_000_000
MAX_AGE_S = 2 * 3600.0


class RunStore:
    """id -> Run or Batch. The least recently used ones go first; pinned ones stay.

    An id is 128 random bits: who does not know it cannot reach the run.
    """

    def __init__(
        self,
        max_items: int = MAX_ITEMS,
        max_bytes: int = MAX_BYTES,
        max_age_s: float = MAX_AGE_S,
    ) -> None:
        self._limits = (max_items, max_bytes, max_age_s)
        self._items: OrderedDict[str, tuple[Run | Batch, int, float]] = OrderedDict()
        self._pinned: dict[str, Run | Batch] = {}
        self._lock = threading.Lock()

    def put(self, item: Run | Batch) -> str:
        """Keep it for a while; returns its id."""
        key = secrets.token_urlsafe(16)
        with self._lock:
            self._items[key] = (item, size_of(item), time.monotonic())
            self._drop()
        return key

    def pin(self, item: Run | Batch) -> str:
        """Keep it as long as the server runs; returns its id."""
        key = secrets.token_urlsafe(16)
        self._pinned[key] = item
        return key

    def run(self, key: object) -> Run:
        """The run of an id. Raises ValueError if it is not, or no longer, kept."""
        item = self._get(key)
        if not isinstance(item, Run):
            raise ValueError("this id belongs to a batch; needed: that of a run")
        return item

    def batch(self, key: object) -> Batch:
        """The batch of an id. Raises ValueError if it is not, or no longer, kept."""
        item = self._get(key)
        if not isinstance(item, Batch):
            raise ValueError("this id belongs to a run; needed: that of a batch")
        return item

    def any(self, key: object) -> Run | Batch:
        """Either. Raises ValueError if it is not, or no longer, kept."""
        return self._get(key)

    def _get(self, key: object) -> Run | Batch:
        with self._lock:
            self._drop()
            if isinstance(key, str) and key in self._pinned:
                return self._pinned[key]
            if not isinstance(key, str) or key not in self._items:
                raise ValueError("the server no longer keeps this run; generate it again")
            item, size, _ = self._items.pop(key)
            self._items[key] = (item, size, time.monotonic())
            return item

    def _drop(self) -> None:
        max_items, max_bytes, max_age_s = self._limits
        total = sum(size for _, size, _ in self._items.values())
        now = time.monotonic()
        while self._items:
            key, (_, size, used) = next(iter(self._items.items()))
            too_many = len(self._items) > max_items or total > max_bytes
            alone = len(self._items) == 1
            if not (too_many and not alone) and now - used <= max_age_s:
                return
            del self._items[key]
            total -= size


def size_of(item: Run | Batch) -> int:
    """Bytes of the recorded scores and weights, which are nearly all there is."""
    return sum(r.scores.nbytes + r.weights.nbytes for r in item.trace.records.values())


def on_cpu(item: Item) -> Item:
    """The same with its trace in main memory, so that kept runs do not fill the accelerator."""
    trace = item.trace
    moved = Trace(
        records={site: _record_on_cpu(record) for site, record in trace.records.items()},
        embedded={stack: x.cpu() for stack, x in trace.embedded.items()},
        positions={stack: x.cpu() for stack, x in trace.positions.items()},
        residuals={stack: [x.cpu() for x in made] for stack, made in trace.residuals.items()},
    )
    changes: dict[str, object] = {"trace": moved}
    if isinstance(item, Run):
        changes["position_matrices"] = {k: m.cpu() for k, m in item.position_matrices.items()}
        changes["lens"] = Lens(ids=item.lens.ids.cpu(), probabilities=item.lens.probabilities.cpu())
    return dataclasses.replace(item, **changes)  # type: ignore[arg-type]


def _record_on_cpu(record: AttentionRecord) -> AttentionRecord:
    names = ("scores", "weights", "mask", "queries", "keys", "values")
    tensors = {name: getattr(record, name) for name in names}
    return dataclasses.replace(
        record, **{name: x.cpu() for name, x in tensors.items() if x is not None}
    )
