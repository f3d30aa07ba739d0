"""Runs and trained models of visits, under ids that cannot be guessed."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakKeyDictionary

from transformer.checks import InvalidRequest, shortened
from transformer.inference.model import Model
from transformer.runs import compact_trace
from transformer.runs.batch import Batch
from transformer.runs.memo import bytes_of, memoized_bytes
from transformer.runs.run import Run
from transformer.server.errors import RunExpired
from transformer.server.limits import MODELS, RUNS, memory_budget
from transformer.server.memory_budget import MemoryBudget
from transformer.server.sessions import caller

Item = TypeVar("Item", Run, Batch)

Kept = Run | Batch
CANDIDATE_BYTES = 200  # an object and its numbers
OBJECT_BYTES = 14_000  # of all other objects of a run
SIGN = "~"  # between a model's readable name and its random part
MODULE_BYTES = 3_000  # of one module of a network, apart from its weights


class RunStore:
    """id -> Run or Batch, in a memory budget; pinned ones stay.

    An id is 128 random bits: a run can only be reached by those who know its id. A run that the
    budget dropped is made again from its request (see `page_request`). Values memoized on a run
    count with it, as of the time when it was last asked for.
    """

    def __init__(self, budget: MemoryBudget | None = None) -> None:
        self._budget = budget or memory_budget()
        self._pinned: dict[str, Kept] = {}
        self._sizes: WeakKeyDictionary[Kept, int] = WeakKeyDictionary()  # without memoized values

    def put(self, item: Kept, visitor: str = "", key: str | None = None) -> str:
        """Keep it for a while; returns its id. visitor: whose it is, if known. key: the id that it
        had where it was made before."""
        key = key or secrets.token_urlsafe(16)
        self._sizes[item] = size_of(item)
        self._budget.put(RUNS, key, item, self._sizes[item], visitor or None)
        return key

    def pin(self, item: Kept) -> str:
        """Keep it as long as the server runs; returns its id, the same on every server."""
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
        found: Kept | None = None
        if isinstance(key, str) and key in self._pinned:
            return self._pinned[key]
        if isinstance(key, str) and (found := self._budget.get(RUNS, key)) is not None:
            self._budget.resize(RUNS, key, self._sizes[found] + memoized_bytes(found))
        if found is None:
            raise RunExpired(
                "run_expired", "the server no longer keeps this run; generate it again"
            )
        return found

    def is_pinned(self, key: object) -> bool:
        """Whether it is an example of the page, kept as long as the server runs."""
        return isinstance(key, str) and key in self._pinned

    def has(self, key: object) -> bool:
        """Whether it is still kept. Does not count as use."""
        return self.is_pinned(key) or (isinstance(key, str) and self._budget.has(RUNS, key))


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
    """A copy in main memory and without logits, so that kept runs do not fill the accelerator.

    The steps' candidates are described, so that nothing holds their logits any longer.
    """
    if isinstance(item, Run):
        for step in item.steps:
            len(step.candidates)
    if item.logits is not None:
        item = dataclasses.replace(item, logits=None)
    if all(x.device.type == "cpu" for made in item.trace.residuals.values() for x in made):
        return item
    changes: dict[str, object] = {"trace": compact_trace.to_device(item.trace, "cpu")}
    if isinstance(item, Run):
        changes["position_matrices"] = {k: m.cpu() for k, m in item.position_matrices.items()}
        changes["candidate_labels"] = dict(item.candidate_labels)
    return dataclasses.replace(item, **changes)  # type: ignore[arg-type]


@dataclass(kw_only=True, slots=True, eq=False)
class Own:
    """A model of a visit. label: what the list of models calls it. example: the ids of the run and
    the batch that the page first shows of it, as long as they are kept."""

    model: Model
    visitor: str
    label: str
    example: tuple[str, str] = ("", "")


class OwnModels:
    """Trained models by name, in a memory budget; names hold 96 random bits."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget

    def add(self, visitor: str, label: str, make: Callable[[str], Model], about: str) -> Model:
        """Keep a model for a visitor; beyond their limit the oldest is evicted.

        make: gives the model of a name, which begins with `about`.
        """
        model = make(f"{about}{SIGN}{secrets.token_urlsafe(12)}")
        n_bytes = model.weight_bytes + MODULE_BYTES * sum(1 for _ in model.network.modules())
        n_bytes += bytes_of((model.card, model.metadata, model.sample))
        own = Own(model=model, visitor=visitor, label=label)
        self._budget.put(MODELS, model.name, own, n_bytes, visitor)
        return model

    def find(self, name: str, visitor: str | None = None) -> Own:
        """The model of a name. visitor: the session that asks, by default the current one; "" finds
        every visit's. Raises ValueError for a model that is gone or another visit's."""
        who = caller().session if visitor is None else visitor
        own: Own | None = self._budget.get(MODELS, name)
        if own is None or (who and who != own.visitor):
            raise InvalidRequest(
                "model_expired",
                "model {name} was trained in a visit: it belonged to that visit alone, and "
                "is gone with it; train one anew in the tab Learn",
                name=shortened(name.partition(SIGN)[0]),
            )
        return own

    def of(self, visitor: str) -> list[Own]:
        """A visitor's models, oldest first."""
        return self._budget.of(MODELS, visitor) if visitor else []


def is_own(name: object) -> bool:
    """Whether a name may be that of a model of a visit."""
    return isinstance(name, str) and SIGN in name
