"""The process that trains: one thread, low priority, told what to do on its standard input.

It is a process of its own since a training in one of the server's threads would hold Python's
interpreter lock while others generate. What comes and goes stands in wire.py.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, BinaryIO

import torch

from transformer.command_line import Parser
from transformer.learning.watch import report
from transformer.learning.wire import Job, Message, receive, send
from transformer.messages import speaking

BEAT_S = 1.0  # how often the process says that it is alive
NICENESS = 5  # a third of the time that a thread of the server gets where both want it
DONE, STOPPED, LATE = "done", "stopped", "time"


class Training:
    """One job, from its first step to its end."""

    def __init__(self, key: str, job: Job, commands: SimpleQueue[Message], out: BinaryIO) -> None:
        self._key, self._job, self._commands, self._out = key, job, commands, out
        self._question = job.question
        self._paused = self._single = self._stopped = self._asked = False

    def run(self) -> None:
        """Train; a mistake is told like an end."""
        try:
            why = self._train()
        except ValueError as error:
            why = str(error)
        self._send("end", why)

    def _train(self) -> str:
        job, losses, left = self._job, [], self._job.seconds
        kept = set(job.plan.kept())
        began = time.monotonic()
        for step in job.plan.steps():
            if step.number == 1:  # only now has torch loaded all that it needs
                self._send("state", "running")
                began = time.monotonic()
            losses.append(step.loss)
            late = time.monotonic() - began > left
            self._take()
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
        """Until it is to go on; meanwhile questions are answered."""
        self._send("state", "paused")
        while self._paused and not self._stopped and not self._single:
            self._obey(self._commands.get())
            if self._asked:
                self._asked = False
                self._send("report", report(step, [], self._question, keep=True))
        if not self._paused:
            self._send("state", "running")
        self._single = False

    def _take(self) -> None:
        while not self._commands.empty():
            self._obey(self._commands.get())

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
    """Pass on what comes; the server's end is this process' end."""
    try:
        while True:
            commands.put(receive(file))
    except (EOFError, OSError):
        os._exit(0)


def beat(out: BinaryIO) -> None:
    """Say again and again that the process is alive; one write of a file is whole."""
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
    out, sys.stdout = sys.stdout.buffer, sys.stderr  # nothing else may stand among the messages
    threading.Thread(target=listen, args=(sys.stdin.buffer, commands), daemon=True).start()
    threading.Thread(target=beat, args=(out,), daemon=True).start()
    while True:
        key, what, job = commands.get()
        if what == "begin":
            with speaking(job.language):
                Training(key, job, commands, out).run()


if __name__ == "__main__":
    main()
