"""Models of visits: networks that a visitor has trained, known to that visit and gone with it."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from transformer.inference.model import Model
from transformer.messages import invalid
from transformer.ui.limits import LEFT_AGE_S, MAX_OWN_MODELS
from transformer.ui.visitors import ASKER

SIGN = "~"  # between what a name says and what makes it unguessable


@dataclass(kw_only=True, slots=True, eq=False)
class Own:
    """A model of a visit. label: what the list of models calls it. until: when it goes, by the
    monotonic clock; None while the visit lasts."""

    model: Model
    visitor: str
    label: str
    until: float | None = field(default=None)


class OwnModels:
    """By name; a name holds 96 random bits, so that nobody comes upon it.

    forget: told the name of each that goes.
    """

    def __init__(self, forget: Callable[[str], object]) -> None:
        self._all: dict[str, Own] = {}
        self._lock = threading.Lock()
        self._forget = forget

    def add(self, visitor: str, label: str, make: Callable[[str], Model], about: str) -> Model:
        """Keep a model for a visitor, whose oldest goes where there are too many.

        make: gives the model of a name, which begins with `about`.
        """
        model = make(f"{about}{SIGN}{secrets.token_urlsafe(12)}")
        with self._lock:
            self._all[model.name] = Own(model=model, visitor=visitor, label=label)
            names = [name for name, own in self._all.items() if own.visitor == visitor]
            gone = names[: max(0, len(names) - MAX_OWN_MODELS)]
            for name in gone:
                del self._all[name]
        for name in gone:
            self._forget(name)
        return model

    def model(self, name: str, visitor: str | None = None) -> Model:
        """The model of a name. visitor: who asks; None: whose question this thread answers, if it
        is known. Raises ValueError for one that is gone, or another visit's."""
        asker = ASKER.get() if visitor is None else visitor
        with self._lock:
            own = self._all.get(name)
            if own is None or (asker and asker != own.visitor):
                raise invalid(
                    "model {name} was trained in a visit: it belonged to that visit alone, and "
                    "is gone with it; train one anew in the tab Learn",
                    name=repr(name.partition(SIGN)[0]),
                )
            if asker:
                own.until = None  # a visit that seemed to have ended has not
            return own.model

    def of(self, visitor: str) -> Iterator[Own]:
        """A visitor's, the oldest first."""
        with self._lock:
            return iter([own for own in self._all.values() if visitor and own.visitor == visitor])

    def leave(self, visitor: str) -> None:
        """This visitor has left: they go soon."""
        with self._lock:
            for own in self._all.values():
                if visitor and own.visitor == visitor:
                    own.until = time.monotonic() + LEFT_AGE_S

    def sweep(self) -> None:
        """Let go whose time is over."""
        now = time.monotonic()
        with self._lock:
            gone = [n for n, own in self._all.items() if own.until is not None and own.until <= now]
            for name in gone:
                del self._all[name]
        for name in gone:
            self._forget(name)


def is_own(name: object) -> bool:
    """Whether a name may be that of a model of a visit."""
    return isinstance(name, str) and SIGN in name
