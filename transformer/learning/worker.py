"""Train in a separate process of one thread and low priority, which reads commands from its
standard input; and the server's side of it.

A training in a thread of the server would hold Python's interpreter lock while others generate.
Messages are NPZ files with JSON and arrays; nothing is pickled:

    in   (key, "begin", Job), then (key, "pause" | "go" | "step" | "stop", None)
         and (key, "ask", a question)
    out  (key, "report", Report), (key, "state", "running" | "paused"), (key, "end", why)
         and ("", "alive", None) every second
"""

from __future__ import annotations

import atexit
import dataclasses
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, BinaryIO

import torch

from transformer.command_line import Parser
from transformer.learning.stepwise import Plan
from transformer.learning.training_record import (
    Measurement,
    Report,
    packed,
    picture_arrays,
    pictures_in,
    report,
    unpacked,
)
from transformer.messages import say_error, speaking
from transformer.runs.archive import Arrays, named

BEAT_S = 1.0  # how often the process says that it is alive
NICENESS = 5  # a third of a server thread's CPU time where both compete
DONE, STOPPED, LATE = "done", "stopped", "time"
ROOT = Path(__file__).resolve().parent.parent.parent
BROKEN = "broken"  # the process ended before the training
START_S = 120.0  # in which a new process must send its first heartbeat
SILENT_S = 10.0  # without a heartbeat, after which the process is killed
GRACE_S = 1.0  # to read messages that arrived while the server itself was stopped
Message = tuple[str, str, Any]
SIZE = struct.Struct(">Q")  # of a message, in bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """plan: what to train. seconds: of training, pauses left out. language: of its sentences."""

    plan: Plan
    question: str
    seconds: float
    language: str


def send(file: IO[bytes], message: Message) -> None:
    """Write a whole message at once."""
    key, what, value = message
    arrays: Arrays = {}
    if isinstance(value, Job):
        value = dataclasses.asdict(value)
    elif isinstance(value, Report):
        arrays = picture_arrays(value.pictures)
        arrays |= {f"weights/{name}": array for name, array in (value.weights or {}).items()}
        value = {
            "step": value.step, "losses": value.losses, "answer": value.answer,
            "measurement": dataclasses.asdict(value.measurement),
        }  # fmt: skip
    whole = packed([key, what, value], arrays, compressed=False)
    file.write(SIZE.pack(len(whole)) + whole)
    file.flush()


def receive(file: IO[bytes]) -> Message:
    """The next message. Raises EOFError at the end, or for a partial message."""
    (key, what, value), arrays = unpacked(_whole(file, *SIZE.unpack(_whole(file, SIZE.size))))
    if what == "begin":
        value = Job(**value | {"plan": Plan(**value["plan"])})
    elif what == "report":
        value |= {"measurement": Measurement(**value["measurement"])}
        weights = named(arrays, "weights/") or None
        value = Report(**value, pictures=pictures_in(arrays), weights=weights)
    return key, what, value


def _whole(file: IO[bytes], size: int) -> bytes:
    found = file.read(size)
    if len(found) < size:
        raise EOFError
    return found


class Training:
    """One job, from its first step to its end."""

    def __init__(self, key: str, job: Job, commands: SimpleQueue[Message], out: BinaryIO) -> None:
        self._key, self._job, self._commands, self._out = key, job, commands, out
        self._question = job.question
        self._paused = self._single = self._stopped = self._asked = False

    def run(self) -> None:
        """Train; an error is reported as the reason of the end."""
        try:
            why = self._train()
        except ValueError as error:
            why = say_error(error)
        self._send("end", why)

    def _train(self) -> str:
        job, losses, left = self._job, [], self._job.seconds
        kept = set(job.plan.kept())
        began = time.monotonic()
        for step in job.plan.steps():
            if step.number == 1:  # torch has loaded its libraries by now
                self._send("state", "running")
                began = time.monotonic()
            losses.append(step.loss)
            late = time.monotonic() - began > left
            while not self._commands.empty():
                self._obey(self._commands.get())
            halts = self._paused or self._stopped or late
            if halts or step.measured:
                keep = halts or step.number in kept
                self._send("report", report(step, losses, self._question, keep=keep))
                losses = []
            if self._paused and not late:
                left -= time.monotonic() - began
                self._wait(step)
                began = time.monotonic()
            if self._stopped or late:
                return STOPPED if self._stopped else LATE
        return DONE

    def _wait(self, step: Any) -> None:
        """Wait until resumed; meanwhile answer questions."""
        self._send("state", "paused")
        while self._paused and not self._stopped and not self._single:
            self._obey(self._commands.get())
            if self._asked:
                self._asked = False
                self._send("report", report(step, [], self._question, keep=True))
        if not self._paused:
            self._send("state", "running")
        self._single = False

    def _obey(self, message: Message) -> None:
        key, what, value = message
        if key != self._key:
            return
        if what == "ask":
            self._question, self._asked = value, True
        elif what == "stop":
            self._stopped = True
        elif what in ("pause", "go"):
            self._paused = what == "pause"
        elif what == "step":
            self._paused = self._single = True

    def _send(self, what: str, value: Any) -> None:
        send(self._out, (self._key, what, value))


