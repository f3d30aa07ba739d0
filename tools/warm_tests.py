"""Run tests again and again in forks of one process that has collected them, for tools/mutants.py.

A fork costs a hundredth of what the imports and the collection of the tests cost. A changed file
reaches it by new code for the functions that are loaded already.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import CO_OPTIMIZED
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import psutil
import pytest

IMPORTED = ("torch", "pytest", "transformers", "gradio", "plotly.graph_objects")
FORKS = multiprocessing.get_context("forkserver")  # with slow imports preloaded
FORKS.set_forkserver_preload([*IMPORTED, "hypothesis", "playwright.sync_api", "psutil"])
POLL_S = 0.5
IDLE_S = 120.0  # without any use of a processor: then a test waits for what never comes
IMPORTED_BEFORE = "ignore::pytest.PytestAssertRewriteWarning"
QUICK = ["-q", "-s", "-p", "no:cacheprovider", "--tb=no", "--no-header", "-W", IMPORTED_BEFORE]


@dataclass(frozen=True, slots=True)
class Change:
    """The code of a file, before and after."""

    path: Path
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """kind: "passed", "failed", "hangs", or "loaded" if the change cannot reach what is loaded."""

    kind: str
    test: str | None = None  # the first that failed


class WarmTests:
    """A process that has collected tests, and runs some of them in a fork until one fails."""

    def __init__(self, folder: Path, tests: Sequence[str], temporary: Path) -> None:
        self._pipe, end = FORKS.Pipe()
        arguments = (folder, [*QUICK, *tests], temporary, end)
        self._process = FORKS.Process(target=_collect, args=arguments)
        self._process.start()
        end.close()

    def has_collected(self) -> bool:
        """Wait for it; False if a test cannot be collected."""
        try:
            return bool(self._pipe.recv())
        except EOFError:
            return False

    def run(self, tests: Sequence[str], limit_s: float, change: Change | None = None) -> Verdict:
        """limit_s: of processor time."""
        self._pipe.send((list(tests), limit_s, change))
        return self._pipe.recv()

    def close(self) -> None:
        self._pipe.close()
        self._process.join()


def _collect(folder: Path, arguments: list[str], temporary: Path, pipe: Connection) -> None:
    """Collect tests in a folder, then answer requests until the pipe is closed."""
    os.setsid()
    os.chdir(folder)
    os.environ |= environment(folder) | {"PYTEST_DEBUG_TEMPROOT": str(temporary)}
    os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
    temporary.mkdir(parents=True, exist_ok=True)
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(folder), str(folder / "tests")]
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    pytest.main(arguments, plugins=[_Requests(folder, temporary, pipe)])
    os._exit(0)


class _Requests:
    """Runs the tests of each request in a fork, in place of all that were collected."""

    def __init__(self, folder: Path, temporary: Path, pipe: Connection) -> None:
        self._folder, self._temporary, self._pipe = folder, temporary, pipe

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items: dict[str, list[pytest.Item]] = defaultdict(list)  # also of a test with all its cases
        for item in session.items:
            for name in {item.nodeid, item.nodeid.partition("[")[0]}:
                items[name].append(item)
        gc.unfreeze()
        functions = [
            thing
            for thing in gc.get_objects()
            if type(thing) is FunctionType  # no isinstance: some things warn when asked their class
            and thing.__code__.co_filename.startswith(str(self._folder / "transformer"))
        ]
        gc.freeze()
        self._pipe.send(not session.testsfailed)
        while True:
            try:
                names, limit_s, change = self._pipe.recv()
            except EOFError:
                return True
            chosen = [item for name in names for item in items.get(name, ())]
            self._pipe.send(self._verdict(chosen, limit_s, change, functions))

    def _verdict(
        self,
        items: list[pytest.Item],
        limit_s: float,
        change: Change | None,
        functions: list[FunctionType],
    ) -> Verdict:
        codes = None if change is None else changed_functions(change, functions)
        if change is not None and codes is None:
            return Verdict("loaded")
        shutil.rmtree(self._temporary, ignore_errors=True)
        self._temporary.mkdir(parents=True)
        answer, end = os.pipe()
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            os.close(answer)
            for function, code in codes or ():
                function.__code__ = code
            os.write(end, _first_failure(items).encode())
            time.sleep(60)  # until it is ended, with every process that it has started
            os._exit(0)
        os.close(end)
        try:
            return _watched(child, answer, limit_s)
        finally:
            os.close(answer)
            _end(child)


def _first_failure(items: Sequence[pytest.Item]) -> str:
    """The name of the first test that fails; "passed" if none does."""
    try:
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if item.session.testsfailed:
                return item.nodeid
    except BaseException:
        return item.nodeid
    return "passed"


def _watched(child: int, answer: int, limit_s: float) -> Verdict:
    """The answer of a fork; "hangs" once it has used too much time, or uses none at all."""
    used_s, idle_since = -1.0, time.monotonic()
    while True:
        if select.select([answer], [], [], POLL_S)[0]:
            name = os.read(answer, 4096).decode()
            # nothing: it has ended without a word
            return Verdict("passed") if name == "passed" else Verdict("failed", name or None)
        now_s, is_ready = _use_of(child)
        if now_s > limit_s:
            return Verdict("hangs")
        if is_ready or now_s > used_s + 0.02:
            used_s, idle_since = now_s, time.monotonic()
        elif time.monotonic() - idle_since > IDLE_S:
            return Verdict("hangs")


def _processes(child: int) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(child)
        return [process, *process.children(recursive=True)]
    return []


def _use_of(child: int) -> tuple[float, bool]:
    """Seconds of processor time of a process and its children, and whether any waits for it."""
    total_s, is_ready = 0.0, False
    for process in _processes(child):
        with suppress(psutil.Error):
            times = process.cpu_times()
            total_s += times.user + times.system
            is_ready |= process.status() in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
    return total_s, is_ready


def _end(child: int) -> None:
    for process in reversed(_processes(child)):
        with suppress(psutil.Error):
            process.kill()
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)


# ---- new code for what is loaded ----


def changed_functions(
    change: Change, functions: Sequence[FunctionType]
) -> list[tuple[FunctionType, CodeType]] | None:
    """The functions of a file whose code changes, each with its new code; None if what changes is
    run by an import."""
    name = str(change.path)
    loaded = (module for key, module in [*sys.modules.items()] if key.startswith("transformer"))
    if name not in (getattr(module, "__file__", None) for module in loaded):
        return []  # it is imported later
    codes = (change.before, change.after)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that "is" is used with a literal
        before, after = (compile(code, name, "exec", dont_inherit=True) for code in codes)
    new: dict[tuple[str, int], CodeType] = {}
    if not _compare(before, after, new) or not new:
        return None
    n_named = Counter(map(_key, _every(before)))
    if any(n_named[key] > 1 and key[0].endswith("<lambda>") for key in new):
        return None  # two of a line, which have one name
    pairs = [
        (function, new[key])
        for function in functions
        if function.__code__.co_filename == name and (key := _key(function.__code__)) in new
    ]
    fits = (len(code.co_freevars) == len(old.__code__.co_freevars) for old, code in pairs)
    return pairs if pairs and all(fits) else None


def _key(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _inner(code: CodeType) -> list[CodeType]:
    return [part for part in code.co_consts if isinstance(part, CodeType)]


def _every(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in _inner(code):
        yield from _every(part)


def _compare(before: CodeType, after: CodeType, new: dict[tuple[str, int], CodeType]) -> bool:
    """Find the functions that differ; False if a module or the body of a class does."""
    pairs = list(zip(_inner(before), _inner(after), strict=False))
    same_inside = len(_inner(before)) == len(_inner(after)) and all(
        _key(one) == _key(other) for one, other in pairs
    )
    is_function = bool(before.co_flags & CO_OPTIMIZED)  # no module, no body of a class
    is_same = same_inside and _own(before) == _own(after)
    if not is_same:
        if not is_function:
            return False
        new[_key(before)] = after
        return True
    for one, other in pairs:
        if not _compare(one, other, new):
            return False
    if is_function and any(_key(one) in new for one, _ in pairs):
        new[_key(before)] = after
    return True


def _own(code: CodeType) -> tuple[Any, ...]:
    constants = tuple(
        (type(part), repr(part)) for part in code.co_consts if not isinstance(part, CodeType)
    )
    return (code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
            constants, code.co_exceptiontable)  # fmt: skip


def environment(folder: Path) -> Mapping[str, str]:
    path = os.pathsep.join(str(folder / name) for name in ("", "tests", "tools"))
    return {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
