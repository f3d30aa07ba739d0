"""app.py with a queue that ends at its first request: python tests/dying.py [app.py's options]."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Never

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import app
from transformer import ui
from transformer.ui.page_queue import Queue


def fails(_: Queue) -> Never:
    """As a mistake in Gradio would."""
    raise KeyError("a visitor's words")


if __name__ == "__main__":
    ui.SWEEP_S = 1.0
    Queue.get_events = fails  # type: ignore[method-assign]
    app.main()
