"""Gradio starts uvicorn with settings of its own, by which who never ends a request's headers
keeps a connection for ever."""

from __future__ import annotations

import asyncio
from typing import Any

from gradio import http_server
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

from transformer.ui.limits import HEADERS_S


class Connection(H11Protocol):
    """uvicorn bounds the time between two requests, and not that in which one must come."""

    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._cancel()

    def _wait_for_headers(self) -> None:
        """Close the connection in HEADERS_S, unless a request is being answered by then."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel()
        elif self._due is None:
            self._due = self.loop.call_later(HEADERS_S, self.timeout_keep_alive_handler)

    def _cancel(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


class Server(http_server.Server):
    """Gradio's, with such connections; none becomes a web socket."""

    def __init__(self, config: Config, *args: Any, **settings: Any) -> None:
        config.http, config.ws = Connection, "none"
        super().__init__(config, *args, **settings)
