"""Attention weights of many heads put together: their mean, rollout, and their product.

Heads that are switched off read nothing: they are left out of every mean.

All three only put attention weights together. What the values carry, what each head writes and what
the feed-forward layers do is left out, so none of them shows what a prediction was made from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.checks import check_whole
from transformer.runs.head_data import array, check_row, sites_of, switched_off
from transformer.runs.run import Batch, Run

Weights = NDArray[np.float64]


def mean_weights(
    run: Run | Batch, stack: str, kind: str, layer: int | None = None, row: int = 0
) -> Weights:
    """(Tq, Tk) float64: the mean weight over all heads of a layer, of all layers without one.

    Raises ValueError, listing what there is, for an unknown stack, kind, layer or row.
    """
    check_row(run, row)
    layers, counts = _layers(run, stack, kind, row)
    if layer is not None:
        return np.asarray(layers[_checked(layer, len(layers))])
    share = counts / max(1, counts.sum())
    return np.asarray((share[:, None, None] * layers).sum(axis=0))


def rollout_weights(
    run: Run | Batch, stack: str, layer: int | None = None, row: int = 0
) -> Weights:
    """(T, T) float64, rows sum to 1: attention rollout of layers 0 to `layer` (None: the last).

    Each layer is half the mean of its heads and half the identity, which stands for the residual
    connection (the identity alone where all its heads are switched off); the layers' matrices are
    multiplied, the first one rightmost.
    Raises ValueError as `mean_weights`.
    Source: Abnar and Zuidema 2020, section 3.
    """
    layers, counts = _upto(run, stack, layer, row)
    half = np.where(counts > 0, 0.5, 0.0)[:, None, None]
    return _product(half * layers + (1 - half) * np.eye(layers.shape[-1]))


def joint_weights(run: Run | Batch, stack: str, layer: int | None = None, row: int = 0) -> Weights:
    """(T, T) float64, rows sum to 1: the product of the mean weights of layers 0 to `layer`.

    The same without the residual connection, as if a layer's output were its attention's alone.
    Raises ValueError as `mean_weights`.
    """
    return _product(_upto(run, stack, layer, row)[0])


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


def _upto(run: Run | Batch, stack: str, layer: int | None, row: int) -> tuple[Weights, Weights]:
    check_row(run, row)
    layers, counts = _layers(run, stack, "self", row)
    count = len(layers) if layer is None else _checked(layer, len(layers)) + 1
    return layers[:count], counts[:count]


def _checked(layer: Any, n_layers: int) -> int:
    return check_whole("layer", layer, 0, n_layers - 1)


def _product(layers: Weights) -> Weights:
    through = layers[0]
    for layer in layers[1:]:
        through = layer @ through
    return through
