"""Models of visits: networks that a visitor has trained, known to that visit and gone with it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from transformer.inference.model import Model
from transformer.messages import invalid
from transformer.runs.memory_budget import MemoryBudget, bytes_of
from transformer.ui.limits import MODELS
from transformer.ui.visitors import ASKER

SIGN = "~"  # between what a name says and what makes it unguessable
MODULE_BYTES = 3_000  # of one part of a network, apart from its weights


@dataclass(kw_only=True, slots=True, eq=False)
class Own:
    """A model of a visit. label: what the list of models calls it. example: the ids of the run and
    the batch that the page first shows of it, as long as they are kept."""

    model: Model
    visitor: str
    label: str
    example: tuple[str, str] = ("", "")


class OwnModels:
    """By name, in a memory budget; a name holds 96 random bits, so that nobody comes upon it."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget

    def add(self, visitor: str, label: str, make: Callable[[str], Model], about: str) -> Model:
        """Keep a model for a visitor, whose oldest goes where there are too many.

        make: gives the model of a name, which begins with `about`.
        """
        model = make(f"{about}{SIGN}{secrets.token_urlsafe(12)}")
        n_bytes = model.weight_bytes + MODULE_BYTES * sum(1 for _ in model.network.modules())
        n_bytes += bytes_of((model.card, model.metadata, model.sample))
        own = Own(model=model, visitor=visitor, label=label)
        self._budget.put(MODELS, model.name, own, n_bytes, visitor)
        return model

    def find(self, name: str, visitor: str | None = None) -> Own:
        """What is kept under a name. visitor: who asks; None: whose question this thread answers,
        if it is known. Raises ValueError for one that is gone, or another visit's."""
        asker = ASKER.get() if visitor is None else visitor
        own: Own | None = self._budget.get(MODELS, name)
        if own is None or (asker and asker != own.visitor):
            raise invalid(
                "model {name} was trained in a visit: it belonged to that visit alone, and "
                "is gone with it; train one anew in the tab Learn",
                name=repr(name.partition(SIGN)[0]),
            )
        return own

    def of(self, visitor: str) -> list[Own]:
        """A visitor's, the oldest first."""
        return self._budget.of(MODELS, visitor) if visitor else []


def is_own(name: object) -> bool:
    """Whether a name may be that of a model of a visit."""
    return isinstance(name, str) and SIGN in name
