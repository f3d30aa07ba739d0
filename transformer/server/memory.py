"""Drop kept runs when an allocation fails, and try the work once more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from transformer.runs.memo import forget_memoized
from transformer.server import process
from transformer.server.errors import NO_MEMORY, Busy
from transformer.server.limits import RUNS
from transformer.server.memory_budget import MemoryBudget

T = TypeVar("T")
TRIES = 2
# Of PyTorch's allocators (Linux, Windows, CUDA), the C++ library and oneDNN, as RuntimeError.
# The last is what torch's parser of arguments says when its tables could not be allocated.
SIGNS = (
    "allocate memory", "not enough memory", "out of memory", "bad_alloc", "create a memory",
    "unknown parameter type",
)  # fmt: skip


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed, in Python, NumPy, PyTorch or below them."""
    told = isinstance(error, RuntimeError) and any(sign in str(error) for sign in SIGNS)
    return told or isinstance(error, MemoryError)


class Memory:
    """Tries work again after an allocation failed. budget: loses its runs, which can be made again,
    and the numbers computed from them."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._failures, self._last = 0, 0.0

    def call(self, work: Callable[[], T]) -> T:
        """The result of work(). Raises Busy if memory does not suffice even after a second try."""
        (found,) = self.steps(lambda: iter((work(),)))
        return found

    def steps(self, begin: Callable[[], Iterator[T]]) -> Iterator[T]:
        """Yield from begin(), once more from the start if an allocation fails. Raises Busy."""
        for _ in range(TRIES):
            try:
                yield from begin()
                return
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
            self._drop()  # here: `error` would hold the memory of what has failed
        raise Busy(NO_MEMORY)

    def facts(self) -> dict[str, Any]:
        """How often an allocation has failed, and how long ago the last one did."""
        ago = round(time.monotonic() - self._last, 1) if self._failures else None
        return {"failed": self._failures, "seconds_ago": ago}

    def _drop(self) -> None:
        self._failures, self._last = self._failures + 1, time.monotonic()
        self._budget.clear(RUNS)
        forget_memoized()
        process.return_memory()
