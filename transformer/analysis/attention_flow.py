"""Attention weights of many heads combined: their mean, attention rollout, or joint attention.

Ablated heads are left out of every mean.

All three combine attention weights alone. The values, what each head writes and the feed-forward
layers are left out, so none of them shows what a prediction was made from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transformer.checks import check_choice, check_whole, shortened
from transformer.runs.batch import Batch
from transformer.runs.head_data import array, check_row, head_view, sites_of, switched_off
from transformer.runs.run import Run

Weights = NDArray[np.float64]
FLOWS = ("mean", "rollout", "joint")


def flow_weights(
    run: Run | Batch,
    stack: str,
    which: str = "mean",
    kind: str = "self",
    layer: int | None = None,
    row: int = 0,
) -> Weights:
    """Combine all heads of a stack's attention: (Tq, Tk) float64, each row sums to 1.

    which: "mean", the mean weight over all heads of `layer`, or of all layers. For self-attention
    also "rollout", from layer 0 to `layer` (None: the last): each layer is half the mean of its
    heads and half the identity, in place of the residual connection (the identity alone if all its
    heads are switched off); the layers' matrices are multiplied, the first one rightmost. "joint":
    the same without the residual connection. Raises ValueError, listing what is allowed, for an
    unknown stack, which, kind, layer or row. Source: Abnar and Zuidema 2020, section 3.
    """
    check_row(run, row)
    check_choice("which", which, FLOWS)
    if which != "mean" and kind != "self":
        raise ValueError(f"{which} is defined for self-attention; got kind {shortened(kind)}")
    layers, counts = _layers(run, stack, kind, row)
    if layer is not None:
        check_whole("layer", layer, 0, len(layers) - 1)
    if which == "mean":
        if layer is not None:
            return np.asarray(layers[layer])
        share = counts / max(1, counts.sum())
        return np.asarray((share[:, None, None] * layers).sum(axis=0))
    last = len(layers) if layer is None else layer + 1
    layers, counts = layers[:last], counts[:last]
    if which == "rollout":
        half = np.where(counts > 0, 0.5, 0.0)[:, None, None]
        layers = half * layers + (1 - half) * np.eye(layers.shape[-1])
    return _product(layers)


def flow_allowed(
    run: Run | Batch,
    stack: str,
    which: str = "mean",
    kind: str = "self",
    layer: int | None = None,
    row: int = 0,
) -> NDArray[np.bool_]:
    """(Tq, Tk), True = some layer of the mean may attend, or some path through the layers of a
    product may; False for what no token reads, such as padding. Arguments as in `flow_weights`."""
    masks = [head_view(run, site, 0, row).allowed for site in sites_of(run, stack, kind)]
    if which == "mean":
        return masks[layer] if layer is not None else np.logical_or.reduce(masks)
    residual = np.diag(masks[0].any(axis=0)) if which == "rollout" else False
    through = masks[0] | residual
    for mask in masks[1 : None if layer is None else layer + 1]:
        through = (mask | residual).astype(np.float32) @ through.astype(np.float32) > 0
    return through


def _layers(run: Run | Batch, stack: str, kind: str, row: int) -> tuple[Weights, Weights]:
    """(L, Tq, Tk): the mean over the heads of each layer that read, 0 where none does; (L,): how
    many do."""
    means, counts = [], []
    for site in sites_of(run, stack, kind):
        weights = array(run.trace[site].pattern[row])
        if off := switched_off(run, site):
            weights = np.delete(weights, off, axis=0)
        means.append(weights.sum(axis=0, dtype=np.float64) / max(1, len(weights)))
        counts.append(len(weights))
    return np.stack(means), np.array(counts, dtype=np.float64)


def _product(layers: Weights) -> Weights:
    through = layers[0]
    for layer in layers[1:]:
        through = layer @ through
    return through
