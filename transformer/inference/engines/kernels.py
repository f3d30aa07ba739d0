"""Which of the kernels in `kernels.h` is the quickest on this machine: it is asked once.

A step is as quick as its weights are read, and how they are read best depends on the CPU's
registers, on the memory and on the compiler: one row after the other or four at once, in
vectors of 16, 32 or 64 bytes, with or without asking for what comes next.
"""

from __future__ import annotations

import ctypes
import time
from typing import Any, NamedTuple

import torch

TYPES = (torch.float32, torch.bfloat16, torch.float16)  # as kernels.h counts them
SAMPLE_BYTES, WIDTH = 2**24, 256  # what is read to time a kernel, and its weights a row
ROUNDS = 9
GAIN = 0.85  # of the first kernel's time: what takes more is not taken, as timings vary


class Kernel(NamedTuple):
    """width: bytes of a vector. streams: rows read at once. ahead: bytes asked for ahead."""

    width: int
    streams: int
    ahead: int

    def __str__(self) -> str:
        rows = "row by row" if self.streams == 1 else f"{self.streams} rows at once"
        asked = f", {self.ahead} bytes asked for ahead" if self.ahead else ""
        return f"vectors of {self.width} bytes, {rows}{asked}"


def kernels_of(library: ctypes.CDLL) -> list[Kernel]:
    """All that this library was compiled with."""
    facts = (ctypes.c_int * 3)()
    count = library.kernel_facts(-1, facts)
    return [Kernel(*facts) for index in range(count) if library.kernel_facts(index, facts)]


def multiplied(
    library: ctypes.CDLL, kernel: int, weights: torch.Tensor, x: torch.Tensor, out: torch.Tensor
) -> None:
    """weights (n, size) of one of TYPES times x (size,) into out (n,), by one of the kernels; or
    times x (tokens, size) into out (tokens, n), two tokens or more."""
    pointer: Any = ctypes.c_void_p
    at = [pointer(tensor.data_ptr()) for tensor in (weights, x, out)]
    (rows, size), tokens = weights.shape, x.numel() // weights.shape[1]
    kind = TYPES.index(weights.dtype)
    library.multiply_rows(kernel, kind, at[0], rows, at[1], tokens, size, at[2])


def quickest(library: ctypes.CDLL) -> tuple[int, ...]:
    """The number of the best kernel for each of TYPES, by the least of some timings in turn.

    What is timed is one thread, without what other processes take of its core.
    """
    sample = torch.ones(SAMPLE_BYTES // 4)
    return tuple(_quickest_for(library, sample.view(kind).view(-1, WIDTH)) for kind in TYPES)


def _quickest_for(library: ctypes.CDLL, weights: torch.Tensor) -> int:
    x, out = torch.ones(WIDTH), torch.empty(len(weights))
    least = [float("inf")] * library.kernel_facts(-1, None)
    for _ in range(ROUNDS):
        for kernel in range(len(least)):
            started = time.thread_time()
            multiplied(library, kernel, weights, x, out)
            least[kernel] = min(least[kernel], time.thread_time() - started)
    best = min(range(len(least)), key=least.__getitem__)
    return best if least[best] < GAIN * least[0] else 0
