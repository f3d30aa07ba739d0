"""What the page gets of each picture of attention: the figure, and exact numbers beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer.analysis.attention_flow import joint_weights, mean_weights, rollout_weights
from transformer.messages import say
from transformer.runs.head_data import head_view
from transformer.runs.run import Batch, Run
from transformer.views.attention.flow import attention_rollout, joint_attention, mean_attention
from transformer.views.attention.grid import atlas as small_pictures
from transformer.views.attention.heatmap import LOG_FLOOR, attention_heatmap
from transformer.views.declaration import Answer


def answer_atlas(item: Run | Batch, *, stack: str, kind: str) -> Answer:
    """Small pictures of all heads: uint8 (L, H, Sq, Sk) and which pixels are masked (Sq, Sk)."""
    small = small_pictures(item, stack, kind)
    return {
        "shape": list(small.pixels.shape),
        "pixels": small.pixels,
        "masked": small.masked,
    }


def answer_heatmap(
    item: Run | Batch,
    *,
    site: str,
    head: Any,
    stage: str,
    scale: str,
    range: str,
    row: int,
    numbers: bool = False,
    cells: bool = True,
    dark: bool = False,
) -> Answer:
    """One head large, as `attention_heatmap` draws it.

    numbers: also its exact scores and mask, from which the page works out the weights. cells=False:
    a figure without its z, for a page that works that out from them too: a head is sent once.
    """
    look: dict[str, Any] = {"stage": stage, "scale": scale, "range_": range, "row": row}
    figure = attention_heatmap(item, site, head, hover=False, dark=dark, **look)
    if not cells:
        figure.data[0].z = None
    answer: Answer = {"figure": figure}
    if numbers:
        view = head_view(item, site, head, row)
        answer |= {
            "shape": list(view.scores.shape),
            "scores": view.scores,
            "allowed": np.packbits(view.allowed),
            "floor": LOG_FLOOR,
            "query_labels": list(view.query_labels),
            "key_labels": list(view.key_labels),
        }
    return answer


def answer_flow(
    item: Run,
    *,
    which: str,
    stack: str,
    kind: str = "self",
    layer: int | None = None,
    scale: str,
    range: str,
    dark: bool = False,
) -> Answer:
    """Heads put together: "mean", "rollout" or "joint", with the exact weights and the mask."""
    draw, weights = _FLOWS[which]
    place: dict[str, Any] = {"stack": stack, "layer": layer}
    if which == "mean":
        place["kind"] = kind
    elif kind != "self":
        raise ValueError(
            say(
                "{which} is defined for self-attention; got kind {kind}",
                which=which,
                kind=repr(kind),
            )
        )
    look: dict[str, Any] = {"scale": scale, "range_": range, "dark": dark}
    figure = draw(item, hover=False, **place, **look)
    return {
        "figure": figure,
        "weights": weights(item, **place).astype("float32"),
        "allowed": item.trace[stack, 0, kind].allowed[0].cpu().numpy().astype("uint8"),
        "query_labels": list(item.queries(stack)),
        "key_labels": list(item.keys(stack, kind)),
    }


_FLOWS: dict[str, tuple[Callable[..., go.Figure], Callable[..., Any]]] = {
    "mean": (mean_attention, mean_weights),
    "rollout": (attention_rollout, rollout_weights),
    "joint": (joint_attention, joint_weights),
}
