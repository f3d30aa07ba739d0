"""Gradio's queue ends by a visitor's mistake, keeps what nobody fetches, and serves first whoever
asks the most: ours does not. Finished answers wait by session, in a memory budget."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import fastapi
from gradio import queueing
from gradio.data_classes import PredictBodyInternal
from gradio.server_messages import EventMessage, ProcessCompletedMessage

from transformer.messages import speaking
from transformer.runs.memo import bytes_of
from transformer.ui.errors import BUSY, NO_EVENT, NO_HASH, Busy, place_of, public_error
from transformer.ui.fair_scheduler import Caller, Place
from transformer.ui.language import language_of
from transformer.ui.limits import (
    ANSWERS,
    MAX_HASH,
    memory_budget,
)
from transformer.ui.memory_budget import MemoryBudget
from transformer.ui.sessions import ADDRESS, address_of, current_session, shares

LOOK_S = 0.01  # how often it looks whether one can begin; every millisecond is 7 % of a core
TOOL_CALL = ("x-gradio-user", "mcp")  # the header by which Gradio marks a tool's call


class Queue(queueing.Queue):
    """Gradio's queue, which nothing that a visitor sends makes end or grow."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.keep_answers_in(memory_budget())
        self.sleep_when_free = LOOK_S
        self.progress_update_sleep_when_free = 1.0  # no request of ours tells how far it is
        self.shares = shares()
        # By the ids of the events that wait, and of those that are taken and have not begun.
        self._places: dict[str, Place] = {}
        self._taken: dict[str, Place] = {}

    def keep_answers_in(self, budget: MemoryBudget) -> None:
        """The answers that wait to be fetched count in this budget."""
        pending: Any = PendingMessages(budget)
        self.pending_messages_per_session = pending

    async def push(
        self, body: PredictBodyInternal, request: fastapi.Request, username: str | None
    ) -> Any:
        """As Gradio does it, if there is a place to wait: Gradio lets one alone fill the queue.
        What is the browser's alone to do is refused, where Gradio begins it and logs a mistake; so
        is a session's name that is empty, with which Gradio's queue fails, or of any length."""
        if body.session_hash is not None and not 1 <= len(body.session_hash) <= MAX_HASH:
            return False, public_error(NO_HASH)["detail"], "error"
        self.forget()
        asked = None if body.fn_index is None else self.blocks.fns.get(body.fn_index)
        if asked is not None and asked.fn is None:
            return False, public_error(NO_EVENT)["detail"], "error"
        who = caller_of(request, body.session_hash)
        name = str(asked.concurrency_id) if asked is not None else ""
        line = self.shares.get(name, self.shares["events"])
        try:
            place = line.join(who, self._refuse)
        except Busy as busy:
            return False, public_error(busy)["detail"], "queue_full"
        answer: Any = (False,)
        try:
            answer = await super().push(body, request, username)
        finally:
            if not answer[0]:
                place.leave()
        if answer[0]:
            self._places[answer[1]] = place
            self._refuse(place)  # if it was meanwhile
        return answer

    def get_events(self) -> Any:
        """Whose turn it is. Gradio takes whoever came first, and knows a fixed number of them that
        may run, so that one who asks often, or for what takes long, makes all others wait."""
        for event in self._waiting():
            if (place := self._places.get(event._id)) is not None and place.has:
                self.event_queue_per_concurrency_id[event.concurrency_id].queue.remove(event)
                self._taken[event._id] = self._places.pop(event._id)
                return [event], False, event.concurrency_id
        return None

    def _refuse(self, place: Place) -> None:
        """Another one takes this place in the queue, if it is refused."""
        of = (event for event in self._waiting() if self._places.get(event._id) is place)
        if not place.refused or (event := next(of, None)) is None:
            return
        self.event_queue_per_concurrency_id[event.concurrency_id].queue.remove(event)
        with speaking(language_of(event.request.scope)):
            output = {"error": public_error(BUSY)["detail"], "title": BUSY.code}
        self.send_message(event, ProcessCompletedMessage(output=output, success=False))
        self.event_ids_to_events.pop(event._id, None)
        self._places.pop(event._id, None)

    def _waiting(self) -> list[queueing.Event]:
        return [one for each in self.event_queue_per_concurrency_id.values() for one in each.queue]

    async def process_events(self, events: list[queueing.Event], *args: Any, **more: Any) -> None:
        """As Gradio does it, in the language of whoever asked, whose session and address are known
        to what answers: this is another task than the request's."""
        (event,) = events
        address, session = caller_of(event.request, event.session_hash)
        ADDRESS.set(address)
        current_session.set(session)
        with self._taken.pop(event._id).lent(), speaking(language_of(event.request.scope)):
            await super().process_events(events, *args, **more)

    async def clean_events(self, **which: Any) -> None:
        """As Gradio does it; what waits no more has no place either."""
        await super().clean_events(**which)
        self._leave_places()

    async def remove_from_queue(self, event_id: str) -> None:
        """The same of one event."""
        await super().remove_from_queue(event_id)
        self._leave_places()

    def _leave_places(self) -> None:
        for gone in self._places.keys() - {event._id for event in self._waiting()}:
            self._places.pop(gone).leave()

    def send_message(self, event: queueing.Event, event_message: EventMessage) -> None:
        """Gradio: a KeyError for a session whose messages are not kept (any longer). Raised where
        the queue tells all who wait of their places, it ends the queue for everybody. Whoever
        nobody listens for is not worked for either."""
        if isinstance(event_message, ProcessCompletedMessage):
            self.forget()
        try:
            super().send_message(event, event_message)
        except KeyError:
            event.alive = False

    def forget(self) -> None:
        """Sessions of which something waits or is under way are the last whose answers make room,
        the largest of them first; Gradio's set for each session goes with its answers."""
        pending: Any = self.pending_messages_per_session
        wanted = {event.session_hash for event in self.event_ids_to_events.values()}
        boxes = {session: box for session in wanted if (box := pending.get(session)) is not None}
        for session in sorted(boxes, key=lambda session: -boxes[session].n_bytes):
            pending.get(session)  # so that it was used last
        for session in self.pending_event_ids_session.keys() - pending.keys():
            del self.pending_event_ids_session[session]

    def leave(self, session: str) -> None:
        """Nobody waits for this session's requests any more. Gradio drops those whose stream of
        answers breaks, and not those of whom none was ever opened."""
        for event in self._waiting():
            if event.session_hash == session:
                event.alive = False
                self.event_queue_per_concurrency_id[event.concurrency_id].queue.remove(event)
                self.event_ids_to_events.pop(event._id, None)
        self._leave_places()

    async def start_processing(self) -> None:
        """Gradio: if this ends by a mistake, nothing is said. `stopped` is true from then on."""
        try:
            await super().start_processing()
        except Exception as error:
            print(f"the queue ended: {place_of(error)}", file=sys.stderr, flush=True)


