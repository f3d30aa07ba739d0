"""Attention of many heads in one picture: their mean, rollout, and the joint map of a stack."""

from __future__ import annotations

from typing import TypedDict, Unpack

import numpy as np
import plotly.graph_objects as go

from transformer.analysis.attention_flow import (
    Weights,
    joint_weights,
    mean_weights,
    rollout_weights,
)
from transformer.checks import check_choice
from transformer.messages import say
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
from transformer.views.drawing.matrix import cell_hover, matrix_layout

_NUMBER = "<br>%{customdata:.4f}<extra></extra>"


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
    weights = rollout_weights(run, stack, layer, look.get("row", 0))
    subtitle = say("mean of heads and residual, multiplied over the layers")
    title = _of_layers(say("Attention rollout"), run, stack, layer)
    return _figure(run, "rollout", (stack, "self"), weights, title, subtitle, **look)


def joint_attention(
    run: Run | Batch, stack: str, layer: int | None = None, **look: Unpack[HeatmapOptions]
) -> go.Figure:
    """Joint attention of a stack's self-attention, see `joint_weights`; errors alike."""
    weights = joint_weights(run, stack, layer, look.get("row", 0))
    subtitle = say("mean of heads without the residual, multiplied over the layers")
    title = _of_layers(say("Joint attention"), run, stack, layer)
    return _figure(run, "joint", (stack, "self"), weights, title, subtitle, **look)


def _of_layers(title: str, run: Run | Batch, stack: str, layer: int | None) -> str:
    """The title with the layers that are multiplied: all of them, or those up to `layer`."""
    last = len(sites_of(run, stack, "self")) - 1 if layer is None else layer
    layers = say("layer 0") if last == 0 else say("layers 0 to {last}", last=last)
    attention = attention_name(stack, "self")
    return say("{title}, {attention}, {layers}", title=title, attention=attention, layers=layers)


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
        **(cell_hover(queries, keys, _NUMBER, shown) if hover else {"hoverinfo": "none"}),
    )
    meta = {
        "picture": picture, "stack": stack, "kind": kind,
        "scale": scale, "range": range_, "row": row,
    }  # fmt: skip
    layout = matrix_layout(title, subtitle, queries, keys, dark=dark, meta=meta)
    return go.Figure(data=[cells], layout=layout)
