"""Questions about kept runs that run the network again: what if a part of it were different?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from transformer.analysis.ablation import broken_guess, head_importance, losses_without
from transformer.analysis.continuation import continuation
from transformer.analysis.feed_forward import feed_forward_at
from transformer.analysis.journey import deciding_heads, journey, without_head
from transformer.analysis.layer_at_position import layer_at_position
from transformer.analysis.logit_lens import with_lens
from transformer.analysis.patching import patch_effect
from transformer.analysis.word_effects import without_words, word_effects
from transformer.checks import InvalidRequest
from transformer.inference.deadline import until
from transformer.inference.model import Model
from transformer.model.sites import sites_of
from transformer.runs.memo import memoize_on_run
from transformer.runs.run import Run
from transformer.server.http.limits import (
    MAX_OPERATIONS,
    MAX_SECONDS,
    PATIENCE_S,
)
from transformer.server.http.requests import taken, time_limit
from transformer.server.http.slots import Slots
from transformer.server.kept.trainings import is_own

T = TypeVar("T")
# One text read once, or a few tokens more: a short one of a small network needs no turn either.
ONE_TEXT = (journey, without_head, without_words, feed_forward_at, continuation, broken_guess)
MAX_PREVIEW_OPERATIONS = MAX_OPERATIONS / 40  # of a head that is only pointed at
QUICK_OPERATIONS = 2e10  # about 0.2 s of the network on two cores


class Experiments:
    """The server's `ModelQueries`: one question at a time, since each takes all cores, for at most
    MAX_SECONDS; a long one lets others run between two of its batches. A question whose client has
    left is cancelled.

    models: finds one by its name. slots: where a question waits for its turn. seconds: for a
    question at most.
    """

    def __init__(
        self, models: Callable[[str], Model], slots: Slots, seconds: float = MAX_SECONDS
    ) -> None:
        self._models, self._slots, self._seconds = models, slots, seconds
        self._losses: dict[str, dict[str | None, float | None]] = {}

    def model(self, name: str) -> Model:
        """A served model. Raises ValueError, listing the names, for an unknown one."""
        return self._models(name)

    def ask(self, question: Callable[..., T], run: Run, **arguments: Any) -> T:
        """question(model, run, **arguments), computed once for a run."""
        key = (question.__name__, repr(sorted(arguments.items())))
        return memoize_on_run(run, key, lambda: self._answered(question, run, arguments))

    def with_lens(self, run: Run) -> Run:
        """See logit_lens.with_lens."""
        return run if run.lens is not None else self.ask(with_lens, run)

    def losses_without(self, name: str) -> dict[str | None, float | None]:
        """See ablation.losses_without."""
        model = self.model(name)
        with taken(self._slots, PATIENCE_S), until(time_limit(self._seconds)):
            losses = self._losses.get(name) or losses_without(model)
            if not is_own(name):
                self._losses[name] = losses
            return losses

    def known_losses(self, name: str) -> dict[str | None, float | None]:
        """The losses that `losses_without` has already computed; empty if none."""
        self.model(name)
        return self._losses.get(name, {})

    def _answered(self, question: Callable[..., T], run: Run, arguments: Mapping[str, Any]) -> T:
        """Wait for a turn, then answer the question; a cheap one need not wait."""
        n_tokens = _n_tokens(question, run, arguments)
        operations = 2.0 * self.model(run.model).n_parameters * n_tokens
        # one row of one layer is too little to wait for, and a whole class asks at once
        is_one_row = question is layer_at_position
        if is_one_row or (question in ONE_TEXT and operations <= QUICK_OPERATIONS):
            return self._ask(question, run, **arguments)
        previews = question in (without_head, without_words, feed_forward_at)
        most = MAX_PREVIEW_OPERATIONS if previews else MAX_OPERATIONS
        if operations > most:
            raise InvalidRequest(
                "too_much",
                "this would read {n_read} tokens, about {operations} million million "
                "operations, of which {most} are allowed: choose an earlier token or a "
                "shorter text",
                n_read=n_tokens,
                operations=round(operations / 1e12, 1),
                most=most / 1e12,
            )
        with taken(self._slots, PATIENCE_S):
            return self._ask(question, run, **arguments)

    def _ask(self, question: Callable[..., T], run: Run, **arguments: Any) -> T:
        with until(time_limit(self._seconds)):
            return question(self.model(run.model), run, **arguments)


def _n_tokens(question: Callable[..., Any], run: Run, arguments: Mapping[str, Any]) -> int:
    """Count the tokens read over all variants of a text.

    0 for a question that has no entry here, and for an invalid position, which the question itself
    refuses.
    """
    position = arguments.get("position")
    n_read = len(run.ids) if position is None else position if isinstance(position, int) else 0
    n_read = max(0, min(n_read, run.config.output_max_len))
    if question in (head_importance, deciding_heads):
        n_variants = len(sites_of(run.config)) * run.config.n_heads
    elif question is word_effects:
        n_variants = len(run.source_ids) or n_read
    elif question is patch_effect:
        stack = str(arguments.get("stack", "decoder"))
        n_positions = len(run.source_ids) if stack == "encoder" else n_read
        n_variants = run.config.n_layers_of(stack) * n_positions
    else:
        n_variants = int(question in ONE_TEXT)
    if question is journey and run.config.family != "encoder" and not run.request.interventions:
        return 1  # the rest is recorded
    return n_variants * (n_read + len(run.source_ids))
