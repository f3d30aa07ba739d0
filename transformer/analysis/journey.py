"""One token's way through the network: the contribution of each part to the next word, the
prediction of each layer, and the prediction without a head; and which token is worth a look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from transformer.analysis.logit_contribution import LogitContribution, WrittenAt, attributed
from transformer.analysis.logit_lens import lens_logits
from transformer.analysis.text_before import TextBefore, altered, check_run, in_parts
from transformer.checks import check_whole
from transformer.inference.loaded import LoadedModel
from transformer.interventions.descriptions import Ablate
from transformer.interventions.hooks import ablated_one_by_one, hooks_of
from transformer.model.hooks import Point, unchanged
from transformer.model.sites import Site, SiteLike, sites_of
from transformer.model.transformer import EncoderDecoder, EncoderOnly
from transformer.runs.compact_trace import stored_at
from transformer.runs.head_data import switched_off
from transformer.runs.run import Run

MAX_BATCHES = 8  # of heads left out one by one, each about 0.2 s on two cores


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Journey:
    """The path of the token at `position` of a run's ids, with the run's interventions.

    logits: (V,), of the token that follows; for an encoder, of the token at that position. target:
    id of the token that the parts add to. parts: direct logit attribution; None where the target's
    logit is not the sum of what parts add. stream: (L + 1, C), the residual stream before the first
    layer and after each. lens_ids, lens_probabilities: (L + 1,), the likeliest token of each layer.
    """

    position: int
    target: int
    logits: Tensor
    parts: LogitContribution | None
    stream: Tensor
    lens_ids: Tensor
    lens_probabilities: Tensor

    @property
    def probabilities(self) -> Tensor:
        """(V,), before any temperature."""
        return self.logits.softmax(dim=-1)


@torch.no_grad()
def journey(
    model: LoadedModel, run: Run, position: int | None = None, target: int | None = None
) -> Journey:
    """The last token read and its prediction, in one pass; only that token is computed if the run
    recorded its keys and values.

    position: None = `model.last_read`. target: None = the likeliest. Raises ValueError for a
    position that the network does not read, and for an unknown id.
    """
    check_run(model, run)
    position = model.last_read(run) if position is None else position
    text = TextBefore.up_to(model, run, position)
    written = WrittenAt(text.network.last_stack.name, text.at)
    if _is_recorded(run) and not isinstance(model.network, EncoderOnly):
        logits = text.resumed(run, [written])[0]
    else:
        logits = text.logits([*altered(model, run), written])[0]
    target = int(logits.argmax()) if target is None else target
    target = check_whole("target", target, 0, len(logits) - 1)
    stream = _stream(written, run.config.output_n_layers)
    best = lens_logits(model, run, stream[None]).softmax(dim=-1).max(dim=-1)
    return Journey(
        position=int(position),
        target=target,
        logits=logits.cpu(),
        parts=parts_of(model, written, int(position), target, float(logits[target])),
        stream=stream.cpu(),
        lens_ids=best.indices.cpu(),
        lens_probabilities=best.values.cpu(),
    )


@torch.no_grad()
def without_head(
    model: LoadedModel, run: Run, site: SiteLike, head: int, position: int | None = None
) -> Tensor:
    """(V,) logits as in `journey`, with the output of one head set to 0 at every position.

    Raises ValueError for an unknown head; other errors as in `journey`.
    """
    check_run(model, run)
    position = model.last_read(run) if position is None else position
    place = run.trace.find(site)
    off = hooks_of([Ablate(place.stack, place.layer, (head,), place.kind)], model.config)
    others = altered(model, run)
    if not others and model.config.heads_per_key == 1:
        off = (_WithoutValues(place, head),)
    text = TextBefore.up_to(model, run, position)
    recorded = run.trace.residuals and not isinstance(text.network, EncoderDecoder)
    if others or not recorded:
        return text.logits([*others, *off])[0].cpu()
    return text.from_layer(run, place.layer, off)[0].cpu()


@torch.no_grad()
def deciding_heads(
    model: LoadedModel, run: Run, position: int | None = None
) -> tuple[tuple[Site, int], ...] | None:
    """The heads that each decide alone: without one, a token other than the likeliest would follow.

    Heads that the run has switched off are left out. None where the network is too large to try
    all heads in MAX_BATCHES. Raises ValueError for a position that the network does not read.
    """
    check_run(model, run)
    position = model.last_read(run) if position is None else position
    text = TextBefore.up_to(model, run, position)
    others = altered(model, run)
    heads = [
        (site, head)
        for site in sites_of(run.config)
        for head in range(run.config.n_heads)
        if head not in switched_off(run, site)
    ]
    if len(heads) > MAX_BATCHES * text.largest_batch:
        return None
    likeliest = int(text.logits(others or [unchanged])[0].argmax())
    resumes = not others and bool(run.trace.residuals) and len(run.trace.kinds()) == 1
    groups = [[head for head in heads if head[0] == site] for site in sites_of(run.config)]
    deciding: list[tuple[Site, int]] = []
    for group in groups if resumes else [heads]:
        for part in in_parts(group, text.largest_batch):
            off = ablated_one_by_one(run.config, part)
            logits = (
                text.from_layer(run, part[0][0].layer, [off], len(part))
                if resumes
                else text.logits([*others, off], len(part))
            )
            best = logits.argmax(dim=-1).tolist()
            deciding += [head for head, token in zip(part, best, strict=True) if token != likeliest]
    return tuple(deciding)


@dataclass(frozen=True, slots=True, eq=False)
class _WithoutValues:
    """Ablate a head by zeroing its values, which PyTorch's fused kernel supports."""

    site: Site
    head: int
    fused: ClassVar[bool] = True

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """See Hook."""
        if point.name != "v" or point[1:] != self.site:
            return value
        intact = torch.ones(value.shape[1], 1, 1, dtype=value.dtype, device=value.device)
        intact[self.head] = 0
        return value * intact


