"""Runs that the page may still ask about, kept on the server under ids that cannot be guessed."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from collections.abc import Sequence
from typing import TypeVar

from transformer.messages import invalid, say
from transformer.runs import compact_trace
from transformer.runs.memo import count_in
from transformer.runs.memory_budget import MemoryBudget, bytes_of
from transformer.runs.run import Batch, Run
from transformer.ui.limits import RUNS, memory_budget

Item = TypeVar("Item", Run, Batch)

Kept = Run | Batch
CANDIDATE_BYTES = 200  # an object and its numbers
OBJECT_BYTES = 14_000  # of all other objects of a run


class RunExpired(ValueError):
    """An id of no run that is kept, or kept any longer."""


class RunStore:
    """id -> Run or Batch, in a memory budget; pinned ones stay.

    An id is 128 random bits: who does not know it cannot reach the run. What the budget lets go is
    made again by its request (see `again`). What is remembered of a run counts in the same budget.
    """

    def __init__(self, budget: MemoryBudget | None = None) -> None:
        self._budget = budget or memory_budget()
        self._pinned: dict[str, Kept] = {}

    def put(self, item: Kept, visitor: str = "", key: str | None = None) -> str:
        """Keep it for a while; returns its id. visitor: whose it is, if known. key: the id that it
        had where it was made before."""
        key = key or secrets.token_urlsafe(16)
        count_in(item, self._budget)
        self._budget.put(RUNS, key, item, size_of(item), visitor or None)
        return key

    def put_all(self, items: Sequence[Kept], visitor: str = "") -> list[str]:
        """Keep what comes in one answer; returns the ids."""
        return [self.put(item, visitor) for item in items]

    def pin(self, item: Kept) -> str:
        """Keep it as long as the server runs; returns its id, the same on every server."""
        labels = repr((item.model, item.labels)).encode()
        key = f"example-{hashlib.sha256(labels).hexdigest()[:16]}"
        self._pinned[key] = item
        count_in(item, self._budget)
        return key

    def run(self, key: object) -> Run:
        """The run of an id. Raises RunExpired if there is none, ValueError if it is a batch's."""
        item = self.any(key)
        if not isinstance(item, Run):
            raise invalid("this id belongs to a batch; needed: that of a run")
        return item

    def batch(self, key: object) -> Batch:
        """The batch of an id. Raises RunExpired if there is none, ValueError if it is a run's."""
        item = self.any(key)
        if not isinstance(item, Batch):
            raise invalid("this id belongs to a run; needed: that of a batch")
        return item

    def any(self, key: object) -> Kept:
        """Either. Raises RunExpired if there is none."""
        found: Kept | None = None
        if isinstance(key, str):
            found = self._pinned[key] if key in self._pinned else self._budget.get(RUNS, key)
        if found is None:
            raise RunExpired(say("the server no longer keeps this run; generate it again"))
        return found

    def has(self, key: object) -> bool:
        """Whether it is still kept. Asking does not make it stay longer."""
        return isinstance(key, str) and (key in self._pinned or self._budget.has(RUNS, key))


def size_of(item: Run | Batch) -> int:
    """Bytes of the trace, and about those of candidates and of a search: nearly all there is."""
    n_candidates, search = 0, None
    if isinstance(item, Run):
        n_candidates, search = sum(len(step.candidates) for step in item.steps), item.search
    return (
        OBJECT_BYTES
        + compact_trace.bytes_of(item.trace)
        + CANDIDATE_BYTES * n_candidates
        + bytes_of(search)
    )


def on_cpu(item: Item) -> Item:
    """The same in main memory, so that kept runs do not fill the accelerator.

    The steps' candidates are described, so that nothing holds their logits any longer.
    """
    if isinstance(item, Run):
        for step in item.steps:
            len(step.candidates)
    if all(x.device.type == "cpu" for made in item.trace.residuals.values() for x in made):
        return item
    changes: dict[str, object] = {"trace": compact_trace.moved(item.trace, "cpu")}
    if isinstance(item, Run):
        changes["position_matrices"] = {k: m.cpu() for k, m in item.position_matrices.items()}
        changes["candidate_labels"] = dict(item.candidate_labels)
    return dataclasses.replace(item, **changes)  # type: ignore[arg-type]
