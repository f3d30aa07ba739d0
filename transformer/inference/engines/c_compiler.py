"""`step.c` as a function: compiled for this very CPU by the C compiler that is found here.

The library is kept in the user's cache folder together with which of its kernels is the quickest
(see kernels.py), so that the compiler runs once a machine (one to two seconds). Without one or the
source there is no such function, and PyTorch's own operations do its work.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transformer.inference.engines.library_cache import COMPILE_S, Noted, kept

SOURCE = Path(__file__).parent / "step.c"  # which includes the headers beside it
FLAGS = (
    "-std=c11", "-O3", "-fPIC", "-shared",
    # Sums may be taken in any order, a product and a sum in one instruction.
    "-ffp-contract=fast", "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math",
    "-fno-math-errno",
)  # fmt: skip
ARM = ("aarch64", "arm64")  # as Linux and macOS call it
# Apple's clang comes without an OpenMP library: torch's own is taken.
OPENMP = Path(torch.__file__).parent / "lib" / "libomp.dylib"
SYMBOL = "read_tokens"
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


class Step(NamedTuple):
    """read, ahead, work_size: step.c's functions. kernels: the number of the quickest one for each
    of TYPES; all: what the numbers mean. flags: what it was compiled with for this machine."""

    read: Callable[..., None]
    ahead: Callable[..., int]
    work_size: Callable[..., int]
    kernels: tuple[int, ...]
    all: list[Kernel]
    flags: tuple[str, ...] = ()


def variants(machine: str, system: str, openmp: Path = OPENMP) -> list[tuple[str, ...]]:
    """The flags to try, the best first: for this very CPU or any, with several threads or one.

    machine, system: as `platform` names them. A compiler may not know the CPU, or no OpenMP.
    """
    # On ARM, -march names an instruction set alone and "native" is refused by some compilers.
    cpu = "-mcpu=native" if machine in ARM else "-march=native"
    threads: list[tuple[str, ...]] = [("-fopenmp",)]
    if system == "Darwin":  # a second OpenMP library would end the process: no other than torch's
        unresolved = ("-Xpreprocessor", "-fopenmp", "-undefined", "dynamic_lookup")
        threads = [unresolved] if openmp.is_file() else []
    return [(*own, *each) for each in (*threads, ("-fopenmp-simd",)) for own in ((cpu,), ())]


@functools.cache
def compiled_step() -> Step | None:
    """What step.c does; None where it cannot be compiled here."""
    compiler = _compiler()
    if compiler is None:
        return None
    if sys.platform == "darwin" and OPENMP.is_file():
        ctypes.CDLL(str(OPENMP), ctypes.RTLD_GLOBAL)  # where the step's calls of it are found
    try:
        for flags in variants(platform.machine(), platform.system()):
            noted = _library((*compiler, *FLAGS, *flags))
            if noted is not None:
                return step_of(noted.library, _numbers(noted.note), flags)
    except subprocess.TimeoutExpired:
        print(
            f"the C compiler {compiler[0]} did not end within {COMPILE_S:g} s; texts are "
            "generated without it",
            file=sys.stderr,
            flush=True,
        )
    return None


def step_of(library: ctypes.CDLL, kernels: tuple[int, ...], flags: tuple[str, ...] = ()) -> Step:
    """The step of a library, which is to read weights by these kernels."""
    read: Any = library[SYMBOL]
    work_size: Any = library["work_size"]
    ahead: Any = library["read_ahead"]
    pointer, number = ctypes.c_void_p, ctypes.c_int
    read.argtypes = [pointer, pointer, pointer, pointer, number, number, number]
    read.restype = None
    ahead.argtypes = [*[pointer] * 4, number, number, pointer, number, number, number]
    ahead.restype = number
    work_size.argtypes, work_size.restype = [pointer, number, number, number], ctypes.c_int64
    return Step(read, ahead, work_size, kernels, kernels_of(library), flags)


def _compiler() -> tuple[str, ...] | None:
    """What $CC says, else the system's own. None for a $CC that cannot be used."""
    try:
        asked = tuple(shlex.split(os.environ.get("CC", "")))
    except ValueError:  # a quotation mark without its other
        return None
    if asked:
        return asked if shutil.which(asked[0]) else None
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    return None if found is None else (found,)


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
            continue  # no room there, no permission, or a user without a home
        if noted is not None:
            return noted
    return None


def _note(library: ctypes.CDLL) -> str:
    """The quickest kernels, as part of a file's name."""
    return ".".join(map(str, quickest(library)))


def _fits(library: ctypes.CDLL, note: str) -> bool:
    """Whether these are kernels of this library."""
    numbers, count = _numbers(note), len(kernels_of(library))
    return len(numbers) == len(TYPES) and all(number < count for number in numbers)


def _numbers(note: str) -> tuple[int, ...]:
    """Of a note; none where a part of it is no number."""
    parts = note.split(".")
    return tuple(map(int, parts)) if all(map(str.isdecimal, parts)) else ()


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "transformer-attention-visualizer"


@functools.cache
def _temporary() -> Path:
    """A folder that goes when the process ends."""
    folder = tempfile.mkdtemp(prefix="transformer-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _key(command: tuple[str, ...]) -> str:
    """Other source, flags or CPU: another library."""
    sources = [SOURCE, *sorted(SOURCE.parent.glob("*.h"))]
    texts = [path.read_text(encoding="utf-8") for path in sources]
    made_of = [*texts, *command, *platform.uname(), _cpu()]
    return hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:16]


def _cpu() -> str:
    """The CPU's name and instructions, where the system tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    told = ("model name", "flags", "Features", "CPU part")
    return "\n".join(sorted({line for line in lines if line.startswith(told)}))


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
