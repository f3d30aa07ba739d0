"""Where views and lessons ask what needs the network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from transformer.analysis.held_out import Broken
from transformer.inference.model import Model
from transformer.runs.run import Run

T = TypeVar("T")


class ModelQueries(Protocol):
    """Functions of `analysis`, called with the model that made a run.

    The page's own (`ui/experiments.py`) wait their turn in the server's queue; in Python the
    functions are called with the model at hand.
    """

    def model(self, name: str) -> Model:
        """A model by its name. Raises ValueError, listing the names, for an unknown one."""

    def ask(self, question: Callable[..., T], run: Run, **arguments: Any) -> T:
        """question(model, run, **arguments), computed once for a run."""

    def with_lens(self, run: Run) -> Run:
        """The run with its lens and surprisal, see `logit_lens.with_lens`."""

    def broken(self, name: str) -> list[Broken]:
        """What each ablated component costs a model on its held-out sample, see `held_out`."""

    def known_broken(self, name: str) -> list[Broken]:
        """The same if it has been computed already, else nothing."""
