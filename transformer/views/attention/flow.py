"""Many heads combined as one heatmap of query x key: their mean, rollout, or joint attention."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
import plotly.graph_objects as go

from transformer.analysis.attention_flow import flow_allowed, flow_weights
from transformer.checks import check_choice
from transformer.messages import mark, say
from transformer.network_words import attention_name
from transformer.runs.batch import Batch
from transformer.runs.head_data import head_view, sites_of
from transformer.runs.run import Run
from transformer.views.attention.heatmap import (
    COMBINED,
    NUMBERS,
    RANGE,
    RANGES,
    SCALE,
    SCALES,
    head_frame,
    mask_answer,
    weight_cells,
)
from transformer.views.declaration import Answer
from transformer.views.drawing.matrix import cell_hover, matrix_figure
from transformer.views.parameters import KIND, ROW, STACK, Choice, Int

WHICH = Choice(
    title=mark("Combined as"),
    options={
        "mean": mark("Mean of heads"),
        "rollout": mark("Rollout"),
        "joint": mark("Joint attention"),
    },
    default="mean",
    link="which",
)
_SUBTITLES = {
    "mean": "mean weight, each row sums to 1",
    "rollout": "mean of heads and residual, multiplied over the layers",
    "joint": "mean of heads without the residual, multiplied over the layers",
}


def attention_flow(
    run: Run | Batch,
    stack: str,
    which: str = "mean",
    kind: str = "self",
    layer: int | None = None,
    *,
    scale: str = "linear",
    range_: str = "fixed",
    row: int = 0,
    hover: bool = True,
) -> go.Figure:
    """Many heads combined as one heatmap, see `flow_weights`; meta holds the labels and `which`.

    scale, range_, row, hover: as in `attention_heatmap`. Errors as in `flow_weights`.
    """
    flow = flow_weights(run, stack, which, kind, layer, row).astype(np.float32)
    check_choice("scale", scale, SCALES)
    check_choice("range_", range_, RANGES)
    view = head_view(run, sites_of(run, stack, kind)[0], 0, row)
    labels = view.query_labels, view.key_labels
    hovers = cell_hover(*labels, COMBINED, flow) if hover else {"hoverinfo": "none"}
    return matrix_figure(
        weight_cells(
            flow, flow_allowed(run, stack, which, kind, layer, row), scale, range_, **hovers
        ),
        _title(which, run, stack, kind, layer),
        _SUBTITLES[which],
        *labels,
        meta={
            "which": which, "stack": stack, "kind": kind,
            "scale": scale, "range": range_, "row": row,
        },
    )  # fmt: skip


def _title(which: str, run: Run | Batch, stack: str, kind: str, layer: int | None) -> str:
    """A title that names the layers that are averaged or multiplied."""
    attention = attention_name(stack, kind)
    if which == "mean":
        layers = "all layers" if layer is None else say("layer {layer}", layer=layer)
        return f"Mean of all heads, {attention}, {layers}"
    title = "Attention rollout" if which == "rollout" else "Joint attention"
    last = len(sites_of(run, stack, "self")) - 1 if layer is None else layer
    layers = "layer 0" if last == 0 else f"layers 0 to {last}"
    return f"{title}, {attention}, {layers}"


def answer_flow(
    item: Run | Batch,
    *,
    stack: Annotated[str, STACK],
    which: Annotated[str, replace(WHICH, use="request")],
    kind: Annotated[str, KIND],
    layer: Annotated[int | None, Int(title="Layer", use="selection")],
    scale: Annotated[str, SCALE],
    range: Annotated[str, RANGE],
    row: Annotated[int, ROW],
    numbers: Annotated[bool, NUMBERS],
) -> Answer:
    """Many heads combined: the figure of `attention_flow`, or its `head_frame`, the weights and the
    mask."""
    place = item, stack, which, kind, layer
    if not numbers:
        figure = attention_flow(*place, hover=False, scale=scale, range_=range, row=row)
        return {"figure": figure}
    weights = flow_weights(*place, row).astype("float32")
    view = head_view(item, sites_of(item, stack, kind)[0], 0, row)
    frame = head_frame(view.query_labels, view.key_labels, combined=True)
    return mask_answer(flow_allowed(*place, row)) | {"figure": frame, "weights": weights}
