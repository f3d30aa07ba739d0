"""`step.c` as a function: compiled for this very CPU by the C compiler that is found here.

The library is kept in the user's cache folder, so that the compiler runs once a machine (half a
second). Without a compiler there is no such function, and PyTorch's own operations do its work.
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
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent / "step.c"
FLAGS = (
    "-std=c11", "-O3", "-fPIC", "-shared", "-funroll-loops",
    # Sums may be taken in any order, a product and a sum in one instruction.
    "-ffp-contract=fast", "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math",
    "-fno-math-errno",
)  # fmt: skip
# The best first; a compiler may know no OpenMP, or not this CPU.
VARIANTS = (("-march=native", "-fopenmp"), ("-march=native", "-fopenmp-simd"), ("-fopenmp-simd",))
COMPILE_S = 60.0

ReadToken = Callable[..., None]


@functools.cache
def read_token() -> ReadToken | None:
    """step.c's function; None where it cannot be compiled here."""
    compiler = _compiler()
    if compiler is None:
        return None
    for variant in VARIANTS:
        library = _library((*compiler, *FLAGS, *variant))
        if library is not None:
            function: Any = library.read_token
            pointer, number = ctypes.c_void_p, ctypes.c_int
            function.argtypes = [pointer, pointer, pointer, number, number, number]
            function.restype = None
            return function
    return None


def _compiler() -> tuple[str, ...] | None:
    """What $CC says, else the system's own."""
    asked = tuple(shlex.split(os.environ.get("CC", "")))
    if asked:
        return asked if shutil.which(asked[0]) else None
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    return None if found is None else (found,)


def _library(command: tuple[str, ...]) -> ctypes.CDLL | None:
    """None if the compiler refuses the source or the flags."""
    name = f"step-{_key(command)}.so"
    for folder in (_cache, _temporary):
        try:
            return _loaded(folder() / name) or _compiled(command, folder() / name)
        except (OSError, RuntimeError):
            continue  # no room there, no permission, or a user without a home
    return None


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "transformer-attention-visualizer"


@functools.cache
def _temporary() -> Path:
    """A folder that goes when the process ends."""
    folder = tempfile.mkdtemp(prefix="transformer-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _loaded(path: Path) -> ctypes.CDLL | None:
    """None where there is none, or one that this system cannot load."""
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        return None


def _compiled(command: tuple[str, ...], path: Path) -> ctypes.CDLL | None:
    """Other processes may compile the same: each puts its whole library in the place."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        whole = [*command, str(SOURCE), "-o", str(made), "-lm"]
        try:
            subprocess.run(whole, check=True, capture_output=True, timeout=COMPILE_S)
        except subprocess.SubprocessError:
            return None
        made.replace(path)
    return _loaded(path)


def _key(command: tuple[str, ...]) -> str:
    """Other source, flags or CPU: another library."""
    made_of = [SOURCE.read_text(encoding="utf-8"), *command, *platform.uname(), _cpu()]
    return hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:16]


def _cpu() -> str:
    """The CPU's name and instructions, where the system tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    told = ("model name", "flags", "Features", "CPU part")
    return "\n".join(sorted({line for line in lines if line.startswith(told)}))
