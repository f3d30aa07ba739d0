"""Python that starts at once: a fork of a process that has imported torch and Gradio.

Their import takes five seconds of processor time, in every server and command that a test starts.
`Process` and `run` are subprocess.Popen and subprocess.run for a command of this Python, except
that libraries have read the environment as it was when they were imported.
"""

import atexit
import functools
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import forkserver
from pathlib import Path
from typing import IO, Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # no thread survives a fork


@functools.cache
def _forks() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "gradio"])
    with patch.dict(os.environ, ONE_THREAD):
        forkserver.ensure_running()
    return context


class Process:
    """A running command that begins with sys.executable. Its files are opened again by name."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdout: IO[Any],
        stderr: IO[Any],
        stdin: str = os.devnull,
        cwd: Path = ROOT,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        assert command[0] == sys.executable
        files = (stdin, stdout.name, stderr.name)
        arguments = (list(command[1:]), str(cwd), dict(env), files)
        self._process = _forks().Process(target=_become, args=arguments)
        self._process.start()
        self.pid: int = self._process.pid

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status. Raises subprocess.TimeoutExpired."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("python", timeout or 0)
        return int(self._process.exitcode)

    def poll(self) -> int | None:
        """Its exit status, or None while it runs."""
        return self._process.exitcode  # type: ignore[no-any-return]

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run(
    command: Sequence[str],
    *,
    cwd: Path = ROOT,
    env: Mapping[str, str] = os.environ,
    given: str = "",
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. given: its input. Raises subprocess.TimeoutExpired."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").write_text(given, encoding="utf-8")
        with (folder / "out").open("w") as stdout, (folder / "err").open("w") as stderr:
            stdin = str(folder / "in")
            process = Process(command, stdin=stdin, stdout=stdout, stderr=stderr, cwd=cwd, env=env)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
            process.wait()
        said = ((folder / part).read_text(encoding="utf-8") for part in ("out", "err"))
        return subprocess.CompletedProcess(command, code, *said)


def _become(command: list[str], cwd: str, env: dict[str, str], files: tuple[str, str, str]) -> None:
    """In the fork: run what Python runs for these arguments."""
    for number, name in enumerate(files):
        flags = os.O_APPEND | os.O_WRONLY if number else os.O_RDONLY
        os.dup2(os.open(name, flags), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    tempfile.tempdir = None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    first, *more = command
    own = str(Path(first).resolve().parent) if first.endswith(".py") else cwd
    of_pytest = (".", "tests", str(ROOT), str(ROOT / "tests"))
    sys.path[:] = [own, *(path for path in sys.path if path not in of_pytest)]
    try:
        if first == "-m":
            sys.argv = more
            runpy.run_module(more[0], run_name="__main__", alter_sys=True)
        elif first in ("-c", "-"):
            source, sys.argv = (more[0], more) if first == "-c" else (sys.stdin.read(), command)
            exec(compile(source, "<string>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv = command
            runpy.run_path(first, run_name="__main__")
    finally:
        atexit._run_exitfuncs()
