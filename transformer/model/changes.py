"""Interventions as the network applies them: tensors, and what to do at each place of a pass.

Passed down like a trace (`model(ids, changes=changes)`) and made for one call, so that the weights
stay as they are and no run sees another's changes. Every tensor has a batch dimension of 1 or B:
each row of a batch may be altered in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.model.attention import masked_softmax
from transformer.model.config import ModelConfig
from transformer.model.interventions import (
    Break,
    EditMask,
    Intervention,
    Patch,
    Silence,
    check_all,
)
from transformer.model.trace import Site


class Place(NamedTuple):
    """Where activity can be heard or replaced; kind is "" except for heads."""

    part: str
    stack: str
    layer: int
    kind: str = ""


class Replacement(NamedTuple):
    """values where `where`: for heads (B, H, T, D) and (B, H, T, 1), else (B, T, C), (B, T, 1)."""

    where: Tensor
    values: Tensor


@dataclass(slots=True, eq=False)
class Changes:
    """What to alter in one pass.

    kept: by site (B, H, 1, 1), 1 for heads that speak and 0 for silenced ones; by_mean: the sites
    and heads (1, H, 1, 1) whose mean stands in. masks: edits by site. breaks: names of BREAKS.
    replaced: other activity by place. score_factor: what scores are multiplied by. max_len: the
    network's, for shuffled positions.
    """

    kept: dict[Site, Tensor] = field(default_factory=dict)
    by_mean: dict[Site, Tensor] = field(default_factory=dict)
    masks: dict[Site, list[EditMask]] = field(default_factory=dict)
    breaks: frozenset[str] = frozenset()
    replaced: dict[Place, list[Replacement]] = field(default_factory=dict)
    score_factor: float = 1.0
    max_len: int = 0

    def places(self, positions: Tensor) -> Tensor:
        """Positions (T,) or (B, T) as the embedding is told them."""
        if "shuffled-positions" not in self.breaks:
            return positions
        order = torch.randperm(self.max_len, generator=torch.Generator().manual_seed(0))
        return order.to(positions.device)[positions]

    def position_vectors(self, added: Tensor) -> Tensor:
        """What is added to the token embeddings."""
        return torch.zeros_like(added) if "no-positions" in self.breaks else added

    def removes(self, site: Site, mask: str) -> bool:
        """Whether a mask, "causal" or "padding", is taken away from an attention."""
        return any(mask in edit.without for edit in self.masks.get(site, ()))

    def edited(self, site: Site, mask: Tensor | None, scores: Tensor) -> Tensor | None:
        """The mask with its cells edited; scores (B, H, Tq, Tk) give the size."""
        edits = [edit for edit in self.masks.get(site, ()) if edit.allow or edit.forbid]
        if not edits:
            return mask
        shape = (scores.shape[0], 1, *scores.shape[2:])
        full = torch.ones(shape, dtype=torch.bool, device=scores.device)
        full = full if mask is None else full & mask
        for edit in edits:
            for cells, value in ((edit.allow, True), (edit.forbid, False)):
                for query, key in cells:
                    full[:, :, _slice(query), _slice(key)] = value
        return full

    def scaled(self, scores: Tensor) -> Tensor:
        """Scores with another divisor than √d_head."""
        return scores * self.score_factor

    def weighed(self, scores: Tensor, mask: Tensor | None, weights: Tensor) -> Tensor:
        """Other weights than softmax's, from scores (B, H, Tq, Tk) and the mask."""
        if "hard-attention" in self.breaks:
            best = weights.argmax(dim=-1)
            return F.one_hot(best, weights.shape[-1]).to(weights.dtype)
        if "uniform-attention" in self.breaks:
            return masked_softmax(torch.zeros_like(scores), mask)
        return weights

    def heads(self, site: Site, heads: Tensor, padding: Tensor | None = None) -> Tensor:
        """What the heads read, (B, H, T, D), before the output projection.

        padding: the mask of an encoder's keys, whose places have no part in a mean.
        """
        heads = self._replace(Place("heads", *site), heads)
        if site not in self.kept:
            return heads
        kept = self.kept[site].to(heads.device)
        silent: Tensor | float = 0.0
        if site in self.by_mean:
            silent = self.by_mean[site].to(heads.device) * _mean(site, heads, padding)
        return kept * heads + (1 - kept) * silent

    def feed_forward(self, stack: str, layer: int, x: Tensor) -> Tensor:
        """What a feed-forward adds, (B, T, C)."""
        return self._replace(Place("feed_forward", stack, layer), x)

    def residual(self, stack: str, layer: int, x: Tensor) -> Tensor:
        """The stream that leaves a layer, (B, T, C)."""
        return self._replace(Place("residual", stack, layer), x)

    def stream(self, x: Tensor) -> Tensor:
        """What a sub-layer's output is added to."""
        return torch.zeros_like(x) if "no-residual" in self.breaks else x

    @property
    def ends_with_norm(self) -> bool:
        """Whether a stack's final norm stays."""
        return "no-final-norm" not in self.breaks

    def _replace(self, place: Place, x: Tensor) -> Tensor:
        for where, values in self.replaced.get(place, ()):
            n = min(x.shape[-2], where.shape[-2])  # a text that is still short
            changed = torch.where(where[..., :n, :], values[..., :n, :], x[..., :n, :])
            x = torch.cat([changed, x[..., n:, :]], dim=-2) if n < x.shape[-2] else changed
        return x


