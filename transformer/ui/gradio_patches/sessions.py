"""What Gradio knows of a visitor between two requests: nothing."""

from __future__ import annotations

import copy
from typing import Any

from gradio import state_holder
from gradio.blocks import Blocks


class NoSession(state_holder.SessionState):
    """What Gradio knows of a session while it answers one request of it: the page as it is made.

    The page's own controls say what stands in them, with each request.
    """

    def __init__(self, blocks: Blocks) -> None:
        self.blocks_config = copy.copy(blocks.default_config)
        self.config_values: dict[int, Any] = {}
        self.state_data: dict[int, Any] = {}
        self._state_ttl: dict[int, Any] = {}
        self.is_closed = False

    def __setitem__(self, key: int, value: Any) -> None:
        self.blocks_config.blocks[key] = value

    def _update_config(self, key: int) -> None:
        pass

    def _update_value_in_config(self, key: int, value: Any) -> None:
        pass


class NoSessions(state_holder.StateHolder):
    """Gradio keeps the last inputs and outputs of every session, results of any size among them,
    until 10,000 others have come. Nothing here is of a kind that needs it (`gr.State`)."""

    def __getitem__(self, session_id: str) -> state_holder.SessionState:
        return NoSession(self.blocks)
