"""Attention of many heads in one picture: their mean, rollout, and the joint map of a stack.

All three only put attention weights together. What the values carry, what each head writes and what
the feed-forward layers do is left out, so none of them shows what a prediction was made from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.figures import style
from transformer.figures.attention import (
    RANGES,
    SCALES,
    TEXT_LIMIT,
    rescale,
    top_of,
    weight_colours,
)
from transformer.figures.data import array, check_choice, check_row, labels_of, records_of
from transformer.figures.matrix import matrix_layout
from transformer.inference.run import Batch, Run

Weights = NDArray[np.float64]

_HOVER = "query %{y:d}, key %{x:d}: %{text}%{customdata:.4f}<extra></extra>"


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


class Look(TypedDict, total=False):
    """How weights are drawn, and whose: arguments and defaults of `attention_heatmap`."""

    scale: str
    range_: str
    row: int
    dark: bool
    hover: bool


def mean_attention(
    run: Run | Batch,
    stack: str,
    kind: str = "self",
    layer: int | None = None,
    **look: Unpack[Look],
) -> go.Figure:
    """The mean of all heads of a layer; of all layers without one. Errors as `mean_weights`."""
    weights = mean_weights(run, stack, kind, layer, look.get("row", 0))
    which = "all layers" if layer is None else f"layer {layer}"
    title = f"Mean of all heads, {stack} {kind}-attention, {which}"
    subtitle = "mean weight, each row sums to 1"
    return _figure(run, "mean", (stack, kind), weights, title, subtitle, **look)


def attention_rollout(
    run: Run | Batch, stack: str, layer: int | None = None, **look: Unpack[Look]
) -> go.Figure:
    """Attention rollout of a stack's self-attention, see `rollout_weights`; errors alike."""
    return _product_figure(run, "rollout", stack, layer, look)


def joint_attention(
    run: Run | Batch, stack: str, layer: int | None = None, **look: Unpack[Look]
) -> go.Figure:
    """Joint attention of a stack's self-attention, see `joint_weights`; errors alike."""
    return _product_figure(run, "joint", stack, layer, look)


class _Product(NamedTuple):
    weights: Callable[[Run | Batch, str, int | None, int], Weights]
    title: str
    subtitle: str


_PRODUCTS = {
    "rollout": _Product(
        rollout_weights,
        "Attention rollout",
        "mean of heads and residual, multiplied over the layers",
    ),
    "joint": _Product(
        joint_weights,
        "Joint attention",
        "mean of heads without the residual, multiplied over the layers",
    ),
}


def _product_figure(
    run: Run | Batch, picture: str, stack: str, layer: int | None, look: Look
) -> go.Figure:
    """One of `_PRODUCTS`; the title says which layers are multiplied."""
    drawn = _PRODUCTS[picture]
    weights = drawn.weights(run, stack, layer, look.get("row", 0))
    last = len(records_of(run, stack, "self")) - 1 if layer is None else layer
    layers = "layer 0" if last == 0 else f"layers 0 to {last}"
    title = f"{drawn.title}, {stack} self-attention, {layers}"
    return _figure(run, picture, (stack, "self"), weights, title, drawn.subtitle, **look)


def _layers(run: Run | Batch, stack: str, kind: str, row: int) -> Weights:
    """(L, Tq, Tk): the mean over the heads of each layer."""
    records = records_of(run, stack, kind)
    return np.stack([array(r.weights[row]).mean(axis=0, dtype=np.float64) for r in records])


def _upto(run: Run | Batch, stack: str, layer: int | None, row: int) -> Weights:
    check_row(run, row)
    layers = _layers(run, stack, "self", row)
    return layers if layer is None else layers[: _checked(layer, len(layers)) + 1]


def _checked(layer: Any, n_layers: int) -> int:
    whole = isinstance(layer, int) and not isinstance(layer, bool)
    if not whole or not 0 <= layer < n_layers:
        raise ValueError(
            f"layer must be a whole number from 0 to {n_layers - 1}, or None; got {layer!r}"
        )
    return int(layer)


def _product(layers: Weights) -> Weights:
    through = layers[0]
    for layer in layers[1:]:
        through = layer @ through
    return through


def _figure(
    run: Run | Batch,
    picture: str,
    place: tuple[str, str],
    weights: Weights,
    title: str,
    subtitle: str,
    *,
    scale: str = "linear",
    range_: str = "fixed",
    row: int = 0,
    dark: bool = False,
    hover: bool = True,
) -> go.Figure:
    """Axes, hatching and colours of `attention_heatmap`; meta holds the labels and the picture."""
    check_choice("scale", scale, SCALES)
    check_choice("range_", range_, RANGES)
    stack, kind = place
    record = records_of(run, stack, kind)[0]
    allowed = record.allowed[row].cpu().numpy()
    queries, keys = labels_of(run, record, row)
    shown = weights.astype(np.float32)
    cells = go.Heatmap(
        z=np.where(allowed, rescale(shown, scale), np.float32(np.nan)),
        hoverongaps=True,
        **weight_colours(scale, top_of(shown, allowed, range_)),
        **(_hover(shown, queries, keys) if hover else {"hoverinfo": "none"}),
    )
    meta = {
        "picture": picture, "stack": stack, "kind": kind,
        "scale": scale, "range": range_, "row": row,
    }  # fmt: skip
    layout = matrix_layout(title, subtitle, queries, keys, dark=dark, meta=meta)
    return go.Figure(data=[cells], layout=layout)


def _hover(
    weights: NDArray[np.float32], queries: tuple[str, ...], keys: tuple[str, ...]
) -> dict[str, Any]:
    if max(weights.shape) > TEXT_LIMIT:
        return {"customdata": weights, "hovertemplate": _HOVER.replace("%{text}", "")}
    labels = [style.label(text, style.HOVER_CHARACTERS) for text in keys]
    asking = [style.label(text, style.HOVER_CHARACTERS) for text in queries]
    text = [[f"{query} from {key}<br>" for key in labels] for query in asking]
    return {"customdata": weights, "hovertemplate": _HOVER, "text": text}
