"""Where views ask what needs the network: each question about a run, put to the model that made it.

The page has one that waits its turn in the server's queue (`ui/experiments.py`); in Python the
functions of `analysis` are called with the model at hand.
"""

from __future__ import annotations

from typing import Protocol

from transformer.analysis.ablation import HeadImportance, NextToken
from transformer.analysis.held_out import Broken
from transformer.analysis.layer_at_place import LayerAtPlace
from transformer.analysis.logit_contribution import LogitContribution
from transformer.analysis.masked_token import MaskedToken
from transformer.analysis.patching import PatchEffect
from transformer.analysis.step_filters import StepFilters
from transformer.inference.model import Model
from transformer.runs.run import Run


class Laboratory(Protocol):
    """Questions that run a network again."""

    def model(self, name: str) -> Model:
        """A model by its name. Raises ValueError, listing the names, for an unknown one."""

    def with_lens(self, run: Run) -> Run:
        """The run with its lens and surprise, see `logit_lens.with_lens`; worked out once."""

    def importance(self, run: Run, place: int, by: str) -> HeadImportance:
        """What each head matters for the token at a place, see `ablation.head_importance`."""

    def next_token(self, run: Run, place: int) -> NextToken:
        """What the intact and the altered network say, see `ablation.next_token`."""

    def masked_token(self, run: Run, place: int) -> MaskedToken:
        """What an encoder says of a hidden token, see `masked_token.masked_token`."""

    def contribution(self, run: Run, place: int, target: int | None) -> LogitContribution:
        """What each part adds to a logit, see `logit_contribution.logit_contribution`."""

    def patching(
        self, run: Run, other: str, place: int, *, stack: str, part: str, kind: str,
        target: int | None,
    ) -> PatchEffect:  # fmt: skip
        """What a patch does at each layer and place, see `patching.patch_effect`."""

    def most_changed(self, run: Run, other: str) -> int:
        """Where another source changes a translation most, see `patching.most_changed`."""

    def broken(self, name: str) -> list[Broken]:
        """What each missing idea costs a model on its held-out sample, see `held_out.broken`."""

    def known_broken(self, name: str) -> list[Broken]:
        """The same where it is known already, else nothing."""

    def layer_at_place(self, run: Run, stack: str, layer: int, place: int) -> LayerAtPlace:
        """What a layer does with one token, see `layer_at_place.layer_at_place`."""

    def step_filters(self, run: Run, step: int) -> StepFilters | None:
        """What filters left of one step's logits, see `step_filters.step_filters`."""

    def intact_ids(self, run: Run, forced: bool = True) -> tuple[int, ...]:
        """Ids of the text that the intact network makes of the run's request, with the tokens that
        were forced or without."""

    def broken_ids(self, run: Run, what: str | None) -> tuple[int, ...]:
        """Ids of the text that the network makes greedily without one idea; None: with all."""
