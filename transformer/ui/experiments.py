"""Questions about kept runs that need the network: what if a part of it were different?"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from transformer.inference.effects import (
    HeadImportance,
    NextToken,
    PatchEffect,
    head_importance,
    next_token,
    patch_effect,
)
from transformer.inference.elsewhere import most_changed
from transformer.inference.model import Model
from transformer.inference.patience import Patience, until
from transformer.inference.request import Request
from transformer.inference.run import Run
from transformer.inference.sample import Broken, broken
from transformer.inference.stream import Stream
from transformer.model.interventions import Break
from transformer.ui.limits import MAX_EXPERIMENTS, MAX_SECONDS, check_input
from transformer.ui.service import Service

PATIENCE_S = 20.0  # how long a question waits for its turn
BROKEN_TOKENS = 24  # generated to see what a missing idea does to a text


def continued(model: Model, request: Request) -> tuple[int, ...]:
    """Ids of a request's whole text, of which nothing is recorded.

    Raises ValueError if that takes longer than a request may.
    """
    stream = Stream(model, request)
    patience = Patience(MAX_SECONDS)
    with until(patience):
        ids = (*stream.prompt_ids, *(step.token for step in stream))
    if patience.why is not None:
        raise ValueError(f"this text takes longer than the {MAX_SECONDS:.0f} s that it may")
    return ids


_QUESTIONS: dict[str, Callable[..., Any]] = {
    "importance": head_importance,
    "next": next_token,
    "patching": patch_effect,
    "changed": most_changed,
    "continued": lambda model, _, request: continued(model, request),
}


class Experiments:
    """One a server, beside the service; one question at a time, since each takes all cores.

    Answers to questions about a model alone are kept.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self.store = service.store
        self._turn = threading.Lock()
        self._room = threading.BoundedSemaphore(MAX_EXPERIMENTS)
        self._asked = service.on_device(self._ask)
        self._broken: dict[str, list[Broken]] = {}

    def importance(self, run: Run, place: int, by: str) -> HeadImportance:
        """See effects.head_importance."""
        with self._in_turn():
            found: HeadImportance = self._asked("importance", run, place=place, by=by)
            return found

    def next_token(self, run: Run, place: int) -> NextToken:
        """See effects.next_token."""
        with self._in_turn():
            found: NextToken = self._asked("next", run, place=place)
            return found

    def patching(self, run: Run, other: str, place: int, **where: Any) -> PatchEffect:
        """See effects.patch_effect."""
        check_input(other)
        with self._in_turn():
            found: PatchEffect = self._asked("patching", run, other=other, place=place, **where)
            return found

    def most_changed(self, run: Run, other: str) -> int:
        """See elsewhere.most_changed."""
        check_input(other)
        with self._in_turn():
            found: int = self._asked("changed", run, other=other)
            return found

    def broken(self, name: str) -> list[Broken]:
        """See sample.broken."""
        model = self.service.model(name)
        with self._in_turn():
            if name not in self._broken:
                self._broken[name] = broken(model)
            return self._broken[name]

    def known_broken(self, name: str) -> list[Broken]:
        """The same if somebody has asked for it; else nothing."""
        self.service.model(name)
        return self._broken.get(name, [])

    def intact_ids(self, run: Run) -> tuple[int, ...]:
        """What the intact network makes of the run's request, every other setting kept."""
        return self._continued(run, dataclasses.replace(run.request, interventions=()))

    def broken_ids(self, run: Run, what: str | None) -> tuple[int, ...]:
        """How the run's prompt goes on greedily without one idea; None: with all of them."""
        missing = [] if what is None else [Break(what)]
        text = run.request.text
        return self._continued(
            run, Request(text=text, max_new_tokens=BROKEN_TOKENS, interventions=missing)
        )

    def _continued(self, run: Run, request: Request) -> tuple[int, ...]:
        with self._in_turn():
            ids: tuple[int, ...] = self._asked("continued", run, request=request)
            return ids

    def _ask(self, question: str, run: Run, **values: Any) -> Any:
        return _QUESTIONS[question](self.service.model(run.model), run, **values)

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        busy = "the server is busy with other visitors' experiments; ask again"
        if not self._room.acquire(blocking=False):  # who waits holds a thread that others need
            raise ValueError(busy)
        try:
            if not self._turn.acquire(timeout=PATIENCE_S):
                raise ValueError(busy)
            try:
                yield
            finally:
                self._turn.release()
        finally:
            self._room.release()
