"""What Gradio makes us do: its parts that fail under attack, replaced or kept from failing.

Each says why. For each there is a test that fails once Gradio itself has changed there, so that a
new version tells which of these it no longer needs.
"""

from __future__ import annotations

import gradio.routes
from gradio import http_server, processing_utils, queueing
from gradio.blocks import Blocks

from transformer.ui.gradio_patches.inputs import NoCredentials, Quiet, check_inputs, told, unchanged
from transformer.ui.gradio_patches.queue import Queue
from transformer.ui.gradio_patches.server import Server
from transformer.ui.gradio_patches.sessions import NoSessions


def install() -> None:
    """Gradio has no way to be given these: whatever it makes from now on is made of ours."""
    vars(queueing).update(Queue=Queue, traceback=Quiet, error_payload=told)
    vars(http_server)["Server"] = Server
    vars(gradio.routes)["StateHolder"] = NoSessions
    vars(gradio.routes)["CustomCORSMiddleware"] = NoCredentials
    vars(processing_utils)["async_move_files_to_cache"] = unchanged
    Blocks.validate_inputs = check_inputs  # type: ignore[assignment,method-assign]


__all__ = ["Queue", "install"]
