"""Compile `step.c` for this CPU with the C compiler of the machine, and find the fastest kernels.

The speed of a step is the speed of reading the weights. The best way depends on the CPU's
registers, on the memory and on the compiler: one row after the other or four at once, in vectors
of 16, 32 or 64 bytes, with or without prefetching. `quickest` measures the kernels of `kernels.h`.
Many tokens are multiplied by weights of bfloat16 either in float32 or, rounded, in bfloat16, which
some CPUs do in half the time: `is_rounding_faster` measures it.

The library and what was measured are kept in the user's cache folder, so that the compiler runs
once per machine (one to two seconds). Without a compiler or the source, PyTorch does the work.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transformer.inference.engines.library_cache import COMPILE_S, Noted, kept
from transformer.inference.engines.memory import address_of, new_floats

SOURCE = Path(__file__).parent / "step.c"  # which includes the headers
FLAGS = (
    "-std=c11", "-O3", "-fPIC", "-shared",
    # Sums may be taken in any order, a product and a sum in one instruction.
    "-ffp-contract=fast", "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math",
    "-fno-math-errno",
)  # fmt: skip
ARM = ("aarch64", "arm64")  # as Linux and macOS call it
# Apple's clang has no OpenMP library; use the one that PyTorch ships.
OPENMP = Path(torch.__file__).parent / "lib" / "libomp.dylib"
SYMBOL = "read_tokens"
TYPES = (torch.float32, torch.bfloat16, torch.float16)  # as kernels.h counts them
SAMPLE_BYTES, WIDTH = 2**24, 256  # read to time a kernel; weights per row
ROUNDS = 9
MAX_TIME_SHARE = 0.85  # of the first kernel's time; others must beat it clearly, as timings vary


class Kernel(NamedTuple):
    """width: bytes of a vector. streams: rows read at once. ahead: bytes prefetched ahead."""

    width: int
    streams: int
    ahead: int

    def __str__(self) -> str:
        rows = "row by row" if self.streams == 1 else f"{self.streams} rows at once"
        prefetch = f", {self.ahead} bytes prefetched" if self.ahead else ""
        return f"vectors of {self.width} bytes, {rows}{prefetch}"


class Step(NamedTuple):
    """read, each, ahead, are_same, work_size: step.c's functions. kernels: the index in `all` of
    the fastest kernel for each of TYPES. flags: the compiler's options for this machine. rounds:
    whether products of many tokens in bfloat16 are faster than in float32."""

    read: Callable[..., None]
    each: Callable[..., None]
    ahead: Callable[..., int]
    are_same: Callable[..., int]
    work_size: Callable[..., int]
    kernels: tuple[int, ...]
    all: list[Kernel]
    flags: tuple[str, ...] = ()
    rounds: bool = False


def variants(machine: str, system: str, openmp: Path = OPENMP) -> list[tuple[str, ...]]:
    """The flags to try, best first: for this CPU or any, with several threads or one.

    machine, system: as `platform` names them. A compiler may support neither this CPU nor OpenMP.
    """
    # On ARM, -march names an instruction set alone and "native" is refused by some compilers.
    cpu = "-mcpu=native" if machine in ARM else "-march=native"
    threads: list[tuple[str, ...]] = [("-fopenmp",)]
    if system == "Darwin":  # only torch's OpenMP library: a second ends the process
        unresolved = ("-Xpreprocessor", "-fopenmp", "-undefined", "dynamic_lookup")
        threads = [unresolved] if openmp.is_file() else []
    return [(*own, *each) for each in (*threads, ("-fopenmp-simd",)) for own in ((cpu,), ())]


@functools.cache
def compiled_step() -> Step | None:
    """The functions of step.c; None if it cannot be compiled here."""
    compiler = _compiler()
    if compiler is None:
        return None
    if sys.platform == "darwin" and OPENMP.is_file():
        ctypes.CDLL(str(OPENMP), ctypes.RTLD_GLOBAL)  # so that the step finds it
    try:
        for flags in variants(platform.machine(), platform.system()):
            noted = _library((*compiler, *FLAGS, *flags))
            if noted is not None:
                *kernels, rounds = _numbers(noted.note)
                return step_of(noted.library, tuple(kernels), flags, rounds=bool(rounds))
    except subprocess.TimeoutExpired:
        print(
            f"the C compiler {compiler[0]} did not end within {COMPILE_S:g} s; texts are "
            "generated without it",
            file=sys.stderr,
            flush=True,
        )
    return None


def loaded_step() -> Step | None:
    """The functions of step.c if they were compiled or loaded before, in this process."""
    return compiled_step() if compiled_step.cache_info().currsize else None


def step_of(
    library: ctypes.CDLL,
    kernels: tuple[int, ...],
    flags: tuple[str, ...] = (),
    *,
    rounds: bool = False,
) -> Step:
    """The functions of a library, and the kernels to use. rounds: see Step."""
    read: Any = library[SYMBOL]
    each: Any = library["read_each"]
    work_size: Any = library["work_size"]
    ahead: Any = library["read_ahead"]
    are_same: Any = library["are_same"]
    pointer, number = ctypes.c_void_p, ctypes.c_int
    read.argtypes = [*[pointer] * 4, number, number, number, number]
    each.argtypes = [*[pointer] * 4, number, number, number]
    read.restype = each.restype = None
    ahead.argtypes = [*[pointer] * 4, number, number, pointer, number, number, number]
    are_same.argtypes = [pointer, number, ctypes.c_char_p]
    ahead.restype = are_same.restype = number
    work_size.argtypes, work_size.restype = [pointer, number, number, number], ctypes.c_int64
    kernels_here = kernels_of(library)
    return Step(read, each, ahead, are_same, work_size, kernels, kernels_here, flags, rounds)


def _compiler() -> tuple[str, ...] | None:
    """The command in $CC, else the system's compiler. None for a $CC that cannot be used."""
    try:
        command = tuple(shlex.split(os.environ.get("CC", "")))
    except ValueError:  # an unclosed quotation mark
        return None
    if command:
        return command if shutil.which(command[0]) else None
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    return None if compiler is None else (compiler,)


