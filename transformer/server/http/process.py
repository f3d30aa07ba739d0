"""The server's process: its memory and file limits, and what it logs."""

from __future__ import annotations

import ctypes
import functools
import gc
import logging
import os
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

MAX_FILES = 65_536  # descriptors, where the system allows more
REPEAT_S = 60.0  # in which a fault that repeats is logged once
MAX_FAULTS = 100  # distinguished from each other
M_ARENA_MAX, M_MMAP_THRESHOLD = -8, -3  # as in malloc.h
LARGE_BYTES = 128 * 1024
SWITCH_S = 0.001  # that a thread computes in Python before another may; by default 5 ms


@functools.cache
def _libc() -> ctypes.CDLL | None:
    """glibc; None with another C library."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    return libc if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim") else None


def limit_arenas() -> None:
    """Limit malloc to two arenas; large blocks are returned as soon as they are freed.

    With sixty visitors, six texts each: 770 MB, and 1,170 MB and growing without.
    """
    if (libc := _libc()) is not None:
        libc.mallopt(M_ARENA_MAX, 2)
        libc.mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)


def return_memory() -> None:
    """malloc_trim: glibc keeps freed memory for the thread that freed it."""
    if (libc := _libc()) is not None:
        libc.malloc_trim(0)


def freeze_gc() -> None:
    """Leave all present objects out of garbage collection.

    A full collection of these 300,000, most of imported modules, stops every thread for 0.2 s.
    """
    gc.freeze()
    gc.enable()


def switch_threads_often() -> None:
    """Let the event loop interrupt Python threads: by default, sixteen of them delay each of its
    steps by 80 ms."""
    sys.setswitchinterval(SWITCH_S)


def resident_bytes() -> int | None:
    """Bytes of this process in main memory; None where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard one, at most MAX_FILES."""
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limit
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def place_of(error: BaseException) -> str:
    """An exception's type and the last line of this package or a view; no values."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename] or frames
    if not own:
        return type(error).__name__
    path = Path(own[-1].filename)
    place = f"{path.parent.name}/{path.name}, {own[-1].name}, line {own[-1].lineno}"
    return f"{type(error).__name__} in {place}"


class ShortLog(logging.Filter):
    """One line of a fault, and the same fault at most once in REPEAT_S.

    What follows a colon, and tracebacks, may hold a visitor's words: they are cut off.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}  # when last logged, times since

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log it; shortens what is logged."""
        line = record.getMessage().split("\n")[0].split(": ")[0]
        if record.exc_info and record.exc_info[1]:
            line += f": {place_of(record.exc_info[1])}"
        key, now = (record.name, line), time.monotonic()
        logged, times = self._seen.get(key, (-REPEAT_S, 0))
        if now - logged < REPEAT_S:
            self._seen[key] = logged, times + 1
            return False
        if len(self._seen) >= MAX_FAULTS:
            self._seen.clear()
        self._seen[key] = now, 0
        record.msg, record.args = line + (f" ({times} more before)" if times else ""), ()
        record.exc_info = record.exc_text = record.stack_info = None
        return True


FAULTS = logging.getLogger("transformer.server")  # of the server itself; on stderr
FAULTS.addFilter(ShortLog())
FAULTS.propagate = False
if logging.lastResort is not None:
    FAULTS.addHandler(logging.lastResort)


def shorten_logs() -> None:
    """Keep the logs of the server's libraries short; mcp writes to the root logger."""
    short = ShortLog()
    for name in ("", "asyncio", "uvicorn.error"):
        logging.getLogger(name).addFilter(short)
