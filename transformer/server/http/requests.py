"""The requests being answered: whose a thread or task works for, and their threads and slots."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, Generic, Self, TypeVar

from starlette.responses import StreamingResponse
from starlette.types import Message, Send

from transformer.inference.deadline import Deadline, check, current, renewed
from transformer.server.http import limits
from transformer.server.http.errors import Busy
from transformer.server.http.slots import Caller, Place, Slots

T = TypeVar("T")
NICENESS = 15  # a thread without it gets thirty times the processor's time
STALLED_S = 10.0  # for which a line may not move while requests wait
# What may take longer than that.
LONG_WAITING_SHARES = ("trainings", "files", "idle")
SLICE_S = 1.0  # that a request runs the network before it steps aside for those who wait


# Whose request this thread or task answers: the Place in which it computes; before, its Caller.
_NOBODY = Caller()
_REQUEST: ContextVar[Caller | Place] = ContextVar("request", default=_NOBODY)


def caller() -> Caller:
    """The address and session of the request that this thread or task answers."""
    request = _REQUEST.get()
    return request.caller if isinstance(request, Place) else request


def set_caller(**of: str) -> None:
    """Set the address or session, or both, of the request that this task answers."""
    _REQUEST.set(caller()._replace(**of))


@contextmanager
def answering(request: Caller | Place) -> Iterator[None]:
    """Let this thread or task answer a request within the block."""
    token = _REQUEST.set(request)
    try:
        yield
    finally:
        _REQUEST.reset(token)


def time_limit(seconds: float, flag: threading.Event | None = None) -> Deadline:
    """A new deadline of this thread's request, which yields its slot as it is checked.
    flag: the outer deadline's by default."""
    request = _REQUEST.get()
    yield_slot = request.yield_slot if isinstance(request, Place) else None
    return Deadline(seconds, flag or current().flag, yield_slot)


@contextmanager
def using(place: Place) -> Iterator[None]:
    """Compute in a place within the block, and leave it at the end."""
    try:
        with answering(place):
            yield
    finally:
        place.leave()


@contextmanager
def taken(slots: Slots, patience_s: float = math.inf) -> Iterator[None]:
    """Block this thread until its request may compute here, and leave at the end.

    A place that the request already has here is used. Raises Busy, also after patience_s and for a
    client that has left; AssertionError for a `last` place elsewhere (deadlock).
    """
    outer = _REQUEST.get()
    if isinstance(outer, Place) and outer.slots is slots:
        yield
        return
    assert not (isinstance(outer, Place) and outer.slots.last), "holds a place elsewhere"
    with using(place := slots.join(caller(), holds_thread=True)):
        with renewed(patience_s) as patience:
            place.wait(lambda: not patience.is_over())
        if not place.has:
            raise Busy()
        yield


def address_of(host: str) -> str:
    """The address that a caller's share is counted by: for IPv6, its /64 network."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return host if address.version == 4 else str(ipaddress.ip_network((address, 64), strict=False))


def _lower_priority() -> None:
    """Lower the priority of this thread and of those it starts for its products; only Linux has one
    for each."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


# Requests that stepped aside for others keep their threads.
_NORMAL = ThreadPoolExecutor(
    limits.MAX_BEGUN + limits.MAX_BEGUN // 2 + limits.MAX_EVENTS + limits.MAX_QUESTIONS,
    "requests",
)
_LOW = ThreadPoolExecutor(2 * limits.LONG_AT_ONCE, "idle", initializer=_lower_priority)


class Job(Generic[T]):
    """Work for a thread, in a place of `slots`: `with Job(slots, work) as job`.

    The work begins as soon as the place runs. The place is given back once: by the thread when the
    work ends, or at the end of the block if no thread has begun. result: of work(), or its
    exception; Busy where the place was given to another request.
    """

    place: Place

    def __init__(self, slots: Slots, work: Callable[[], T], *, low_priority: bool = False) -> None:
        self.result: Future[T] = Future()
        self._begun: Future[None] = Future()
        self._slots, self._work = slots, work
        self._pool = _LOW if low_priority else _NORMAL
        self._owner = threading.Lock()  # whoever gets it gives the place back

    def __enter__(self) -> Self:
        """Wait in line. Raises Busy."""
        self._context = copy_context()  # language, session and deadline of the request
        self.place = self._slots.join(caller())
        self.place.ready.add_done_callback(self._begin)
        return self

    def __exit__(self, *_: object) -> None:
        if self._owner.acquire(blocking=False):
            self.place.leave()

    async def outcome(self) -> T:
        """Wait for the result. Raises Busy also where the place has waited for `patience_s`."""
        await asyncio.wait([asyncio.wrap_future(self._begun)], timeout=self._slots.patience_s)
        if not self._begun.done():
            raise Busy()
        return await asyncio.wrap_future(self.result)

    def _begin(self, ready: Future[None]) -> None:
        """The place runs, or is refused."""
        error = ready.exception()
        if error is None:
            try:
                self._pool.submit(self._context.run, self._do)
            except RuntimeError as no_thread:
                error = no_thread
        if error is not None and self._owner.acquire(blocking=False):
            self.place.leave()
            self._settle(error=error)
        self._begun.set_result(None)

    def _do(self) -> None:
        if not self._owner.acquire(blocking=False):
            return
        try:
            with using(self.place):
                value = self._work()
        except BaseException as error:
            self._settle(error=error)
        else:
            self._settle(value)

    def _settle(self, value: Any = None, error: BaseException | None = None) -> None:
        if not self.result.set_running_or_notify_cancel():
            return  # nobody waits for it
        if error is not None:
            self.result.set_exception(error)
        else:
            self.result.set_result(value)


