"""Values computed from a run, kept as long as the run itself."""

from __future__ import annotations

import dataclasses
import sys
import threading
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
from torch import Tensor, nn

from transformer.runs.batch import Batch
from transformer.runs.run import Run

T = TypeVar("T")

MAX_VALUES, MAX_BYTES = 64, 16_000_000  # of one run
WAIT_S = 2.0  # for another thread that computes the value
NUMBER_BYTES = 32  # of a number in a list or a tuple
NUMBER_TYPES = {int, float, bool, type(None)}


class _Memo:
    """One run's values, the least recently used first, each with its bytes."""

    def __init__(self) -> None:
        self.values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self.n_bytes = 0
        self.computing: WeakValueDictionary[Hashable, threading.Lock] = WeakValueDictionary()
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> tuple[Any, int] | None:
        with self._lock:
            if key in self.values:
                self.values.move_to_end(key)
            return self.values.get(key)

    def keep(self, key: Hashable, value: Any, n_bytes: int) -> None:
        with self._lock:
            self.n_bytes += n_bytes - self.values.pop(key, (None, 0))[1]
            self.values[key] = value, n_bytes
            while len(self.values) > MAX_VALUES or (
                len(self.values) > 1 and self.n_bytes > MAX_BYTES
            ):
                self.n_bytes -= self.values.popitem(last=False)[1][1]

    def lock_of(self, key: Hashable) -> threading.Lock:
        with self._lock:
            return self.computing.setdefault(key, threading.Lock())


_memos: WeakKeyDictionary[Run | Batch, _Memo] = WeakKeyDictionary()
_lock = threading.Lock()


def memoize_on_run(item: Run | Batch, key: Hashable, make: Callable[[], T]) -> T:
    """make(), or its earlier result for this run and key. The result must not refer to the run.

    Of threads that ask at the same time one computes it and the others wait, at most WAIT_S: then
    each computes it.
    """
    with _lock:
        memo = _memos.setdefault(item, _Memo())
    if (entry := memo.find(key)) is not None:
        return entry[0]
    lock = memo.lock_of(key)
    locked = lock.acquire(timeout=WAIT_S)
    try:
        if (entry := memo.find(key)) is not None:
            return entry[0]
        value = make()
        memo.keep(key, value, bytes_of(value, known=item))
        return value
    finally:
        if locked:
            lock.release()


def memoized_bytes(item: Run | Batch) -> int:
    """Bytes of the values kept for a run."""
    memo = _memos.get(item)
    return 0 if memo is None else memo.n_bytes


def forget_memoized() -> None:
    """Drop the values of all runs."""
    with _lock:
        _memos.clear()


def bytes_of(value: Any, known: Any = None) -> int:
    """Roughly how many bytes a value keeps alive: tensors and arrays with all of their storage,
    each once; a view of an array of another library counts its own numbers.

    known: an object whose fields are not counted. Networks and functions count as nothing: they
    belong to a model.
    """
    seen = {id(part) for part in _parts(known)} | {id(known)}
    total, left = 0, [value]
    while left:
        part = left.pop()
        if type(part) in NUMBER_TYPES:
            total += NUMBER_BYTES
            continue
        if id(part) in seen or isinstance(part, nn.Module | type | types.FunctionType):
            continue
        seen.add(id(part))
        if isinstance(part, Tensor):
            storage = part.untyped_storage()
            if storage.data_ptr() not in seen:
                seen.add(storage.data_ptr())
                total += storage.nbytes()
        elif isinstance(part, np.ndarray):
            base = part
            while isinstance(base.base, np.ndarray):
                base = base.base
            if base is part or id(base) not in seen:
                seen.add(id(base))
                total += base.nbytes
        else:
            total += sys.getsizeof(part)
            if isinstance(part, list | tuple) and NUMBER_TYPES.issuperset(map(type, part)):
                total += NUMBER_BYTES * len(part)
            else:
                left.extend(_parts(part))
    return total


def _parts(value: Any) -> Iterator[Any]:
    """The elements of a container, or an object's fields."""
    if isinstance(value, int | float | str | bytes):
        return
    if isinstance(value, Mapping):
        yield from value
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset | deque):
        yield from value
    elif dataclasses.is_dataclass(value):
        yield from (getattr(value, field.name) for field in dataclasses.fields(value))
    else:
        yield from getattr(value, "__dict__", {}).values()
