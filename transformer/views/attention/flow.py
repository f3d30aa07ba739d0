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
from transformer.messages import invalid, mark, say
from transformer.network_words import attention_name
from transformer.runs.head_data import labels_of, sites_of, stored_head
from transformer.runs.run import Batch, Run
from transformer.views.attention.heatmap import RANGES, SCALES, weight_cells
from transformer.views.drawing.matrix import cell_hover, matrix_figure

_NUMBER = "<br>%{customdata:.4f}<extra></extra>"
_SUBTITLES = {
    "mean": mark("mean weight, each row sums to 1"),
    "rollout": mark("mean of heads and residual, multiplied over the layers"),
    "joint": mark("mean of heads without the residual, multiplied over the layers"),
}


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
    return flow_figure("mean", run, stack, kind, layer, **look)


def attention_rollout(
    run: Run | Batch, stack: str, layer: int | None = None, **look: Unpack[HeatmapOptions]
) -> go.Figure:
    """Attention rollout of a stack's self-attention, see `rollout_weights`; errors alike."""
    return flow_figure("rollout", run, stack, layer=layer, **look)


def joint_attention(
    run: Run | Batch, stack: str, layer: int | None = None, **look: Unpack[HeatmapOptions]
) -> go.Figure:
    """Joint attention of a stack's self-attention, see `joint_weights`; errors alike."""
    return flow_figure("joint", run, stack, layer=layer, **look)


def flow_weights(
    which: str, run: Run | Batch, stack: str, kind: str = "self", layer: int | None = None,
    row: int = 0,
) -> Weights:  # fmt: skip
    """Those of "mean", "rollout" or "joint"; errors as the functions of their names."""
    if which == "mean":
        return mean_weights(run, stack, kind, layer, row)
    if kind != "self":
        raise invalid(
            "{which} is defined for self-attention; got kind {kind}", which=which, kind=repr(kind)
        )
    return (rollout_weights if which == "rollout" else joint_weights)(run, stack, layer, row)


def flow_figure(
    which: str,
    run: Run | Batch,
    stack: str,
    kind: str = "self",
    layer: int | None = None,
    *,
    scale: str = "linear",
    range_: str = "fixed",
    row: int = 0,
    dark: bool = False,
    hover: bool = True,
) -> go.Figure:
    """Axes, hatching and colours of `attention_heatmap`; meta holds the labels and the picture."""
    shown = flow_weights(which, run, stack, kind, layer, row).astype(np.float32)
    check_choice("scale", scale, SCALES)
    check_choice("range_", range_, RANGES)
    site = sites_of(run, stack, kind)[0]
    allowed = stored_head(run.trace, site, row, 0).allowed[0].cpu().numpy()
    queries, keys = labels_of(run, site, row)
    told = cell_hover(queries, keys, _NUMBER, shown) if hover else {"hoverinfo": "none"}
    return matrix_figure(
        weight_cells(shown, allowed, scale, range_, **told),
        _title(which, run, stack, kind, layer),
        say(_SUBTITLES[which]),
        queries,
        keys,
        dark=dark,
        meta={
            "picture": which, "stack": stack, "kind": kind,
            "scale": scale, "range": range_, "row": row,
        },
    )  # fmt: skip


def _title(which: str, run: Run | Batch, stack: str, kind: str, layer: int | None) -> str:
    """With the layers that are averaged or multiplied: one or all, or those up to `layer`."""
    attention = attention_name(stack, kind)
    if which == "mean":
        layers = say("all layers") if layer is None else say("layer {layer}", layer=layer)
        return say("Mean of all heads, {attention}, {which}", attention=attention, which=layers)
    title = say("Attention rollout") if which == "rollout" else say("Joint attention")
    last = len(sites_of(run, stack, "self")) - 1 if layer is None else layer
    layers = say("layer 0") if last == 0 else say("layers 0 to {last}", last=last)
    return say("{title}, {attention}, {layers}", title=title, attention=attention, layers=layers)
