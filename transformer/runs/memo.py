"""Numbers worked out of a run, kept no longer than the run itself and as far as there is room."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable
from typing import TypeVar
from weakref import WeakKeyDictionary, finalize

from transformer.runs.memory_budget import Limits, MemoryBudget, bytes_of
from transformer.runs.run import Batch, Run

T = TypeVar("T")
REMEMBERED = "remembered"  # their kind in a budget
MAX_REMEMBERED = 64  # of one run
# Of runs that no server keeps.
OUTSIDE = MemoryBudget(256_000_000, {REMEMBERED: Limits(most_own=MAX_REMEMBERED)})

_places: WeakKeyDictionary[Run | Batch, tuple[MemoryBudget, int]] = WeakKeyDictionary()
_numbers = itertools.count()
_lock = threading.Lock()


def count_in(item: Run | Batch, budget: MemoryBudget) -> tuple[MemoryBudget, int]:
    """What is remembered of a run counts in this budget from now on."""
    with _lock:
        place = _places.get(item)
        if place is None or place[0] is not budget:
            place = _places[item] = budget, next(_numbers)
            finalize(item, budget.gone, place[1]).atexit = False
        return place


def remembered(item: Run | Batch, key: Hashable, make: Callable[[], T]) -> T:
    """make(), or what it gave for this run and key before, if it is still kept.

    Two threads that ask at the same time may both make it.
    """
    budget, number = _places.get(item) or count_in(item, OUTSIDE)
    found: tuple[T] | None = budget.get(REMEMBERED, (number, key))
    if found is None:
        found = (make(),)
        if isinstance(found[0], Run | Batch):
            count_in(found[0], budget)
        budget.put(REMEMBERED, (number, key), found, bytes_of(found, beside=item), number)
    return found[0]
