"""Questions about kept runs that need the network: what if a part of it were different?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from transformer.analysis.ablation import HeadImportance, NextToken, head_importance, next_token
from transformer.analysis.held_out import Broken, broken
from transformer.analysis.layer_at_place import LayerAtPlace, layer_at_place
from transformer.analysis.logit_contribution import LogitContribution, logit_contribution
from transformer.analysis.logit_lens import surprise, with_lens
from transformer.analysis.masked_token import MaskedToken, masked_token
from transformer.analysis.patching import PatchEffect, most_changed, patch_effect
from transformer.analysis.step_filters import StepFilters, step_filters
from transformer.inference.deadline import renewed
from transformer.inference.model import Model
from transformer.inference.stream import Stream
from transformer.messages import invalid, numeral, say
from transformer.model.interventions import Break
from transformer.model.sites import sites_of
from transformer.runs.memo import remembered
from transformer.runs.request import Request
from transformer.runs.run import Run
from transformer.ui.fair_scheduler import Busy
from transformer.ui.limits import BUSY, MAX_OPERATIONS, MAX_SECONDS, check_input
from transformer.ui.service import Service
from transformer.ui.visitors import asker

T = TypeVar("T")
PATIENCE_S = 20.0  # how long a question waits for its turn
BROKEN_TOKENS = 24  # generated to see what a missing idea does to a text


def continued(model: Model, run: Run, request: Request) -> tuple[int, ...]:
    """Ids of a request's whole text, of which nothing is recorded; run: whose request it was.

    Raises ValueError if that takes longer than a request may.
    """
    stream = Stream(model, request)
    with renewed(MAX_SECONDS) as deadline:
        ids = (*stream.prompt_ids, *(step.token for step in stream))
    if deadline.why is not None:
        raise invalid(
            "this text takes longer than the {most} s that it is allowed",
            most=numeral(MAX_SECONDS, ".0f"),
        )
    return ids


class Experiments:
    """One a server, beside the service; one question at a time, since each takes all cores, and for
    at most MAX_SECONDS; a long one steps aside for others between two of its batches. Who has gone
    is neither waited for nor answered.

    Answers to questions about a model alone are kept.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self.store = service.store
        self._asked = service.on_device(self._ask)
        self._broken: dict[str, list[Broken]] = {}

    def model(self, name: str) -> Model:
        """A served model. Raises ValueError, listing the names, for an unknown one."""
        return self.service.model(name)

    def importance(self, run: Run, place: int, by: str) -> HeadImportance:
        """See ablation.head_importance."""
        self._check_cost(run, place, len(sites_of(run.config)) * run.config.n_heads)
        return self._answered(head_importance, run, place=place, by=by)

    def next_token(self, run: Run, place: int) -> NextToken:
        """See ablation.next_token."""
        return self._answered(next_token, run, place=place)

    def masked_token(self, run: Run, place: int) -> MaskedToken:
        """See masked_token.masked_token."""
        return self._answered(masked_token, run, place=place)

    def contribution(self, run: Run, place: int, target: int | None) -> LogitContribution:
        """See logit_contribution.logit_contribution."""
        return self._answered(logit_contribution, run, place=place, target=target)

    def patching(self, run: Run, other: str, place: int, **where: Any) -> PatchEffect:
        """See patching.patch_effect."""
        check_input(other)
        n_places = len(run.source_ids) if where.get("stack") == "encoder" else _read(run, place)
        self._check_cost(run, place, run.config.n_layers * n_places)
        return self._answered(patch_effect, run, other=other, place=place, **where)

    def most_changed(self, run: Run, other: str) -> int:
        """See patching.most_changed."""
        check_input(other)
        return self._answered(most_changed, run, other=other)

    def with_lens(self, run: Run) -> Run:
        """See logit_lens.with_lens; worked out once."""
        return run if run.lens is not None else remembered(run, "lens", lambda: self._lens(run))

    def _lens(self, run: Run) -> Run:
        return self._answered(with_lens, run)

    def surprise(self, run: Run) -> tuple[float | None, ...]:
        """See logit_lens.surprise."""
        return self._answered(surprise, run)

    def layer_at_place(self, run: Run, stack: str, layer: int, place: int) -> LayerAtPlace:
        """See layer_at_place.layer_at_place. One row of one layer is too little to wait for a
        turn, and a whole class asks for it at once."""
        key = ("layer", stack, layer, place)
        where = {"stack": stack, "layer": layer, "place": place}
        return remembered(run, key, lambda: self._asked(layer_at_place, run, **where))

    def step_filters(self, run: Run, step: int) -> StepFilters | None:
        """See step_filters.step_filters; as `layer_at_place`."""
        return remembered(run, ("filters", step), lambda: self._asked(step_filters, run, step=step))

    def broken(self, name: str) -> list[Broken]:
        """See held_out.broken."""
        model = self.service.model(name)
        with self._in_turn():
            found = self._broken.get(name) or broken(model)
            if name in self.service.models:
                self._broken[name] = found
            return found

    def known_broken(self, name: str) -> list[Broken]:
        """The same if somebody has asked for it; else nothing."""
        self.service.model(name)
        return self._broken.get(name, [])

    def intact_ids(self, run: Run, forced: bool = True) -> tuple[int, ...]:
        """What the intact network makes of the run's request, every other setting kept.

        forced False: nor are any tokens forced.
        """
        tokens = run.request.forced_tokens if forced else ()
        request = dataclasses.replace(run.request, interventions=(), forced_tokens=tokens)
        return self._continued(run, request)

    def broken_ids(self, run: Run, what: str | None) -> tuple[int, ...]:
        """How the run's prompt goes on greedily without one idea; None: with all of them."""
        missing = [] if what is None else [Break(what)]
        text = run.request.text
        return self._continued(
            run, Request(text=text, max_new_tokens=BROKEN_TOKENS, interventions=missing)
        )

    def _continued(self, run: Run, request: Request) -> tuple[int, ...]:
        return self._answered(continued, run, request=request)

    def _answered(self, question: Callable[..., T], run: Run, **values: Any) -> T:
        """A question's answer, once it is its turn."""
        with self._in_turn():
            found: T = self._asked(question, run, **values)
            return found

    def _ask(self, question: Callable[..., T], run: Run, **values: Any) -> T:
        with renewed(MAX_SECONDS):
            return question(self.service.model(run.model), run, **values)

    def _check_cost(self, run: Run, place: int, n_variants: int) -> None:
        """Raise ValueError for more variants of a text than can be read in the time."""
        n_read = n_variants * (_read(run, place) + len(run.source_ids))
        operations = 2 * self.service.model(run.model).n_parameters * n_read
        if operations > MAX_OPERATIONS:
            raise invalid(
                "this would read {n_read} tokens, about {operations} million million "
                "operations, of which {most} are allowed: choose an earlier token or a "
                "shorter text",
                n_read=numeral(n_read),
                operations=numeral(operations / 1e12, ".1f"),
                most=numeral(MAX_OPERATIONS / 1e12, ".0f"),
            )

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        shares = self.service.shares
        with (
            renewed(PATIENCE_S) as patience,
            shares.taken("experiments", asker(), lambda: not patience.is_over()) as place,
        ):
            if not place.has:
                raise Busy(say(BUSY))
            with renewed(MAX_SECONDS, place.step_aside):
                yield


def _read(run: Run, place: Any) -> int:
    """How many tokens are read before a place; 0 for what is none, which the question refuses."""
    return min(place, run.config.output_max_len) if isinstance(place, int) else 0
