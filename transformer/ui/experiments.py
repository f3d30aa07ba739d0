"""Questions about kept runs that need the network: what if a part of it were different?"""

from __future__ import annotations

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
from transformer.inference.run import Run
from transformer.inference.sample import Broken, broken
from transformer.ui.limits import check_input
from transformer.ui.service import Service

PATIENCE_S = 20.0  # how long a question waits for its turn

_QUESTIONS: dict[str, Callable[..., Any]] = {
    "importance": head_importance,
    "next": next_token,
    "patching": patch_effect,
}


class Experiments:
    """One a server, beside the service; one question at a time, since each takes all cores.

    Answers to questions about a model alone are kept.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self.store = service.store
        self._turn = threading.Lock()
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

    def broken(self, name: str) -> list[Broken]:
        """See sample.broken."""
        model = self.service.model(name)
        with self._in_turn():
            if name not in self._broken:
                self._broken[name] = broken(model)
            return self._broken[name]

    def _ask(self, question: str, run: Run, **values: Any) -> Any:
        return _QUESTIONS[question](self.service.model(run.model), run, **values)

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        if not self._turn.acquire(timeout=PATIENCE_S):
            raise ValueError("the server is busy with other visitors' experiments; ask again")
        try:
            yield
        finally:
            self._turn.release()
