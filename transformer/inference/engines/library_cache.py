"""Compiled libraries kept in a folder, loaded only as they were written, and by whom.

A library that is cut short ends the process when it is loaded, one of another user's runs as ours:
so its name holds the SHA-256 of its bytes, and the folder and the file must be the user's own. The
name also holds a note, what was found out about the library when it was new.
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

COMPILE_S = 30.0  # it takes one or two
ROOM = 2**22  # bytes that a compiler writes at most


class NotSafe(OSError):
    """A folder that others may write to."""


class Noted(NamedTuple):
    """A library, and the note that was made about it: letters, digits and dots."""

    library: ctypes.CDLL
    note: str


Note = Callable[[ctypes.CDLL], str]
Fits = Callable[[ctypes.CDLL, str], bool]


def kept(
    folder: Path, name: str, symbol: str, command: Sequence[str], note: Note, fits: Fits
) -> Noted | None:
    """The library NAME with this symbol, from the folder or newly compiled into it.

    command: the compiler's, without where the output goes. note: makes the note about a new
    library; fits: whether a note that was read may be one about it. None if the compiler refuses
    or if its output cannot be loaded; raises OSError where the folder cannot be used, and
    subprocess.TimeoutExpired where the compiler takes longer than COMPILE_S.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check(folder)
    found = _found(folder, name, symbol, fits)
    return found or _compiled(folder, name, symbol, command, note)


def _found(folder: Path, name: str, symbol: str, fits: Fits) -> Noted | None:
    """The first that is whole; those before it that are not are removed."""
    for path in sorted(folder.glob(f"{name}-*.so")):
        library = _loaded(path, symbol) if _is_whole(path) else None
        note = path.stem.removeprefix(f"{name}-").rpartition("-")[0]
        if library is not None and fits(library, note):
            return Noted(library, note)
        _remove(path)
    return None


def _check(path: Path) -> None:
    """Raise NotSafe unless the user owns it, and is the only one who may write to it."""
    found = path.lstat()
    ours = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
    if not ours or stat.S_ISLNK(found.st_mode) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotSafe(f"{path} belongs to others, or they may write to it")


def _is_whole(path: Path) -> bool:
    """A plain file of ours with the bytes that its name says."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        _check(path)
        return path.stem.rpartition("-")[2] == hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return False


def _loaded(path: Path, symbol: str) -> ctypes.CDLL | None:
    """None where this system cannot load it, or where the symbol is missing."""
    try:
        library = ctypes.CDLL(str(path))
        getattr(library, symbol)
    except (OSError, AttributeError):
        return None
    return library


def _remove(path: Path) -> None:
    """Remove a file or folder; one that cannot be removed is left, and does no harm."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _run(command: Sequence[str], temporary: str) -> int:
    """A command's exit status. One that takes too long is killed, with all that it has started."""
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
    """Other processes may compile the same: each puts its whole library in the place."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        made = Path(own) / f"{name}.so"
        made.write_bytes(bytes(ROOM))  # raises OSError on a full disk, where compilers only fail
        if _run([*command, "-o", str(made), "-lm"], own) != 0:
            return None
        library = _loaded(made, symbol)
        if library is None:
            return None
        noted = Noted(library, note(library))
        with made.open("rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
            os.fsync(file.fileno())  # else a crash may leave the name without the bytes
        if not any(folder.glob(f"{name}-*.so")):
            made.replace(folder / f"{name}-{noted.note}-{digest}.so")
    return noted
