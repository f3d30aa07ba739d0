"""Finished answers that wait to be fetched, by session, with their bytes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import orjson
from gradio.server_messages import EventMessage
from gradio.utils import LRUCache


class Messages(asyncio.Queue[EventMessage]):
    """What one session has not fetched yet, and its bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.n_bytes, self.changed = 0, time.monotonic()
        self._sizes: list[int] = []

    def _put(self, message: EventMessage) -> None:
        super()._put(message)
        self._sizes.append(_size_of(message))
        self.n_bytes += self._sizes[-1]
        self.changed = time.monotonic()

    def _get(self) -> EventMessage:
        self.n_bytes -= self._sizes.pop(0)
        self.changed = time.monotonic()
        message: EventMessage = super()._get()
        return message


class Mailboxes(LRUCache[str, Any]):
    """Session -> Messages. Gradio keeps 2,000 sessions' whatever they hold, the oldest of them
    dropped though somebody waits there; here `Queue.forget` says what goes."""

    def __setitem__(self, session: str, _: Any) -> None:
        super().__setitem__(session, Messages())


def _size_of(message: EventMessage) -> int:
    """About how many bytes it holds: those of its result as JSON, and some more."""
    output = getattr(message, "output", None)
    n_bytes = 0
    with contextlib.suppress(TypeError):  # an integer of more than 64 bits
        n_bytes = len(orjson.dumps(output, default=str)) if output else 0
    return n_bytes + 500
