"""Attention of many heads in one picture: their mean, rollout, and the joint map of a stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.analysis.attention_flow import (
    Weights,
    joint_weights,
    mean_weights,
    rollout_weights,
)
from transformer.checks import check_choice
from transformer.messages import mark, say
from transformer.network_words import attention_name
from transformer.runs.head_data import labels_of, sites_of, stored_head
from transformer.runs.run import Batch, Run
from transformer.views.attention.heatmap import (
    RANGES,
    SCALES,
    rescale,
    top_of,
    weight_colours,
)
from transformer.views.drawing import style
from transformer.views.drawing.matrix import TEXT_LIMIT, matrix_layout

_HOVER = mark("query %{y:d}, key %{x:d}: %{text}%{customdata:.4f}<extra></extra>")


class HeatmapOptions(TypedDict, total=False):
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
    **look: Unpack[HeatmapOptions],
) -> go.Figure:
    """The mean of all heads of a layer; of all layers without one. Errors as `mean_weights`."""
    weights = mean_weights(run, stack, kind, layer, look.get("row", 0))
    which = say("all layers") if layer is None else say("layer {layer}", layer=layer)
    place = attention_name(stack, kind)
    title = say("Mean of all heads, {attention}, {which}", attention=place, which=which)
    subtitle = say("mean weight, each row sums to 1")
    return _figure(run, "mean", (stack, kind), weights, title, subtitle, **look)


def attention_rollout(
    run: Run | Batch, stack: str, layer: int | None = None, **look: Unpack[HeatmapOptions]
) -> go.Figure:
    """Attention rollout of a stack's self-attention, see `rollout_weights`; errors alike."""
    return _product_figure(run, "rollout", stack, layer, look)


def joint_attention(
    run: Run | Batch, stack: str, layer: int | None = None, **look: Unpack[HeatmapOptions]
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
        mark("Attention rollout"),
        mark("mean of heads and residual, multiplied over the layers"),
    ),
    "joint": _Product(
        joint_weights,
        mark("Joint attention"),
        mark("mean of heads without the residual, multiplied over the layers"),
    ),
}


def _product_figure(
    run: Run | Batch, picture: str, stack: str, layer: int | None, look: HeatmapOptions
) -> go.Figure:
    """One of `_PRODUCTS`; the title says which layers are multiplied."""
    drawn = _PRODUCTS[picture]
    weights = drawn.weights(run, stack, layer, look.get("row", 0))
    last = len(sites_of(run, stack, "self")) - 1 if layer is None else layer
    layers = say("layer 0") if last == 0 else say("layers 0 to {last}", last=last)
    title = say(
        "{title}, {attention}, {layers}",
        title=say(drawn.title),
        attention=attention_name(stack, "self"),
        layers=layers,
    )
    return _figure(run, picture, (stack, "self"), weights, title, say(drawn.subtitle), **look)


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
    site = sites_of(run, stack, kind)[0]
    allowed = stored_head(run.trace, site, row, 0).allowed[0].cpu().numpy()
    queries, keys = labels_of(run, site, row)
    shown = weights.astype(np.float32)
    cells = go.Heatmap(
        z=np.where(allowed, rescale(shown, scale), np.float32(np.nan)),
        hoverongaps=True,
        **weight_colours(scale, top_of(shown, allowed, range_), dark=dark),
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
        return {"customdata": weights, "hovertemplate": say(_HOVER).replace("%{text}", "")}
    labels = [style.hover(text) for text in keys]
    asking = [style.hover(text) for text in queries]
    text = [
        [say("{query} from {key}<br>", query=query, key=key) for key in labels] for query in asking
    ]
    return {"customdata": weights, "hovertemplate": say(_HOVER), "text": text}