def listen(file: BinaryIO, commands: SimpleQueue[Message]) -> None:
    """Queue the server's messages; this process ends with the server."""
    try:
        while True:
            commands.put(receive(file))
    except (EOFError, OSError):
        os._exit(0)


def beat(out: BinaryIO) -> None:
    """Send a heartbeat every BEAT_S; one write to the pipe is atomic."""
    with suppress(OSError):  # the server has ended
        while True:
            send(out, ("", "alive", None))
            time.sleep(BEAT_S)


# ---- the server's side ----


class Trainer:
    """One process, started for its first job and kept for the next ones until it is closed.

    hear: called from another thread with (key, what, value) of each message. A process that sends
    nothing for SILENT_S, stopped or stuck, is killed and ends as BROKEN.
    """

    def __init__(self, hear: Callable[[str, str, Any], None]) -> None:
        self._hear = hear
        self._process: subprocess.Popen[bytes] | None = None
        self._key = ""
        self._lock = threading.Lock()
        atexit.register(self.close)  # a stopped process does not see that its input has ended

    def begin(self, key: str, job: Job) -> None:
        """Start a job; the previous one must have ended."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._process = self._started()
            self._key = key
        self.tell(key, "begin", job)

    def tell(self, key: str, what: str, value: Any = None) -> None:
        """Send a message; the listening thread reports a process that has ended."""
        with self._lock:
            if self._process is None or self._process.stdin is None:
                return
            try:
                send(self._process.stdin, (key, what, value))
            except OSError:
                return

    def close(self) -> None:
        """End the process, whatever it does."""
        with self._lock:
            process, self._process, self._key = self._process, None, ""
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
        heard = threading.Event()
        for work in (self._listen, _watch):
            threading.Thread(target=work, args=(process, heard), daemon=True).start()
        return process

    def _listen(self, process: subprocess.Popen[bytes], heard: threading.Event) -> None:
        assert process.stdout is not None
        assert process.stdin is not None
        with process.stdout as output, process.stdin:
            try:
                while True:
                    key, what, value = receive(output)
                    heard.set()
                    if what != "alive":
                        self._hear(key, what, value)
            except (EOFError, OSError):
                pass
            process.wait()
        with self._lock:
            lost = self._key if process is self._process else ""
        if lost:
            self._hear(lost, "end", BROKEN)


def _watch(process: subprocess.Popen[bytes], heard: threading.Event) -> None:
    """Kill the process once it is silent; the thread that listens to it then sees its end."""
    silent_s = START_S
    while heard.wait(silent_s) or heard.wait(GRACE_S):
        heard.clear()
        silent_s = SILENT_S
    process.kill()


# ---- the process itself ----


def main() -> None:
    """Train one job after the other until the server closes the input."""
    Parser(
        needs_output=False, description="Trains what the server asks for; it starts this itself."
    ).parse_args()
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    torch.set_num_threads(1)
    commands: SimpleQueue[Message] = SimpleQueue()
    stdout, sys.stdout = sys.stdout, sys.stderr  # keep stray prints out of the messages
    out = stdout.buffer
    threading.Thread(target=listen, args=(sys.stdin.buffer, commands), daemon=True).start()
    threading.Thread(target=beat, args=(out,), daemon=True).start()
    while True:
        key, what, job = commands.get()
        if what == "begin":
            with speaking(job.language):
                Training(key, job, commands, out).run()


if __name__ == "__main__":
    main()
