"""Attention weights of many heads put together: their mean, rollout, and their product.

All three only put attention weights together. What the values carry, what each head writes and what
the feed-forward layers do is left out, so none of them shows what a prediction was made from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.checks import is_whole, shortened
from transformer.messages import invalid
from transformer.runs.head_data import array, check_row, sites_of
from transformer.runs.run import Batch, Run

Weights = NDArray[np.float64]


def mean_weights(
    run: Run | Batch, stack: str, kind: str, layer: int | None = None, row: int = 0
) -> Weights:
    """(Tq, Tk) float64: the mean weight over all heads of a layer, of all layers without one.

    Raises ValueError, listing what there is, for an unknown stack, kind, layer or row.
    """
    check_row(run, row)
    layers = _layers(run, stack, kind, row)
    return np.asarray(
        layers.mean(axis=0) if layer is None else layers[_checked(layer, len(layers))]
    )


def rollout_weights(
    run: Run | Batch, stack: str, layer: int | None = None, row: int = 0
) -> Weights:
    """(T, T) float64, rows sum to 1: attention rollout of layers 0 to `layer` (None: the last).

    Each layer is half the mean of its heads and half the identity, which stands for the residual
    connection; the layers' matrices are multiplied, the first one rightmost.
    Raises ValueError as `mean_weights`.
    Source: Abnar and Zuidema 2020, section 3.
    """
    layers = _upto(run, stack, layer, row)
    return _product(0.5 * layers + 0.5 * np.eye(layers.shape[-1]))


def joint_weights(run: Run | Batch, stack: str, layer: int | None = None, row: int = 0) -> Weights:
    """(T, T) float64, rows sum to 1: the product of the mean weights of layers 0 to `layer`.

    The same without the residual connection, as if a layer's output were its attention's alone.
    Raises ValueError as `mean_weights`.
    """
    return _product(_upto(run, stack, layer, row))


def _layers(run: Run | Batch, stack: str, kind: str, row: int) -> Weights:
    """(L, Tq, Tk): the mean over the heads of each layer."""
    layers = (run.trace[site].pattern[row] for site in sites_of(run, stack, kind))
    return np.stack([array(weights).mean(axis=0, dtype=np.float64) for weights in layers])


def _upto(run: Run | Batch, stack: str, layer: int | None, row: int) -> Weights:
    check_row(run, row)
    layers = _layers(run, stack, "self", row)
    return layers if layer is None else layers[: _checked(layer, len(layers)) + 1]


def _checked(layer: Any, n_layers: int) -> int:
    if not is_whole(layer) or not 0 <= layer < n_layers:
        raise invalid(
            "layer must be a whole number from 0 to {last}, or None; got {got}",
            last=n_layers - 1,
            got=shortened(layer),
        )
    return int(layer)


def _product(layers: Weights) -> Weights:
    through = layers[0]
    for layer in layers[1:]:
        through = layer @ through
    return through
