"""Python that starts at once: a fork of a process that has imported torch and Gradio.

Their import takes five seconds of processor time, in every server and command that a test starts.
`Process` and `run` are subprocess.Popen and subprocess.run for a command of this Python. A fork has
its own arguments, environment, folder and files; only what libraries read of the environment as
they are imported is not new, PYTHONPATH among it: who tests that starts Python itself.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 200_000  # bytes of a command and its environment
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # no thread survives a fork


class Process:
    """A command that begins with sys.executable, under way."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdout: IO[Any],
        stderr: IO[Any],
        stdin: IO[Any] | None = None,
        cwd: Path = ROOT,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        assert command[0] == sys.executable
        self.args = command
        self.returncode: int | None = None
        asked = json.dumps([command[1:], str(cwd), dict(env)]).encode()
        assert len(asked) < LARGEST
        self._told, other = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with other, open(os.devnull) as nothing:
            files = (other, stdin or nothing, stdout, stderr)
            socket.send_fds(_forks(), [asked], [file.fileno() for file in files])
        self.pid = int(self._told.recv(LARGEST))

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            self._told.settimeout(timeout)
            try:
                told = self._told.recv(LARGEST)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self._told.close()
            self.returncode = int(told)
        return self.returncode

    def poll(self) -> int | None:
        """Its exit status, or None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

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
    """The command, ended. given: what it reads. Raises subprocess.TimeoutExpired."""
    with (
        tempfile.TemporaryFile("w+") as stdin,
        tempfile.TemporaryFile("w+", encoding="utf-8") as stdout,
        tempfile.TemporaryFile("w+", encoding="utf-8") as stderr,
    ):
        stdin.write(given)
        stdin.seek(0)
        process = Process(command, stdin=stdin, stdout=stdout, stderr=stderr, cwd=cwd, env=env)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
            process.wait()
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess(command, code, stdout.read(), stderr.read())


@functools.cache
def _forks() -> socket.socket:
    """Where the process that forks takes commands; it ends when this closes."""
    here, there = socket.socketpair(type=socket.SOCK_SEQPACKET)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with there:
        process = subprocess.Popen(
            [sys.executable, __file__, str(there.fileno())],
            cwd=ROOT, env=env | ONE_THREAD, pass_fds=[there.fileno()],
        )  # fmt: skip
    atexit.register(process.wait)
    atexit.register(here.close)
    return here


# --- the process that forks -----------------------------------------------------------------------


def main() -> None:
    """Fork for each command that comes, until no more can come."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    os.setsid()  # Ctrl-C is for the tests
    gc.disable()
    import gradio  # noqa: F401
    import torch  # noqa: F401

    gc.freeze()  # no fork looks through what all have
    gc.enable()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait
    while True:
        asked, files, *_ = socket.recv_fds(requests, LARGEST, 4)
        if not asked:
            return
        if os.fork() == 0:
            requests.close()
            return _wait_for_a_fork(*json.loads(asked), socket.socket(fileno=files[0]), files[1:])
        for file in files:
            os.close(file)


def _wait_for_a_fork(
    command: list[str], cwd: str, env: dict[str, str], told: socket.socket, files: list[int]
) -> None:
    """Tell the fork's number, then its exit status; the fork itself becomes the command."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid:
        for file in (0, 1, 2, *files):
            os.close(file)
        told.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        told.send(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    told.close()
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    tempfile.tempdir = None
    _become(command)


def _become(command: list[str]) -> None:
    """What Python does with these arguments: -m, -c, a script, or - for what it reads."""
    first, *more = command
    sys.path[0] = str(Path(first).resolve().parent) if first.endswith(".py") else os.getcwd()
    if first == "-m":
        sys.argv = more
        runpy.run_module(more[0], run_name="__main__", alter_sys=True)
    elif first in ("-c", "-"):
        source, sys.argv = (more[0], more) if first == "-c" else (sys.stdin.read(), command)
        exec(compile(source, "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = command
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    main()
