"""Hooks that apply interventions in a forward pass.

They are made for one call, so that weights never change and runs do not influence each other.
Every tensor has a batch dimension of 1 or B: rows may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.interventions.breaks import SWITCHES, SwitchedOff
from transformer.interventions.checks import Indices
from transformer.interventions.descriptions import (
    Ablate,
    Add,
    Break,
    EditMask,
    Intervention,
    Patch,
    check_all,
)
from transformer.model.config import ModelConfig
from transformer.model.functional import on_device
from transformer.model.hooks import Hook, Point
from transformer.model.sites import Site


@dataclass(frozen=True, slots=True, eq=False)
class AblatedHeads:
    """Heads whose z is 0. intact: by site (B, H, 1, 1) bool, True for intact heads.

    by_mean: z is their mean over the text instead of 0.
    """

    intact: Mapping[Site, Tensor]
    by_mean: bool = False

    @property
    def is_local(self) -> bool:
        """See `are_local`."""
        return not self.by_mean or all(site.stack == "encoder" for site in self.intact)

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """See Hook."""
        if point.name != "z" or point[1:] not in self.intact:
            return value
        intact = on_device(self.intact[Site(*point[1:])], value.device)
        ablated = _mean(point.stack, value, context["is_text"]) if self.by_mean else 0.0
        return torch.where(intact, value, ablated)


@dataclass(frozen=True, slots=True, eq=False)
class Changed:
    """A part of one layer, changed at some positions. change(value, is_text) -> (B, T, C) or
    (B, H, T, D); positions None: all. is_local: see `are_local`."""

    points: Sequence[Point]
    change: Callable[[Tensor, Tensor | None], Tensor]
    positions: Indices | None = None
    is_local: bool = False

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """See Hook."""
        if point not in self.points:
            return value
        changed = self.change(value, context["is_text"])
        if self.positions is None:
            return changed
        here = torch.zeros(value.shape[-2], 1, dtype=torch.bool, device="cpu")
        here[[position for position in self.positions if position < len(here)]] = True
        return torch.where(on_device(here, value.device), changed, value)

    def after(self, n_read: int) -> Changed:
        """See `continued`."""
        if self.positions is None:
            return self
        return replace(self, positions=[at - n_read for at in self.positions if at >= n_read])


Cell = tuple[int | None, int | None]
_MASKS = {"position_mask": "causal", "padding_mask": "padding"}  # what EditMask calls them


@dataclass(frozen=True, slots=True, eq=False)
class EditedMask:
    """A changed mask for some attentions."""

    edit: EditMask
    sites: Sequence[Site]

    @property
    def is_local(self) -> bool:
        """See `are_local`."""
        return self.edit.stack == "encoder"

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """See Hook."""
        if point[1:] not in self.sites:
            return value
        if point.name in _MASKS:
            removed = _MASKS[point.name] in self.edit.without
            return torch.ones_like(value) if removed and value is not None else value
        if point.name == "mask":
            return edited_mask(self.edit, value, context["scores"], context["padding_mask"])
        return value

    def after(self, n_read: int) -> EditedMask:
        """See `continued`."""

        def moved(cells: Sequence[Cell]) -> list[Cell]:
            later = [cell for cell in cells if all(at is None or at >= n_read for at in cell)]
            return [(_less(query, n_read), _less(key, n_read)) for query, key in later]

        edit = replace(self.edit, allow=moved(self.edit.allow), forbid=moved(self.edit.forbid))
        return replace(self, edit=edit)


class Replacement(NamedTuple):
    """values, used where `where`: z (B, H, T, D) and (B, H, T, 1), else (B, T, C) and (B, T, 1)."""

    where: Tensor
    values: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Patched:
    """Activations of another run at one point."""

    point: Point
    replacement: Replacement
    is_local: ClassVar[bool] = True

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """See Hook."""
        if point != self.point:
            return value
        where, values = (on_device(x, value.device) for x in self.replacement)
        n = min(value.shape[-2], where.shape[-2])  # the generated text may still be shorter
        changed = torch.where(where[..., :n, :], values[..., :n, :], value[..., :n, :])
        return torch.cat([changed, value[..., n:, :]], dim=-2) if n < value.shape[-2] else changed

    def after(self, n_read: int) -> Patched:
        """See `continued`."""
        where, values = (x[..., n_read:, :] for x in self.replacement)
        return replace(self, replacement=Replacement(where, values))


@dataclass(slots=True, eq=False)
class ActivationCache:
    """Records activations that can be patched into another run.

    activations: by point, z, mlp_out and resid_post.
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
    """Hooks that apply these interventions; empty if there is nothing to do.

    caches: the intact network's activations by the text of each patch. Patches come first, so that
    an ablated head stays ablated. Raises ValueError for parts that the network lacks.
    """
    check_all(interventions, config)
    unique = sorted(dict.fromkeys(interventions), key=lambda each: not isinstance(each, Patch))
    hooks = [_hook_of(each, config, caches or {}) for each in unique]
    return tuple(hook for hook in hooks if hook is not None)