def _is_recorded(run: Run) -> bool:
    """Whether the trace holds the keys and values of the intact network."""
    vectors = all(stored_at(run.trace, site).k is not None for site in run.trace.sites)
    return vectors and not run.request.interventions and bool(run.trace.residuals)


def _stream(written: WrittenAt, n_layers: int) -> Tensor:
    points = [Point("resid_post", written.stack, layer) for layer in range(n_layers)]
    points.insert(0, Point("resid_pre", written.stack, 0))
    return torch.stack([written.kept[point] for point in points]).float()


def parts_of(
    model: LoadedModel, written: WrittenAt, position: int, target: int, logit: float
) -> LogitContribution | None:
    try:
        return attributed(model, written, position, target, logit)
    except ValueError:  # raised for an altered norm, or a head that is not linear
        return None


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
    candidates: list[Telling] = []
    for position in range(first, last):
        target, row = run.ids[position + 1], position - run.trace_start
        logit = float(logits[row, target])
        parts = parts_of(model, written.at(row), position, target, logit)
        if parts is None:
            return None
        if not model.tokenizer.is_special(target):
            candidates.append(_leading(parts, stack))
    likely = logits.log_softmax(dim=-1)

    def likelihood(candidate: Telling) -> float:
        return float(likely[candidate.position - run.trace_start, run.ids[candidate.position + 1]])

    best = max(candidates, key=lambda candidate: candidate.lead, default=None)
    return best if best is None or best.lead > 0 else min(candidates, key=likelihood)


def _leading(parts: LogitContribution, stack: str) -> Telling:
    """The head that adds most, and its lead over every other part."""
    adds = {
        (kind, layer, head): float(heads[layer, head])
        for kind, heads in parts.heads.items()
        for layer in range(heads.shape[0])
        for head in range(heads.shape[1])
    }
    (kind, layer, head), most = max(adds.items(), key=lambda item: item[1])
    del adds[kind, layer, head]
    others = [*adds.values(), *parts.feed_forward.tolist()]
    place = Site(stack, layer, kind)
    return Telling(position=parts.position, site=place, head=head, lead=most - max(others))
