"""How quickly this machine can read memory at all: what no decode step can be quicker than."""

from __future__ import annotations

import ctypes
import itertools
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

READS = 15  # of the buffer in place of the weights
STREAMS, AHEAD = (1, 2, 4, 8), (0, 1)
SOURCE = Path(__file__).with_suffix(".c")


def read_floor(n_bytes: int) -> float:
    """Seconds to read this many bytes once, with the threads that torch has.

    The best of several ways counts, each by the median of its times: from one stream to eight for
    each thread, with or without asking ahead; two of PyTorch's reductions, where there is no
    compiler.
    """
    buffer = torch.ones(n_bytes // 4)
    medians = []
    for read in ways(buffer):
        times = []
        for _ in range(READS):
            started = time.perf_counter()
            read()
            times.append(time.perf_counter() - started)
        medians.append(statistics.median(times))
    return min(medians)


def ways(buffer: torch.Tensor) -> list[Callable[[], Any]]:
    """Functions that read all of a float32 buffer and return the sum of its numbers."""
    library = _library()
    if library is None:
        return [buffer.sum, partial(torch.dot, buffer, torch.ones(()).expand(len(buffer)))]
    pointer, count = ctypes.c_void_p(buffer.data_ptr()), ctypes.c_int64(len(buffer))
    return [
        partial(library.read_all, pointer, count, streams, ahead, torch.get_num_threads())
        for streams, ahead in itertools.product(STREAMS, AHEAD)
    ]


@cache
def _library() -> ctypes.CDLL | None:
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "floor.so"
        flags = ["-O3", "-march=native", "-fopenmp", "-fPIC", "-shared", "-o", str(made)]
        if subprocess.run([compiler, *flags, str(SOURCE)], check=False).returncode:
            return None
        library = ctypes.CDLL(str(made))
    library.read_all.restype = ctypes.c_float
    return library
