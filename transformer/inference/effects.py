"""What parts of a network matter for one token: each altered alone, many variants in one batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from transformer.inference.altered import activity_of, changes_for
from transformer.inference.record import Prepared
from transformer.inference.run import Run
from transformer.model.changes import Activity, Changes, Place, Replacement, silencing
from transformer.model.interventions import PARTS, SILENCED_BY
from transformer.model.sites import check_choice, check_site, sites_of
from transformer.model.trace import Site
from transformer.model.transformer import DecoderOnly, EncoderDecoder

if TYPE_CHECKING:
    from transformer.inference.model import Model

MAX_WEIGHTS = 16_000_000  # attention weights of one layer that a batch of variants may take


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class HeadImportance:
    """How much each head alone matters for one token of a text.

    place: the token's place in the run's ids; log_probability: its natural logarithm by the intact
    network. change: by (stack, kind), (L, H), what is added to it when that head is silenced.
    """

    place: int
    log_probability: float
    change: dict[tuple[str, str], Tensor]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class NextToken:
    """What the intact and the altered network say comes next, after the same text.

    ids: the K likeliest of either, by the intact network's order, and the token that stands there;
    intact, altered: their probabilities, (K,).
    """

    place: int
    ids: tuple[int, ...]
    intact: Tensor
    altered: Tensor


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PatchEffect:
    """What another run's activity does to the next token, patched in at one place at a time.

    target: the id whose log-probability is looked at; before: in this run; other: in the other one
    after its own last token. change: (L, T), what a patch at (layer, place) adds to it.
    """

    target: int
    before: float
    other: float
    change: Tensor


@torch.inference_mode()
def head_importance(model: Model, run: Run, place: int, by: str = "zero") -> HeadImportance:
    """Silence every head of the intact network alone, for the token at `place` of the run's ids.

    by: "zero" or "mean" (see Silence). Raises ValueError for a token that nothing predicts.
    """
    check_choice("by", by, SILENCED_BY)
    text = _Text.of(model, run, place)
    target = run.ids[place]
    before = text.log_probabilities(Changes())[0, target]
    change = {}
    for kind in dict.fromkeys((site.stack, site.kind) for site in sites_of(run.config)):
        sites = [site for site in sites_of(run.config) if (site.stack, site.kind) == kind]
        heads = [(site, head) for site in sites for head in range(run.config.n_heads)]
        after = torch.cat(
            [
                text.log_probabilities(silencing(run.config, part, by), len(part))[:, target]
                for part in _parts(heads, text.largest_batch)
            ]
        )
        change[kind] = (after - before).view(len(sites), run.config.n_heads).cpu()
    return HeadImportance(place=place, log_probability=before.item(), change=change)


@torch.inference_mode()
def next_token(model: Model, run: Run, place: int, n_kept: int = 8) -> NextToken:
    """The token at `place` of the run's ids, foreseen with the run's interventions and without.

    Raises ValueError for a token that nothing predicts.
    """
    text = _Text.of(model, run, place)
    source = list(run.source_ids)
    changes = changes_for(model, run.request, Prepared(source, list(run.ids[: run.n_prompt])))
    intact = text.log_probabilities(Changes())[0].exp()
    altered = intact if changes is None else text.log_probabilities(changes)[0].exp()
    best = {*intact.topk(n_kept).indices.tolist(), *altered.topk(n_kept).indices.tolist()}
    ids = sorted(best | {run.ids[place]}, key=lambda token: -intact[token].item())
    return NextToken(
        place=place, ids=tuple(ids), intact=intact[ids].cpu(), altered=altered[ids].cpu()
    )


@torch.inference_mode()
def patch_effect(
    model: Model,
    run: Run,
    other: str,
    place: int,
    *,
    stack: str = "decoder",
    part: str = "residual",
    kind: str = "self",
    target: int | None = None,
) -> PatchEffect:
    """Patch what the network does with another text into the run, one layer and place at a time.

    place: the token of the run's ids that is predicted; only what stands before it is read. target:
    the id to look at; None = the likeliest one after the other text (of a translator: after the
    same target tokens, from the other source). Raises ValueError for what the network has not.
    """
    check_choice("part", part, PARTS)
    check_site(Site(stack, 0, kind), run.config)
    text = _Text.of(model, run, place)
    activity = activity_of(model, other, text.ids)
    there = _after(model, activity, stack)
    wanted = int(there.argmax()) if target is None else target
    if not 0 <= wanted < len(there):
        raise ValueError(f"target must be an id from 0 to {len(there) - 1}; got {target}")
    before = text.log_probabilities(Changes())[0, wanted]
    rows = [
        text.log_probabilities(changes, count)[:, wanted] - before
        for changes, count in _one_at_a_time(model, activity, text, Place(part, stack, 0, kind))
    ]
    return PatchEffect(
        target=wanted,
        before=before.item(),
        other=there[wanted].item(),
        change=torch.cat(rows).view(run.config.n_layers, -1).cpu(),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Text:
    """What the network reads up to one token."""

    network: DecoderOnly | EncoderDecoder
    source: tuple[int, ...]
    ids: tuple[int, ...]

    @classmethod
    def of(cls, model: Model, run: Run, place: int) -> _Text:
        first = run.trace_start + 1
        last = min(len(run.ids), run.trace_start + run.config.max_len + 1) - 1
        if not isinstance(place, int) or isinstance(place, bool) or not first <= place <= last:
            raise ValueError(
                f"the token must be one that the network predicted, at a place from {first} to "
                f"{last}; got {place!r}"
            )
        ids = run.ids[run.trace_start : place]
        return cls(model.generator_network, run.source_ids, ids)

    def log_probabilities(self, changes: Changes, n_rows: int = 1) -> Tensor:
        """(n_rows, V) of the next token, each row with its own changes."""
        device = self.network.device
        ids = torch.tensor([self.ids], device=device).expand(n_rows, -1)
        where = torch.zeros(ids.shape, dtype=torch.bool, device=device)
        where[:, -1] = True
        if isinstance(self.network, EncoderDecoder):
            source = torch.tensor([self.source], device=device).expand(n_rows, -1)
            logits = self.network(source, ids, where=where, changes=changes)
        else:
            logits = self.network(ids, where=where, changes=changes)
        return logits.float().log_softmax(dim=-1)

    @property
    def largest_batch(self) -> int:
        longest = max(len(self.ids), len(self.source))
        return max(1, MAX_WEIGHTS // (self.network.config.n_heads * longest**2))


def _after(model: Model, activity: Activity, stack: str) -> Tensor:
    """(V,) log-probabilities of the next token of the run that was listened to."""
    network = model.generator_network
    last = activity.heard[Place("residual", "decoder", model.config.n_layers - 1)]
    logits: Tensor = network.lens(last[:, -1:])[0, 0].float()
    return logits.log_softmax(dim=-1)


def _one_at_a_time(
    model: Model, activity: Activity, text: _Text, place: Place
) -> Iterator[tuple[Changes, int]]:
    """(changes, rows) of batches, by layer and then by place."""
    read = text.source if place.stack == "encoder" else text.ids
    for layer in range(model.config.n_layers):
        at = place._replace(layer=layer, kind=place.kind if place.part == "heads" else "")
        values = activity.heard[at]
        n = min(len(read), values.shape[-2])
        for part in _parts(range(n), text.largest_batch):
            rows = torch.tensor(list(part), device=values.device)
            where = torch.nn.functional.one_hot(rows, values.shape[-2]).bool()[:, :, None]
            where = where[:, None] if at.part == "heads" else where
            changes = Changes(replaced={at: [Replacement(where, values)]})
            yield changes, len(rows)


def _parts(items: Sequence, size: int) -> Iterator[Sequence]:  # type: ignore[type-arg]
    for start in range(0, len(items), size):
        yield items[start : start + size]
