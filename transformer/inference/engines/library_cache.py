"""A cache folder of compiled libraries, verified before they are loaded.

Loading a truncated library ends the process; loading another user's runs their code. So the file's
name contains the SHA-256 of its bytes, and the folder and the file must belong to the user. The
name also contains a note, measured when the library was new.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

COMPILE_S = 30.0  # the usual time is one or two
MIN_FREE_BYTES = 2**22  # bytes, more than a compiler writes


class NotSafe(OSError):
    """A folder that others may write to."""


class Noted(NamedTuple):
    """A library and its note: letters, digits and dots."""

    library: ctypes.CDLL
    note: str


Note = Callable[[ctypes.CDLL], str]
Fits = Callable[[ctypes.CDLL, str], bool]


def kept(
    folder: Path, name: str, symbol: str, command: Sequence[str], note: Note, fits: Fits
) -> Noted | None:
    """The library NAME with this symbol, from the folder or newly compiled into it.

    command: the compiler's, without the output. note: makes the note about a new library; fits:
    checks a note that was read. None if the compiler fails or its output cannot be loaded; raises
    OSError if the folder cannot be used, and subprocess.TimeoutExpired if the compiler takes longer
    than COMPILE_S.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check(folder)
    library = _found(folder, name, symbol, fits)
    return library or _compiled(folder, name, symbol, command, note)


def _found(folder: Path, name: str, symbol: str, fits: Fits) -> Noted | None:
    """The first intact library; damaged ones before it are removed."""
    for path in sorted(folder.glob(f"{name}-*.so")):
        library = _loaded(path, symbol) if _is_whole(path) else None
        note = path.stem.removeprefix(f"{name}-").rpartition("-")[0]
        if library is not None and fits(library, note):
            return Noted(library, note)
        _remove(path)
    return None


def _check(path: Path) -> None:
    """Raise NotSafe unless the user owns the path and only the user may write to it."""
    status = path.lstat()
    owned = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    if not owned or stat.S_ISLNK(status.st_mode) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotSafe(f"{path} belongs to others, or they may write to it")


def _is_whole(path: Path) -> bool:
    """Whether it is the user's regular file with the hash in its name."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        _check(path)
        return path.stem.rpartition("-")[2] == hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return False


def _loaded(path: Path, symbol: str) -> ctypes.CDLL | None:
    """The library; None if it cannot be loaded or lacks the symbol."""
    try:
        library = ctypes.CDLL(str(path))
        getattr(library, symbol)
    except (OSError, AttributeError):
        return None
    return library


def _remove(path: Path) -> None:
    """Remove a file or folder if possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _run(command: Sequence[str], temporary: str) -> int:
    """A command's exit status; after COMPILE_S it is killed with its child processes."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": temporary},
        start_new_session=True,
    ) as started:
        try:
            return started.wait(COMPILE_S)
        except BaseException:
            os.killpg(started.pid, signal.SIGKILL)
            raise


def _compiled(
    folder: Path, name: str, symbol: str, command: Sequence[str], note: Note
) -> Noted | None:
    """Compile into the folder; other processes may do the same at the same time."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        output = Path(own) / f"{name}.so"
        output.write_bytes(bytes(MIN_FREE_BYTES))  # raises OSError on a full disk
        if _run([*command, "-o", str(output), "-lm"], own) != 0:
            return None
        library = _loaded(output, symbol)
        if library is None:
            return None
        noted = Noted(library, note(library))
        with output.open("rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
            os.fsync(file.fileno())  # a crash could leave the name without the bytes
        if not any(folder.glob(f"{name}-*.so")):
            output.replace(folder / f"{name}-{noted.note}-{digest}.so")
    return noted
