"""The process that trains: one thread, low priority, told what to do on its standard input.

It is a separate process: a training in a thread of the server would hold Python's interpreter
lock while others generate. Its messages are NPZ files, JSON and arrays; nothing is pickled:

    in   (key, "begin", Job), then (key, "pause" | "go" | "step" | "stop", None)
         and (key, "ask", a question)
    out  (key, "report", Report), (key, "state", "running" | "paused"), (key, "end", why)
         and ("", "alive", None) every second
"""

from __future__ import annotations

import dataclasses
import os
import struct
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import IO, Any, BinaryIO

import torch

from transformer.command_line import Parser
from transformer.learning.plan import Plan
from transformer.learning.record import (
    Measurement,
    Report,
    packed,
    picture_arrays,
    pictures_in,
    report,
    unpacked,
)
from transformer.messages import speaking, translated
from transformer.runs.archive import Arrays, named

BEAT_S = 1.0  # how often the process says that it is alive
NICENESS = 5  # a third of a server thread's CPU time where both compete
DONE, STOPPED, LATE = "done", "stopped", "time"
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
            why = translated(error)
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
            if halts or job.plan.measured(step.number):
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


def main() -> None:
    """Train what is asked for, one after the other, until the server closes the input."""
    Parser(description="Trains what the server asks for; it starts this itself.").parse_args()
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    torch.set_num_threads(1)
    commands: SimpleQueue[Message] = SimpleQueue()
    out, sys.stdout = sys.stdout.buffer, sys.stderr  # keep stray prints out of the messages
    threading.Thread(target=listen, args=(sys.stdin.buffer, commands), daemon=True).start()
    threading.Thread(target=beat, args=(out,), daemon=True).start()
    while True:
        key, what, job = commands.get()
        if what == "begin":
            with speaking(job.language):
                Training(key, job, commands, out).run()


if __name__ == "__main__":
    main()