def caller_of(request: Any, session: str | None) -> Caller:
    """Who sent a request. Tool calls belong to no session: all come through one."""
    is_tool = request.headers.get(TOOL_CALL[0]) == TOOL_CALL[1]
    host = str(request.client.host) if request.client else ""
    return Caller(address_of(host), "" if is_tool else session or "")


class Messages(asyncio.Queue[EventMessage]):
    """What one session has not fetched yet, and its bytes. resized: told them at each change."""

    def __init__(self, resized: Callable[[int], object]) -> None:
        super().__init__()
        self.n_bytes, self._sizes, self._resized = 0, deque[int](), resized

    def _put(self, message: EventMessage) -> None:
        super()._put(message)
        self._sizes.append(bytes_of(vars(message)))
        self._count(self._sizes[-1])

    def _get(self) -> EventMessage:
        self._count(-self._sizes.popleft())
        message: EventMessage = super()._get()
        return message

    def _count(self, change: int) -> None:
        self.n_bytes += change
        self._resized(self.n_bytes)


class PendingMessages(MutableMapping[str, asyncio.Queue[EventMessage]]):
    """Session -> Messages. Gradio keeps 2,000 sessions' whatever they hold, the oldest of them
    dropped though somebody waits there; here the budget says what goes."""

    def __init__(self, budget: MemoryBudget) -> None:
        self.budget = budget

    def __getitem__(self, session: str) -> Messages:
        found: Messages | None = self.budget.get(ANSWERS, session)
        if found is None:
            raise KeyError(session)
        return found

    def __setitem__(self, session: str, _: object) -> None:
        messages = Messages(lambda n_bytes: self.budget.resize(ANSWERS, session, n_bytes))
        self.budget.put(ANSWERS, session, messages, 0)

    def __delitem__(self, session: str) -> None:
        self.budget.discard(ANSWERS, session)

    def __contains__(self, session: object) -> bool:
        return self.budget.has(ANSWERS, session)

    def __iter__(self) -> Iterator[str]:
        return iter(self.budget.keys(ANSWERS))

    def __len__(self) -> int:
        return len(self.budget.keys(ANSWERS))
