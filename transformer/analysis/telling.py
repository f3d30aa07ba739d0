"""The written token that is worth a look: the one to which a single head adds most."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from transformer.analysis.journey import altered, parts_of
from transformer.analysis.logit_contribution import LogitContribution, WrittenAt
from transformer.analysis.text_before import TextBefore
from transformer.inference.loaded import LoadedModel
from transformer.model.sites import Site
from transformer.runs.run import Run


@dataclass(frozen=True, kw_only=True, slots=True)
class Telling:
    """A written token that is worth a look: `position` is of the token before it.

    site, head: the head that adds most to its logit; lead: how much more than any other part, below
    0 for less.
    """

    position: int
    site: Site
    head: int
    lead: float


@torch.no_grad()
def telling(model: LoadedModel, run: Run) -> Telling | None:
    """The written token to which one head adds most beyond any other part; where no head leads, the
    most surprising one. One pass over the text. None where nothing was written, and for a logit
    that is no sum of parts.
    """
    first, last = max(run.n_prompt - 1, run.trace_start), len(run.ids) - 1
    if run.config.family == "encoder" or first >= last or last >= run.config.output_max_len:
        return None
    text = TextBefore.up_to(model, run, last)
    stack = text.network.last_stack.name
    written = WrittenAt(stack, None)
    logits = text.all_logits([*altered(model, run), written])
    found: list[Telling] = []
    for position in range(first, last):
        target, row = run.ids[position + 1], position - run.trace_start
        logit = float(logits[row, target])
        parts = parts_of(model, written.at(row), position, target, logit)
        if parts is None:
            return None
        if not model.tokenizer.is_special(target):
            found.append(_leading(parts, stack))
    likely = logits.log_softmax(dim=-1)

    def likelihood(one: Telling) -> float:
        return float(likely[one.position - run.trace_start, run.ids[one.position + 1]])

    best = max(found, key=lambda one: one.lead, default=None)
    return best if best is None or best.lead > 0 else min(found, key=likelihood)


def _leading(parts: LogitContribution, stack: str) -> Telling:
    """The head that adds most, and its lead over every other part."""
    adds = {
        (kind, layer, head): float(heads[layer, head])
        for kind, heads in parts.heads.items()
        for layer in range(heads.shape[0])
        for head in range(heads.shape[1])
    }
    (kind, layer, head), most = max(adds.items(), key=lambda one: one[1])
    del adds[kind, layer, head]
    others = [*adds.values(), *parts.feed_forward.tolist()]
    place = Site(stack, layer, kind)
    return Telling(position=parts.position, site=place, head=head, lead=most - max(others))
