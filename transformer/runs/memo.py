"""Numbers worked out of a run, kept as long as the run itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from transformer.runs.run import Batch, Run

T = TypeVar("T")
MOST = 64  # answers of one run

_kept: WeakKeyDictionary[Run | Batch, dict[Hashable, Any]] = WeakKeyDictionary()
_lock = threading.Lock()


def remembered(item: Run | Batch, key: Hashable, make: Callable[[], T]) -> T:
    """make(), or what it gave for this run and key before; it goes when the run goes, and before
    where MOST others were asked for since: a stored example stays as long as its server.

    Two threads that ask at the same time may both make it.
    """
    with _lock:
        known = _kept.setdefault(item, {})
        if key in known:
            known[key] = known.pop(key)  # the latest stands last
            found: T = known[key]
            return found
    made = make()
    with _lock:
        known[key] = made
        while len(known) > MOST:
            del known[next(iter(known))]
    return made
