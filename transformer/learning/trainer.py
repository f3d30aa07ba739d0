"""The server's end of the process that trains."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformer.learning.worker import Job, receive, send

ROOT = Path(__file__).resolve().parent.parent.parent
BROKEN = "broken"  # why a training ended whose process did
START_S = 120.0  # in which a new process must have said that it is alive
SILENT_S = 10.0  # after which one that has not said so again is killed
GRACE_S = 1.0  # to hear what has come while this process itself was stopped


class Trainer:
    """One process, begun with its first job and kept for the next one until it is closed.

    hear: called with (key, what, value) of each message in worker.py, from a thread of its own. A
    process that is silent for SILENT_S, be it stopped or stuck, is killed and ends as BROKEN.
    """

    def __init__(self, hear: Callable[[str, str, Any], None]) -> None:
        self._hear = hear
        self._process: subprocess.Popen[bytes] | None = None
        self._key = ""
        self._lock = threading.Lock()

    def begin(self, key: str, job: Job) -> None:
        """Train this; the one before must have ended."""
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