async def in_thread(shares: Mapping[str, Slots], name: str, work: Callable[[], T]) -> T:
    """The result of work(), run in a thread once a slot is free. Raises Busy."""

    def wanted() -> T:
        check()
        return work()

    with Job(shares[name], wanted, low_priority=name in ("files", "idle")) as job:
        return await job.outcome()


class Streamed(StreamingResponse):
    """An answer in parts: what its generator holds is given back with the request, read or not.

    The generator begins after the answer, so that nothing leaks if the client has left before.
    """

    def __init__(self, parts: AsyncGenerator[str | bytes, None], media_type: str) -> None:
        super().__init__(parts, media_type=media_type)
        self._parts = parts

    async def stream_response(self, send: Send) -> None:
        """Send each part once the client has read the one before; close the generator in this task.
        The connection alone keeps the part that waits to be read."""
        status, headers = self.status_code, self.raw_headers
        await send({"type": "http.response.start", "status": status, "headers": headers})
        async with aclosing(self._parts):
            async for part in self._parts:
                content = part.encode() if isinstance(part, str) else part
                del part
                await send(_body(content))
                del content
                await send(_body(b""))  # waits until the last has been read
        await send(_body(b"", more=False))


def _body(content: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": more}


def shares(trainings: int = limits.MAX_TRAININGS) -> dict[str, Slots]:
    """The slots of each kind of slow work, by name.

    model: generation. experiments: what-if. files: exports. idle: what takes long and a thread of
    low priority answers. questions: all that the page's views ask. events: programs' calls that
    read what there is. pages: descriptions of the API, as they are made.
    """

    def shared(at_once: int, **settings: Any) -> Slots:
        """Of which one address may have begun no more than its share."""
        most = math.ceil(settings.get("begun", at_once) * limits.ADDRESS_SHARE)
        return Slots(at_once, of_address=most, **settings)

    return {
        "model": shared(limits.AT_ONCE, begun=limits.MAX_BEGUN, slice_s=SLICE_S, last=True),
        "experiments": shared(
            1, waiting=limits.MAX_LONG_WAITING, begun=limits.MAX_BEGUN // 2,
            slice_s=SLICE_S / 2, last=True,
        ),
        "trainings": Slots(trainings, waiting=limits.MAX_LONG_WAITING),
        "files": Slots(
            limits.LONG_AT_ONCE, waiting=limits.MAX_LONG_WAITING, patience_s=limits.PATIENCE_S
        ),
        "idle": Slots(limits.LONG_AT_ONCE, patience_s=limits.RETRY_S),
        "questions": shared(limits.MAX_QUESTIONS, patience_s=limits.RETRY_S),
        "events": shared(limits.MAX_EVENTS),
        "pages": Slots(limits.MAX_PAGES),
    }  # fmt: skip


def stalled(shares: Mapping[str, Slots]) -> list[str]:
    """The lines in which requests have waited long and nothing has begun."""
    return [
        name
        for name, slots in shares.items()
        if name not in LONG_WAITING_SHARES and slots.stalled_s() >= STALLED_S
    ]


class OpenRequests:
    """The requests under way, each with its visitor (a session of the page or of a program).

    on_leave: called when a visitor has left.
    """

    def __init__(self, *on_leave: Callable[[str], object]) -> None:
        self._open: list[tuple[str, threading.Event]] = []
        self._lock = threading.Lock()
        self._on_leave = on_leave

    @contextmanager
    def open(self, visitor: str, seconds: float = limits.MAX_SECONDS) -> Iterator[Deadline]:
        """Register a visitor's request while the block runs; gives its deadline."""
        flag = current().flag or threading.Event()
        with self._lock:
            self._open.append((visitor, flag))
        try:
            yield time_limit(seconds, flag)
        finally:
            with self._lock:
                self._open.remove((visitor, flag))

    def stop(self, visitor: str) -> None:
        """Cancel this visitor's open requests; tool calls ("") belong to no session."""
        with self._lock:
            flags = [flag for name, flag in self._open if name and name == visitor]
        for flag in flags:
            flag.set()

    def leave(self, visitor: str) -> None:
        """This visitor is gone; tool calls ("") belong to none."""
        self.stop(visitor)
        for forget in self._on_leave if visitor else ():
            forget(visitor)

    def under_way(self) -> int:
        """The number of open requests."""
        return len(self._open)
