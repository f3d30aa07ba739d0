"""Numbers worked out of a run, kept as long as the run itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from transformer.runs.run import Batch, Run

T = TypeVar("T")

_kept: WeakKeyDictionary[Run | Batch, dict[Hashable, Any]] = WeakKeyDictionary()
_lock = threading.Lock()


def remembered(item: Run | Batch, key: Hashable, make: Callable[[], T]) -> T:
    """make(), or what it gave for this run and key before; it goes when the run goes.

    Two threads that ask at the same time may both make it.
    """
    with _lock:
        known = _kept.setdefault(item, {})
    if key not in known:
        known[key] = make()
    found: T = known[key]
    return found
