"""Interventions as a pass applies them: hooks that put something else in a number's place.

They are made for one call, so that the weights stay as they are and no run sees what another
alters. Every tensor has a batch dimension of 1 or B: each row may be altered in its own way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer.interventions.breaks import SWITCHES, SwitchedOff
from transformer.interventions.descriptions import (
    Break,
    EditMask,
    Intervention,
    Patch,
    check_all,
)
from transformer.model.config import ModelConfig
from transformer.model.hooks import Hook, Point
from transformer.model.sites import Site


@dataclass(frozen=True, slots=True, eq=False)
class AblatedHeads:
    """Heads whose z is 0. intact: by site (B, H, 1, 1), 1 for intact heads, 0 for others.

    by_mean: z is their mean over the text in place of 0.
    """

    intact: Mapping[Site, Tensor]
    by_mean: bool = False

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """See Hook."""
        if point.name != "z" or point[1:] not in self.intact:
            return value
        intact = self.intact[Site(*point[1:])].to(value.device)
        instead = _mean(point.stack, value, context["padding_mask"]) if self.by_mean else 0.0
        return intact * value + (1 - intact) * instead


@dataclass(frozen=True, slots=True, eq=False)
class EditedMask:
    """Another mask for some attentions."""

    edit: EditMask
    sites: Sequence[Site]

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """See Hook."""
        if point[1:] not in self.sites:
            return value
        if point.name in ("causal_mask", "padding_mask"):
            removed = point.name.removesuffix("_mask") in self.edit.without
            return torch.ones_like(value) if removed and value is not None else value
        if point.name == "mask":
            return edited_mask(self.edit, value, context["scores"])
        return value


class Replacement(NamedTuple):
    """values where `where`: for z (B, H, T, D) and (B, H, T, 1), else (B, T, C), (B, T, 1)."""

    where: Tensor
    values: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Patched:
    """Activity of another run at one point."""

    point: Point
    replacement: Replacement

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """See Hook."""
        if point != self.point:
            return value
        where, values = self.replacement
        n = min(value.shape[-2], where.shape[-2])  # a text that is still short
        changed = torch.where(where[..., :n, :], values[..., :n, :], value[..., :n, :])
        return torch.cat([changed, value[..., n:, :]], dim=-2) if n < value.shape[-2] else changed


@dataclass(slots=True, eq=False)
class ActivationCache:
    """Alters nothing and keeps what can be patched into another run.

    activations: by point, what heads read, feed-forwards add and layers leave behind.
    """

    activations: dict[Point, Tensor] = field(default_factory=dict)

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """See Hook."""
        if point.name in ("z", "mlp_out", "resid_post"):
            self.activations[point] = value.detach()
        return value


def hooks_of(
    interventions: Sequence[Intervention],
    config: ModelConfig,
    caches: Mapping[str, ActivationCache] | None = None,
) -> tuple[Hook, ...]:
    """What applies these interventions; empty where there is nothing to do.

    caches: by the text of each patch, what the intact network does with it. Patches come first,
    so that a head that is ablated stays so. Raises ValueError for what the network does not
    have.
    """
    check_all(interventions, config)
    once = list(dict.fromkeys(interventions))
    once.sort(key=lambda each: not isinstance(each, Patch))
    made = [_hook_of(each, config, caches or {}) for each in once]
    return tuple(hook for hook in made if hook is not None)


def ablated_one_by_one(
    config: ModelConfig, heads: Sequence[tuple[Site, int]], by: str = "zero"
) -> AblatedHeads:
    """One row of a batch for each head, ablated there alone."""
    intact: dict[Site, Tensor] = {}
    for row, (site, head) in enumerate(heads):
        here = intact.setdefault(site, torch.ones(len(heads), config.n_heads, 1, 1))
        here[row, head] = 0.0
    return AblatedHeads(intact, by == "mean")


def edited_mask(edit: EditMask, mask: Tensor | None, scores: Tensor) -> Tensor | None:
    """A mask with its cells allowed, then forbidden; scores (B, H, Tq, Tk) give the size."""
    if not (edit.allow or edit.forbid):
        return mask
    shape = (scores.shape[0], 1, *scores.shape[2:])
    full = torch.ones(shape, dtype=torch.bool, device=scores.device)
    full = full if mask is None else full & mask
    for cells, value in ((edit.allow, True), (edit.forbid, False)):
        for query, key in cells:
            full[:, :, _slice(query), _slice(key)] = value
    return full


def patched(asked: Patch, config: ModelConfig, cache: ActivationCache) -> Patched | None:
    """The hook of a patch; None where it names no place or no head."""
    point = Point(asked.part, asked.stack, asked.layer, asked.kind * (asked.part == "z"))
    values = cache.activations[point]
    where = torch.zeros(values.shape[-2], dtype=torch.bool)
    where[list(asked.positions)] = True
    if asked.part == "z":
        chosen = torch.zeros(config.n_heads, dtype=torch.bool)
        chosen[list(range(config.n_heads) if asked.heads is None else asked.heads)] = True
        full = chosen[None, :, None, None] & where[None, None, :, None]
    else:
        full = where[None, :, None]
    if not bool(full.any()):
        return None
    return Patched(point, Replacement(full.to(values.device), values))


def _hook_of(
    asked: Intervention, config: ModelConfig, caches: Mapping[str, ActivationCache]
) -> Hook | None:
    if isinstance(asked, Patch):
        return patched(asked, config, caches[asked.text])
    if isinstance(asked, Break):
        return SwitchedOff(SWITCHES[asked.what], config)
    if isinstance(asked, EditMask):
        idle = not (asked.without or asked.allow or asked.forbid)
        return None if idle else EditedMask(asked, asked.sites(config))
    intact = torch.ones(1, config.n_heads, 1, 1)
    intact[:, list(asked.heads)] = 0.0
    return AblatedHeads({asked.site: intact}, asked.by == "mean") if asked.heads else None


def _mean(stack: str, heads: Tensor, padding: Tensor | None) -> Tensor:
    """Of (B, H, T, D) over the text: up to each place, or in an encoder over all real places."""
    if stack == "decoder":
        counts = torch.arange(1, heads.shape[2] + 1, device=heads.device)
        return heads.cumsum(dim=2) / counts[:, None]
    if padding is None:
        return heads.mean(dim=2, keepdim=True)
    real = padding.transpose(-1, -2).to(heads.dtype)  # (B, 1, T, 1)
    return (heads * real).sum(dim=2, keepdim=True) / real.sum(dim=2, keepdim=True).clamp(min=1)


def _slice(place: int | None) -> slice:
    return slice(None) if place is None else slice(place, place + 1)
