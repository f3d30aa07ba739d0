"""The server's process: how many connections it may hold, what it logs, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from gradio.queueing import Queue
from gradio.server_messages import ProcessCompletedMessage

from transformer.messages import language, speaking
from transformer.ui.exchange import Exchange
from transformer.ui.gradio_patches.inputs import place_of
from transformer.ui.language import again, language_of
from transformer.ui.limits import ENDING

MAX_FILES = 65_536  # descriptors, where the system allows more
REPEAT_S = 60.0  # in which a fault that repeats is logged once
MAX_FAULTS = 100  # that are told apart
GRACE_S = 3.0  # for answers that are under way when the server ends
LOOK_S = 0.02


def raise_file_limit() -> None:
    """Let this process hold as many connections and files as it is allowed to."""
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limit
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


class ShortLog(logging.Filter):
    """One line of a fault, and the same fault at most once in REPEAT_S.

    Messages of asyncio, uvicorn and mcp go on, after a colon or in a traceback, with the values at
    hand, which may be a visitor's words: they are cut off.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}  # when last logged, times since

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log it; shortens what is logged."""
        line = record.getMessage().split("\n")[0].split(": ")[0]
        if record.exc_info and record.exc_info[1]:
            line += f": {place_of(record.exc_info[1])}"
        key, now = (record.name, line), time.monotonic()
        logged, times = self._seen.get(key, (-REPEAT_S, 0))
        if now - logged < REPEAT_S:
            self._seen[key] = logged, times + 1
            return False
        if len(self._seen) >= MAX_FAULTS:
            self._seen.clear()
        self._seen[key] = now, 0
        record.msg, record.args = line + (f" ({times} more before)" if times else ""), ()
        record.exc_info = record.exc_text = record.stack_info = None
        return True


def shorten_logs() -> None:
    """What the server's libraries log is kept short; the root logger is what mcp writes to."""
    short = ShortLog()
    for name in ("", "asyncio", "uvicorn.error"):
        logging.getLogger(name).addFilter(short)


class Shutdown:
    """The end of the server: whatever is being answered ends with a sentence, within GRACE_S."""

    def __init__(self, queue: Queue | None = None) -> None:
        self.begun = False
        self._queue = queue
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: set[Exchange] = set()
        self._questions: dict[Exchange, str] = {}  # and in which language they are answered

    @contextmanager
    def underway(self, exchange: Exchange) -> Iterator[None]:
        """A request that is answered meanwhile."""
        self._loop = asyncio.get_running_loop()
        self._open.add(exchange)
        try:
            yield
        finally:
            self._open.discard(exchange)

    @contextmanager
    def question(self, exchange: Exchange) -> Iterator[None]:
        """A request of the page's scripts, which its own thread cannot be made to answer now."""
        self._questions[exchange] = language()
        try:
            yield
        finally:
            del self._questions[exchange]

    async def refuse(self, exchange: Exchange) -> None:
        """Answer that the server ends."""
        await exchange.end(503, {"detail": again(ENDING)})

    def end(self) -> None:
        """Answer everything, from another thread than the server's; returns once that is done."""
        if self._loop is not None and self._loop.is_running():
            with suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(GRACE_S)

    async def _end(self) -> None:
        self.begun = True
        while any(not exchange.finished for exchange in self._open):
            self._end_queue()
            for exchange, name in list(self._questions.items()):
                with speaking(name):
                    await self.refuse(exchange)
            await asyncio.sleep(LOOK_S)

    def _end_queue(self) -> None:
        """Tell all whose requests wait or run; their streams of answers end by it."""
        if self._queue is None:
            return
        events = self._queue.event_ids_to_events
        for number, event in list(events.items()):
            with speaking(language_of(event.request.scope if event.request else None)):
                told = {"error": again(ENDING)}
            message = ProcessCompletedMessage(event_id=number, output=told, success=False)
            self._queue.send_message(event, message)
            event.alive = False
            del events[number]
