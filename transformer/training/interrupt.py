"""Ctrl-C ends a training after the step that is under way, so that nothing of it is lost."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupt:
    """A context in which the first Ctrl-C, or the system's wish to end, is noted as `asked`.

    A second Ctrl-C interrupts as usual, but not where several processes end together: whoever
    started them may pass it on. Outside of the main thread nothing is noted.
    """

    def __init__(self, *, several: bool = False) -> None:
        self.asked = False
        self._several = several
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler or signal.SIG_DFL)

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT and not self._several:
            raise KeyboardInterrupt
        self.asked = True