@dataclass(slots=True, eq=False)
class Activity(Changes):
    """Changes nothing and listens: what heads read, feed-forwards add and layers leave behind."""

    heard: dict[Place, Tensor] = field(default_factory=dict)

    def _replace(self, place: Place, x: Tensor) -> Tensor:
        self.heard[place] = x.detach()
        return x


def changes_of(
    interventions: Sequence[Intervention],
    config: ModelConfig,
    activity: dict[str, Activity] | None = None,
) -> Changes | None:
    """What the network is to apply; None where there is nothing to do.

    activity: by the text of each patch, what the intact network does with it. Raises ValueError
    for what the network does not have.
    """
    check_all(interventions, config)
    made = Changes(max_len=config.max_len)
    for intervention in interventions:
        if isinstance(intervention, Silence):
            _silence(made, intervention, config)
        elif isinstance(intervention, EditMask):
            _edit(made, intervention, config)
        elif isinstance(intervention, Break):
            _break(made, intervention, config)
        else:
            _patch(made, intervention, config, (activity or {})[intervention.text])
    idle = not (made.kept or made.masks or made.breaks or made.replaced)
    return None if idle else made


def silencing(config: ModelConfig, heads: Sequence[tuple[Site, int]], by: str = "zero") -> Changes:
    """One row of a batch for each head, silenced there alone."""
    made = Changes(max_len=config.max_len)
    for row, (site, head) in enumerate(heads):
        if site not in made.kept:
            made.kept[site] = torch.ones(len(heads), config.n_heads, 1, 1)
            if by == "mean":
                made.by_mean[site] = torch.ones(1, config.n_heads, 1, 1)
        made.kept[site][row, head] = 0.0
    return made


def _silence(made: Changes, asked: Silence, config: ModelConfig) -> None:
    if not asked.heads:
        return
    shape = (1, config.n_heads, 1, 1)
    kept = made.kept.setdefault(asked.site, torch.ones(shape))
    kept[:, list(asked.heads)] = 0.0
    if asked.by == "mean":
        made.by_mean.setdefault(asked.site, torch.zeros(shape))[:, list(asked.heads)] = 1.0


def _edit(made: Changes, asked: EditMask, config: ModelConfig) -> None:
    if asked.without or asked.allow or asked.forbid:
        for site in asked.sites(config):
            made.masks.setdefault(site, []).append(asked)


def _break(made: Changes, asked: Break, config: ModelConfig) -> None:
    made.breaks |= {asked.what}
    if asked.what == "no-scale":
        made.score_factor = config.d_head**0.5
    if asked.what == "model-scale":
        made.score_factor = (config.d_head / config.d_model) ** 0.5


def _patch(made: Changes, asked: Patch, config: ModelConfig, activity: Activity) -> None:
    kind = asked.kind if asked.part == "heads" else ""
    place = Place(asked.part, asked.stack, asked.layer, kind)
    values = activity.heard[place]
    length = values.shape[-2]
    where = torch.zeros(length, dtype=torch.bool)
    where[list(asked.positions)] = True
    if asked.part == "heads":
        chosen = torch.zeros(config.n_heads, dtype=torch.bool)
        chosen[list(range(config.n_heads) if asked.heads is None else asked.heads)] = True
        full = chosen[None, :, None, None] & where[None, None, :, None]
    else:
        full = where[None, :, None]
    if bool(full.any()):
        made.replaced.setdefault(place, []).append(Replacement(full.to(values.device), values))


def _mean(site: Site, heads: Tensor, padding: Tensor | None) -> Tensor:
    """Of (B, H, T, D) over the text: up to each place, or in an encoder over all real places."""
    if site.stack == "decoder":
        counts = torch.arange(1, heads.shape[2] + 1, device=heads.device)
        return heads.cumsum(dim=2) / counts[:, None]
    if padding is None:
        return heads.mean(dim=2, keepdim=True)
    real = padding.transpose(-1, -2).to(heads.dtype)  # (B, 1, T, 1)
    return (heads * real).sum(dim=2, keepdim=True) / real.sum(dim=2, keepdim=True).clamp(min=1)


def _slice(place: int | None) -> slice:
    return slice(None) if place is None else slice(place, place + 1)