def _library(command: tuple[str, ...]) -> Noted | None:
    """None if the compiler refuses the source or the flags."""
    try:
        name = f"step-{_key(command)}"
    except OSError:  # an installation without the source
        return None
    for folder in (_cache, _temporary):
        try:
            noted = kept(folder(), name, SYMBOL, [*command, str(SOURCE)], _note, _fits)
        except (OSError, RuntimeError):
            continue  # disk full, no permission, or a user without a home
        if noted is not None:
            return noted
    return None


def _note(library: ctypes.CDLL) -> str:
    """The fastest kernels, and whether rounding is faster, as part of a file's name."""
    return ".".join(map(str, (*quickest(library), int(is_rounding_faster(library)))))


def _fits(library: ctypes.CDLL, note: str) -> bool:
    """Whether a note names kernels of this library."""
    numbers, count = _numbers(note), len(kernels_of(library))
    return len(numbers) == len(TYPES) + 1 and all(number < count for number in numbers[:-1])


def _numbers(note: str) -> tuple[int, ...]:
    """The numbers in a note; none if a part of it is not a number."""
    parts = note.split(".")
    return tuple(map(int, parts)) if all(map(str.isdecimal, parts)) else ()


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "transformer-attention-visualizer"


@functools.cache
def _temporary() -> Path:
    """A folder that is removed when the process ends."""
    folder = tempfile.mkdtemp(prefix="transformer-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _key(command: tuple[str, ...]) -> str:
    """A hash of the source, the command and the CPU."""
    sources = [SOURCE, *sorted(SOURCE.parent.glob("*.h"))]
    texts = [path.read_text(encoding="utf-8") for path in sources]
    parts = [*texts, *command, *platform.uname(), _cpu()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _cpu() -> str:
    """The CPU's name and instructions, if the system provides them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    fields = ("model name", "flags", "Features", "CPU part")
    return "\n".join(sorted({line for line in lines if line.startswith(fields)}))


def kernels_of(library: ctypes.CDLL) -> list[Kernel]:
    """All kernels of a library."""
    facts = (ctypes.c_int * 3)()
    count = library.kernel_facts(-1, facts)
    return [Kernel(*facts) for index in range(count) if library.kernel_facts(index, facts)]


def multiplied(
    library: ctypes.CDLL, kernel: int, weights: torch.Tensor, x: torch.Tensor, out: torch.Tensor
) -> None:
    """weights (n, size) of one of TYPES times x (size,) into out (n,), with one of the kernels; or
    times x (tokens, size) into out (tokens, n) for two tokens or more."""
    (rows, size), tokens = weights.shape, x.numel() // weights.shape[1]
    pointer: Any = ctypes.c_void_p
    addresses = address_of(weights, types=TYPES), address_of(x), address_of(out, tokens * rows)
    at = [*map(pointer, addresses)]
    kind = TYPES.index(weights.dtype)
    library.multiply_rows(kernel, kind, at[0], rows, at[1], tokens, size, at[2])


def multiplied_rounded(
    library: ctypes.CDLL, weights: torch.Tensor, x: torch.Tensor, out: torch.Tensor
) -> bool:
    """weights (n, size) of bfloat16, for an even size, times x (tokens, size) rounded to bfloat16
    into out (tokens, n); False on a CPU without the instruction."""
    (rows, size), tokens = weights.shape, len(x)
    pairs, pointer = new_floats(tokens * size // 2), ctypes.c_void_p
    at = [address_of(weights, types=TYPES), *map(address_of, (x, out, pairs))]
    weights_at, x_at, out_at, pairs_at = map(pointer, at)
    return bool(library.multiply_rounded(weights_at, rows, x_at, tokens, size, out_at, pairs_at))


def is_rounding_faster(library: ctypes.CDLL) -> bool:
    """Whether many tokens times weights of bfloat16 take clearly less time in bfloat16."""
    weights = new_floats(WIDTH, WIDTH).fill_(1).to(torch.bfloat16)
    x, out = new_floats(WIDTH, WIDTH).fill_(1), new_floats(WIDTH, WIDTH)
    if not multiplied_rounded(library, weights, x, out):
        return False
    exact, rounded = _least_times(
        [
            partial(multiplied, library, 0, weights, x, out),
            partial(multiplied_rounded, library, weights, x, out),
        ]
    )
    return rounded < MAX_TIME_SHARE * exact


def quickest(library: ctypes.CDLL) -> tuple[int, ...]:
    """The index of the best kernel for each of TYPES, by the shortest of interleaved timings.

    Timed is the CPU time of one thread, which other processes do not influence.
    """
    sample = new_floats(SAMPLE_BYTES // 4).fill_(1)
    return tuple(_quickest_for(library, sample.view(kind).view(-1, WIDTH)) for kind in TYPES)


def _quickest_for(library: ctypes.CDLL, weights: torch.Tensor) -> int:
    x, out = new_floats(WIDTH).fill_(1), new_floats(len(weights))
    kernels = range(library.kernel_facts(-1, None))
    ways = [partial(multiplied, library, kernel, weights, x, out) for kernel in kernels]
    least = _least_times(ways)
    best = min(kernels, key=least.__getitem__)
    return best if least[best] < MAX_TIME_SHARE * least[0] else 0


def _least_times(ways: Sequence[Callable[[], object]]) -> list[float]:
    """The least seconds of this thread's CPU time that each takes, in turn."""
    least = [float("inf")] * len(ways)
    for _ in range(ROUNDS):
        for place, way in enumerate(ways):
            started = time.thread_time()
            way()
            least[place] = min(least[place], time.thread_time() - started)
    return least
