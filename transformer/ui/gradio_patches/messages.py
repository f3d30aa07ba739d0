"""Finished answers that wait to be fetched, by session, in a memory budget."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, MutableMapping

from gradio.server_messages import EventMessage

from transformer.runs.memory_budget import MemoryBudget, bytes_of
from transformer.ui.limits import ANSWERS


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
