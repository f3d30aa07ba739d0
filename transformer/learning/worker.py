"""Train in a separate process of one thread and low priority, and the server's side of it.

A training in a thread of the server would hold Python's interpreter lock while others generate.
Messages are lines of JSON; nothing is pickled:

    in   ["begin", plan, seconds], then ["pause"], ["go"], ["step"] or ["stop"]
    out  [state, why, part]: why it ended, or None; part of its record in base64, or "";
         and [] every BEAT_S
"""

from __future__ import annotations

import atexit
import base64
import dataclasses
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

import torch

from transformer.checks import InvalidRequest
from transformer.command_line import Parser
from transformer.learning.training import Plan, Record, measured
from transformer.messages import mark

RUNNING, PAUSED, ENDED = "running", "paused", "ended"
Why = tuple[str, dict[str, Any]]  # a sentence and its values
Hear = Callable[[str, Why | None, Record | None], None]
DONE: Why = (mark("All steps are done."), {})
STOPPED: Why = (mark("Stopped."), {})
LATE = mark("Ended after the {seconds} s that one training run may take.")
BROKEN: Why = (mark("The process that trained it has ended; start it again."), {})
BEAT_S = 1.0  # how often the process says that it is alive
NICENESS = 5  # a third of a server thread's CPU time where both compete
ROOT = Path(__file__).resolve().parent.parent.parent
STARTING, SILENT = 12, 1  # times that `Trainer.check` may find a new process, or any, silent


def send(file: IO[bytes], *message: Any) -> None:
    """Write a whole message at once."""
    file.write(json.dumps(message).encode() + b"\n")
    file.flush()


def opened(stdout: IO[Any]) -> IO[bytes]:
    """Standard output for `send` from several threads: buffered, so that each message is written
    whole, which PYTHONUNBUFFERED turns off."""
    return open(stdout.fileno(), "wb", closefd=False)


def received(file: IO[bytes]) -> Iterator[list[Any]]:
    """The messages, until the end, or to one that is not whole."""
    for line in file:
        try:
            message = json.loads(line)
        except ValueError:
            return
        yield message


# ---- the process ----


def run(
    plan: Plan, seconds: float, commands: SimpleQueue[list[Any]], tell: Callable[[str, str], None]
) -> Why:
    """Train by a plan until it is done, stopped or late; pauses take none of the seconds.

    tell: called with the state, and a part of the record.
    """
    do, losses, network, ends = "go", list[float](), plan.network(), 0.0
    for update in plan.updates(network):
        losses.append(update.loss)
        now = time.monotonic()
        ends = ends or now + seconds  # torch has loaded its libraries by now
        while do != "stop" and not commands.empty():
            (do,) = commands.get()
        is_late = now > ends
        if do != "go" or is_late or plan.is_measured(update.step):
            part = base64.b64encode(measured(plan, network, update.step, losses).to_bytes())
            tell(PAUSED if do in ("pause", "step") else RUNNING, part.decode())
            losses = []
        if is_late:
            return LATE, {"seconds": seconds}
        if do in ("pause", "step"):
            do = "pause"
            while do == "pause":
                (do,) = commands.get()
            ends += time.monotonic() - now
            tell(RUNNING, "")
        if do == "stop":
            return STOPPED
    return DONE


def main() -> None:
    """Train one job after the other until the server closes the input."""
    Parser(
        needs_output=False, description="Trains what the server asks for; it starts this itself."
    ).parse_args()
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    torch.set_num_threads(1)
    commands: SimpleQueue[list[Any]] = SimpleQueue()
    out = opened(sys.stdout)
    sys.stdout = sys.stderr  # keep stray prints out of the messages

    def listen() -> None:
        with suppress(OSError):
            for command in received(sys.stdin.buffer):
                commands.put(command)
        os._exit(0)  # the server has ended

    def beat() -> None:
        with suppress(OSError):  # the server has ended
            while True:
                send(out)
                time.sleep(BEAT_S)

    for work in (listen, beat):
        threading.Thread(target=work, daemon=True).start()
    while True:
        do, *job = commands.get()
        if do != "begin":  # for a training that has ended
            continue
        plan, seconds = job
        try:
            why = run(
                Plan(**plan), seconds, commands, lambda state, part: send(out, state, None, part)
            )
        except InvalidRequest as error:
            why = (error.sentence, error.values)
        send(out, ENDED, why, "")


# ---- the server's side ----


class Trainer:
    """One process, started for its first job and kept for the next ones until it is closed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._hear: Hear = lambda *message: None
        self._patience = 0
        atexit.register(self.close)  # a stopped process does not see that its input has ended

    def begin(self, plan: Plan, seconds: float, hear: Hear) -> None:
        """Start a job; the previous one must have ended. hear: called from another thread with the
        state, why it ended, and the new part of the record."""
        if self._process is None or self._process.poll() is not None:
            try:
                self._process = self._started()
            except OSError:  # no memory, or too many processes
                return hear(ENDED, BROKEN, None)
        self._hear = hear
        self.tell("begin", dataclasses.asdict(plan), seconds)

    def tell(self, *command: Any) -> None:
        """Send a command."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError, ValueError):  # it has ended
                send(self._process.stdin, *command)

    def check(self) -> None:
        """Kill a process, stopped or stuck, that has said nothing for too many checks. A server
        that was itself stopped has made none meanwhile."""
        process, self._patience = self._process, self._patience - 1
        if process is not None and self._patience < 0:
            process.kill()

    def close(self) -> None:
        """End the process, whatever it does."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        process = subprocess.Popen(
            [sys.executable, "-m", "transformer.learning.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)},
        )
        self._patience = STARTING
        threading.Thread(target=self._listen, args=(process,), daemon=True).start()
        return process

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        """Pass messages on until the process ends, which ends its job."""
        with suppress(OSError), process:
            assert process.stdout is not None
            for message in received(process.stdout):
                self._patience = SILENT
                if message:
                    state, why, part = message
                    record = Record.of_bytes(base64.b64decode(part)) if part else None
                    self._hear(state, why, record)
        hear = self._hear  # before the look: `begin` may start another process now
        if process is self._process:
            hear(ENDED, BROKEN, None)


if __name__ == "__main__":
    main()
