"""The masks of a batch, and the weights that the same scores would give without one of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from transformer.checks import check_choice
from transformer.model.config import ModelConfig
from transformer.model.functional import masked_softmax, position_mask
from transformer.model.sites import Site
from transformer.runs.batch import Batch
from transformer.runs.head_data import Head, HeadView, SiteLike, check_row, head_view

BoolArray = NDArray[np.bool_]
Doubles = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Removal:
    """One head of one sentence, with one of its masks left out of the softmax.

    weights: (Tq, Tk) float64 without the mask, each row sums to 1; real: (Tq, Tk), the network's
    own. freed: (Tq, Tk) bool, the cells that only this mask had hidden. text: (Tq,) bool, which
    queries are text and not padding.
    """

    which: str
    view: HeadView
    weights: Doubles
    freed: BoolArray
    text: BoolArray

    @property
    def real(self) -> Doubles:
        """(Tq, Tk): the weights that the network used."""
        return self.view.weights.astype(np.float64)

    @property
    def freed_weight(self) -> Doubles:
        """(Tq,): how much of each query's weight would go to the freed keys."""
        return np.where(self.freed, self.weights, 0).sum(axis=1)

    @property
    def mean_freed_weight(self) -> float:
        """The mean of `freed_weight` over the queries that are text: from 0 to 1."""
        return float(self.freed_weight[self.text].mean())


def acting_masks(config: ModelConfig, site: Site) -> tuple[str, ...]:
    """The masks that act in this attention. "causal" is the mask by position: in a
    decoder's self-attention, and in an encoder's layers with a window."""
    is_self, slides = site.kind == "self", config.window_of(site.layer) is not None
    causal = is_self and (site.stack == "decoder" or slides)
    return ("padding", "causal") if causal else ("padding",)


def masks_used(batch: Batch, site: Site) -> tuple[str, ...]:
    """The acting masks, without the padding mask if the network read padding."""
    acting = acting_masks(batch.config, site)
    record = batch.trace[site]
    real = batch.is_token("encoder" if site.kind == "cross" else site.stack)
    read = bool((record.allowed & ~real[:, None, :]).any())
    return tuple(name for name in acting if name != "padding" or not read)


def without_mask(batch: Batch, row: int, site: SiteLike, head: Head, which: str) -> Removal:
    """The weights that this head's own scores give when one mask is left out.

    row: which sentence; which: "padding" or "causal", one that acts in this attention. head "mean"
    averages the heads' weights. The scores stay as the network computed them. Raises ValueError for
    an unknown row, site or head and for a mask that does not act here.
    """
    view = head_view(batch, site, head, row)
    used = masks_used(batch, view.site)
    check_choice("which", which, used)
    masks = masks_of(batch, row, view.site.stack, view.site.kind, view.site.layer)
    allowed = np.ones_like(view.allowed)
    for name in used:
        if name != which:
            allowed &= masks[name]
    scores = batch.trace[view.site].scores[row].double().cpu()
    chosen = scores if head == "mean" else scores[int(head)][None]
    weights = masked_softmax(chosen, torch.from_numpy(allowed))
    return Removal(
        which=which,
        view=view,
        weights=weights.mean(dim=0).numpy(),
        freed=allowed & ~view.allowed,
        text=batch.is_token(view.site.stack)[row].cpu().numpy(),
    )


def weight_on_padding(batch: Batch, row: int, site: SiteLike, head: Head) -> float:
    """The share, from 0 to 1, of its weights that a head gave to padding: the mean over the
    queries that are text.

    Raises ValueError for an unknown row, site or head.
    """
    view = head_view(batch, site, head, row)
    keys = batch.is_token("encoder" if view.site.kind == "cross" else view.site.stack)[row]
    text = batch.is_token(view.site.stack)[row].cpu().numpy()
    return float(view.weights[text][:, ~keys.cpu().numpy()].sum(axis=1).mean())


def masks_of(
    batch: Batch, row: int, stack: str | None = None, kind: str = "self", layer: int = 0
) -> dict[str, BoolArray]:
    """The masks of one sentence in one attention, by default the first recorded.

    Returns "padding", "causal" and "combined", each (Tq, Tk) bool, True = may attend. combined is
    what the network used, from the trace; padding and causal are rebuilt. Causal is what positions
    hide: the future, and what is outside a window. Padding allows everything where the network
    read padding.
    Raises ValueError for a row or an attention that the batch does not have.
    """
    check_row(batch, row)
    stack = stack or batch.trace.kinds()[0][0]
    record = batch.trace[batch.trace.find(f"{stack}.{layer}.{kind}")]
    shape = record.pattern.shape[-2:]
    real = batch.is_token("encoder" if kind == "cross" else stack)[row]
    if "padding" not in masks_used(batch, record.site):
        real = torch.ones_like(real)
    causal = None
    if kind == "self":
        window = batch.config.window_of(record.site.layer)
        causal = position_mask(shape[0], shape[1], causal=stack == "decoder", window=window)
    return {
        "padding": np.broadcast_to(real.cpu().numpy(), shape).copy(),
        "causal": np.ones(shape, dtype=np.bool_) if causal is None else causal.numpy(),
        "combined": record.allowed[row].cpu().numpy(),
    }
