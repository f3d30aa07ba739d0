"""The interface through which views and lessons run the network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from transformer.inference.model import Model
from transformer.runs.run import Run

T = TypeVar("T")


class ModelQueries(Protocol):
    """Functions of `analysis`, called with the model that made a run.

    The page's own (`server/kept/experiments.py`) wait their turn in the server's queue; in Python
    the functions are called with the model at hand.
    """

    def model(self, name: str) -> Model:
        """A model by its name. Raises ValueError, listing the names, for an unknown one."""

    def ask(self, question: Callable[..., T], run: Run, **arguments: Any) -> T:
        """question(model, run, **arguments), computed once for a run."""

    def with_lens(self, run: Run) -> Run:
        """The run with its lens and surprisal, see `logit_lens.with_lens`."""

    def losses_without(self, name: str) -> dict[str | None, float | None]:
        """The loss of a model without each of its components, see `ablation.losses_without`."""

    def known_losses(self, name: str) -> dict[str | None, float | None]:
        """The losses that `losses_without` has already computed; empty if none."""