def are_local(hooks: Sequence[Hook]) -> bool:
    """Whether each of these hooks changes a decoder's positions from themselves and the past alone,
    so that keys and values stay as they are while a text grows."""
    return all(getattr(hook, "is_local", False) for hook in hooks)


def continued(hooks: Sequence[Hook], n_read: int) -> tuple[Hook, ...]:
    """Hooks for a pass over the tokens after the first n_read, which are in a cache or outside of
    the window: the positions of interventions count from the first token of the text."""
    if n_read == 0:
        return tuple(hooks)
    placed = Changed | Patched | EditedMask
    return tuple(hook.after(n_read) if isinstance(hook, placed) else hook for hook in hooks)


def joined(rows: Sequence[Sequence[Hook]]) -> tuple[Hook, ...]:
    """Hooks for a batch, from those of each of its texts: patches differ by row, as what they put
    in may have been computed with the row's own tokens."""

    def of_all(hooks: Sequence[Hook]) -> Hook:
        first = hooks[0]
        if not isinstance(first, Patched):
            return first
        patches = [hook.replacement for hook in hooks if isinstance(hook, Patched)]
        if all(patch.values is first.replacement.values for patch in patches):
            return first
        longest = max(patch.where.shape[-2] for patch in patches)
        where, values = (
            torch.cat([F.pad(x, (0, 0, 0, longest - x.shape[-2])) for x in tensors])
            for tensors in zip(*patches, strict=True)
        )
        return replace(first, replacement=Replacement(where, values))

    return tuple(of_all(hooks) for hooks in zip(*rows, strict=True))


def ablated_one_by_one(
    config: ModelConfig, heads: Sequence[tuple[Site, int]], by: str = "zero"
) -> AblatedHeads:
    """A hook for a batch with one row per head, in which only this head is ablated."""
    intact: dict[Site, Tensor] = {}
    for row, (site, head) in enumerate(heads):
        rows = torch.ones(len(heads), config.n_heads, 1, 1, dtype=torch.bool, device="cpu")
        intact.setdefault(site, rows)[row, head] = False
    return AblatedHeads(intact, by == "mean")


def edited_mask(
    edit: EditMask, mask: Tensor | None, scores: Tensor, padding: Tensor | None = None
) -> Tensor | None:
    """A mask with cells allowed, then forbidden; scores (B, H, Tq, Tk) give the size. padding: a
    mask of keys that are padding, which stay hidden."""
    if not (edit.allow or edit.forbid):
        return mask
    shape = (scores.shape[0], 1, *scores.shape[2:])
    full = torch.ones(shape, dtype=torch.bool, device=scores.device)
    full = full if mask is None else full & mask
    for cells, value in ((edit.allow, True), (edit.forbid, False)):
        for query, key in cells:
            full[:, :, _slice(query), _slice(key)] = value
    return full if padding is None else full & padding


