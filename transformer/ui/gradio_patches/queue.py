"""Gradio's queue ends by a visitor's mistake, keeps what nobody fetches, and serves first whoever
asks the most: ours does not."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import fastapi
from gradio import queueing
from gradio.data_classes import PredictBodyInternal
from gradio.server_messages import EventMessage, ProcessCompletedMessage
from gradio.utils import LRUCache

from transformer.messages import speaking
from transformer.runs.memory_budget import MemoryBudget
from transformer.ui.gradio_patches.inputs import place_of
from transformer.ui.gradio_patches.messages import PendingMessages
from transformer.ui.language import again, language_of
from transformer.ui.limits import (
    MAX_ADDRESS_WAITING,
    MAX_VISITOR_WAITING,
    NO_EVENT,
    YOURS_WAIT,
    memory_budget,
)
from transformer.ui.turns import Turns

LOOK_S = 0.01  # how often it looks whether one can begin; every millisecond is 7 % of a core


class Queue(queueing.Queue):
    """Gradio's queue, which nothing that a visitor sends makes end or grow."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.keep_answers_in(memory_budget())
        self.sleep_when_free = LOOK_S
        self.progress_update_sleep_when_free = 1.0  # no request of ours tells how far it is
        self.met: Callable[[str, str], object] = lambda session, address: None
        self.turns: dict[str, Turns] = {}  # by concurrency_id
        self._served = 0
        self._turns: LRUCache[str, int] = LRUCache(1_000)  # who was served when

    def keep_answers_in(self, budget: MemoryBudget) -> None:
        """The answers that wait to be fetched count in this budget."""
        pending: Any = PendingMessages(budget)
        self.pending_messages_per_session = pending

    async def push(
        self, body: PredictBodyInternal, request: fastapi.Request, username: str | None
    ) -> Any:
        """As Gradio does it, once there is room for one more, and if this visitor and this address
        have not had their share of those who wait: Gradio lets one alone fill the queue. What is
        the browser's alone to do is refused, where Gradio begins it and logs a mistake."""
        self.forget()
        asked = None if body.fn_index is None else self.blocks.fns.get(body.fn_index)
        if asked is not None and asked.fn is None:
            return False, again(NO_EVENT), "error"
        waiting = [event for each in self._queues() for event in each.queue]
        session, address = body.session_hash, address_of(request)
        own = sum(event.session_hash == session for event in waiting)
        near = sum(address_of(event.request) == address for event in waiting)
        if own >= MAX_VISITOR_WAITING or near >= MAX_ADDRESS_WAITING:
            return False, again(YOURS_WAIT), "queue_full"
        answer = await super().push(body, request, username)
        if body.session_hash:
            self.met(body.session_hash, address)
        return answer

    def get_events(self) -> Any:
        """As Gradio does it, whose turn it is first: Gradio takes whoever came first, so that one
        who asks often makes all others wait."""
        running = [event for job in self.active_jobs if job for event in job]
        for each in self._queues():
            if len(each.queue) > 1:
                self._put_first(each.queue, running)
            if each.queue and each.concurrency_id in self.turns:
                each.concurrency_limit = self._room(each, running)
        found = super().get_events()
        for event in found[0] if found else ():
            self._served += 1
            for name in _names(event):
                self._turns[name] = self._served
        return found

    def _put_first(self, waiting: list[queueing.Event], running: list[queueing.Event]) -> None:
        """Whose address and session have the fewest under way, then those served longest ago."""
        busy = Counter(name for event in running for name in _names(event))

        def order(event: queueing.Event) -> tuple[int, ...]:
            names = _names(event)
            return (*(busy[name] for name in names), *(self._turns.get(name, 0) for name in names))

        first = min(waiting, key=order)
        waiting.remove(first)
        waiting.insert(0, first)

    def _room(self, waiting: queueing.EventQueue, running: list[queueing.Event]) -> int:
        """How many of these may have begun: Gradio knows a fixed number, so that a few long ones
        make all others wait for their end. Of one address, two thirds of them at most."""
        turns = self.turns[waiting.concurrency_id]
        address = address_of(waiting.queue[0].request)
        near = [
            event
            for event in running
            if event.concurrency_id == waiting.concurrency_id
            and address_of(event.request) == address
        ]
        return turns.room() if 3 * len(near) < 2 * turns.most else waiting.current_concurrency

    def _queues(self) -> list[queueing.EventQueue]:
        return list(self.event_queue_per_concurrency_id.values())

    async def process_events(self, events: list[queueing.Event], *args: Any, **more: Any) -> None:
        """As Gradio does it, in the language of whoever asked: here is another task than there."""
        with speaking(language_of(events[0].request.scope)):
            await super().process_events(events, *args, **more)

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
        for waiting in self._queues():
            for event in [event for event in waiting.queue if event.session_hash == session]:
                event.alive = False
                waiting.queue.remove(event)
                self.event_ids_to_events.pop(event._id, None)

    async def start_processing(self) -> None:
        """Gradio: if this ends by a mistake, nothing is said. `stopped` is true from then on."""
        try:
            await super().start_processing()
        except Exception as error:
            print(f"the queue ended: {place_of(error)}", file=sys.stderr, flush=True)


def address_of(request: Any) -> str:
    """Where a request comes from."""
    return str(request.client.host) if request.client else ""


def _names(event: queueing.Event) -> tuple[str, str]:
    return f"address {address_of(event.request)}", f"session {event.session_hash}"
