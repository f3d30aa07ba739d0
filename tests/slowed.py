"""app.py with a network that takes its time: python tests/slowed.py [app.py's options].

Each token takes PAUSE_S longer, so that a test can do something while tokens come.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import app
from transformer.inference import generation
from transformer.inference.stream import Stream

PAUSE_S = 0.1


def slow_next(stream: Stream) -> generation.GenerationStep:
    """Stream's own next step, later."""
    time.sleep(PAUSE_S)
    return quick_next(stream)


quick_next = Stream.__next__

if __name__ == "__main__":
    Stream.__next__ = slow_next  # type: ignore[method-assign]
    app.main()
