"""Gradio's Blocks without the two web servers that Gradio 6.31 makes of each: half of the start."""

from __future__ import annotations

from typing import Any

import gradio as gr
from gradio.context import Context, set_render_context
from gradio.queueing import Queue


class Blocks(gr.Blocks):
    """Blocks to be described, or to be mounted, which makes their server.

    Within another's `with`, at any time: make only one at a time in a process.
    """

    def queue(self, *_: Any, **__: Any) -> Blocks:
        """Make the queue that Gradio's own server expects; nothing here uses it."""
        self._queue = Queue(
            live_updates=True, concurrency_count=self.max_threads, update_intervals=1,
            max_size=None, blocks=self,
        )  # fmt: skip
        return self

    def __exit__(self, exc_type: type[BaseException] | None = None, *_: Any) -> None:
        if exc_type is None:
            self.fill_expected_parents()
            self.default_config.attach_load_events()
            self.exited = True
        self.page, Context.root_block = "", None
        set_render_context(None)
