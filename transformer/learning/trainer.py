"""The server's end of a process that trains."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformer.learning.wire import Job, receive, send

ROOT = Path(__file__).resolve().parent.parent.parent
BROKEN = "broken"  # why a training ended whose process did


class Trainer:
    """One process, begun with its first job and kept for the next one until it is closed.

    hear: told (key, what, value) as they come, in a thread of its own; see wire.py.
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
        """Nothing where the process has ended, which is heard of anyway."""
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
        threading.Thread(target=self._listen, args=(process,), daemon=True).start()
        return process

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        assert process.stdin is not None
        with process.stdout as output, process.stdin:
            try:
                while True:
                    self._hear(*receive(output))
            except (EOFError, OSError):
                pass
            process.wait()
        with self._lock:
            lost = self._key if process is self._process else ""
        if lost:
            self._hear(lost, "end", BROKEN)