def patched(patch: Patch, config: ModelConfig, cache: ActivationCache) -> Patched | None:
    """The hook of a patch; None for a patch without positions or heads."""
    point = Point(patch.part, patch.stack, patch.layer, patch.kind * (patch.part == "z"))
    values = _given(patch) if patch.values is not None else cache.activations[point]
    where = torch.zeros(values.shape[-2], dtype=torch.bool, device="cpu")
    where[list(patch.positions)] = True
    if patch.part == "z":
        chosen = torch.zeros(config.n_heads, dtype=torch.bool, device="cpu")
        chosen[list(range(config.n_heads) if patch.heads is None else patch.heads)] = True
        full = chosen[None, :, None, None] & where[None, None, :, None]
    else:
        full = where[None, :, None]
    if not bool(full.any()):
        return None
    return Patched(point, Replacement(full, values))


def _given(patch: Patch) -> Tensor:
    """The values of a patch at their positions: (1, T, C), or (1, 1 or H, T, D) for part "z"."""
    rows = torch.tensor(patch.values, dtype=torch.float32, device="cpu")
    rows = rows.movedim(0, -2)  # (P, C), or (H, P, D)
    values = rows.new_zeros(*rows.shape[:-2], max(patch.positions, default=-1) + 1, rows.shape[-1])
    values[..., list(patch.positions), :] = rows
    return values[None, None] if patch.part == "z" and values.dim() == 2 else values[None]


def _ablated(ablation: Ablate, config: ModelConfig) -> Hook:
    """The hook of an ablation."""
    stack, layer, by_mean = ablation.stack, ablation.layer, ablation.by == "mean"
    names = {"z": ["z"], "mlp_out": ["mlp_out"], "layer": ["attn_out", "mlp_out"]}[ablation.part]
    kinds = ["self", "cross"] if ablation.part == "layer" else [ablation.kind]
    points = [
        Point(name, stack, layer, kind)
        for name in names
        for kind in (kinds if name in ("z", "attn_out") else [""])
    ]
    intact = torch.ones(config.n_heads, 1, 1, dtype=torch.bool, device="cpu")
    intact[list(range(config.n_heads) if ablation.heads is None else ablation.heads)] = False

    def change(value: Tensor, is_text: Tensor | None) -> Tensor:
        heads = value if value.dim() == 4 else value[:, None]
        mean = _mean(stack, heads, is_text) if by_mean else heads.new_zeros(())
        ablated = mean.expand_as(heads)
        if value.dim() == 3:
            return ablated[:, 0]
        return torch.where(on_device(intact, value.device), value, ablated)

    is_local = not by_mean or stack == "encoder"
    return Changed(points, change, ablation.positions, is_local)


def _added(steering: Add) -> Hook:
    vector = torch.tensor(steering.vector, dtype=torch.float32, device="cpu")
    point = Point(steering.part, steering.stack, steering.layer)
    return Changed(
        [point],
        lambda value, _: value + on_device(vector, value.device).to(value.dtype),
        steering.positions,
        is_local=True,
    )


def _hook_of(
    intervention: Intervention, config: ModelConfig, caches: Mapping[str, ActivationCache]
) -> Hook | None:
    if isinstance(intervention, Patch):
        return patched(intervention, config, caches.get(intervention.text) or ActivationCache())
    if isinstance(intervention, Add):
        return _added(intervention)
    if isinstance(intervention, Break):
        return SwitchedOff(SWITCHES[intervention.what], config)
    if isinstance(intervention, EditMask):
        edits = intervention.without or intervention.allow or intervention.forbid
        return EditedMask(intervention, intervention.sites(config)) if edits else None
    return None if intervention.heads == () else _ablated(intervention, config)


def _mean(stack: str, heads: Tensor, is_text: Tensor | None) -> Tensor:
    """The mean of (B, H, T, D) up to each position, or in an encoder over the whole text."""
    share = heads.new_ones(1, 1, heads.shape[2], 1)
    if is_text is not None:
        share = is_text[:, None, :, None].to(heads.dtype)
    if stack == "decoder":
        return (heads * share).cumsum(dim=2) / share.cumsum(dim=2).clamp(min=1)
    return (heads * share).sum(dim=2, keepdim=True) / share.sum(dim=2, keepdim=True).clamp(min=1)


def _less(position: int | None, n: int) -> int | None:
    return None if position is None else position - n


def _slice(position: int | None) -> slice:
    return slice(None) if position is None else slice(position, position + 1)
