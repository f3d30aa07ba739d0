"""Attention: all heads small, one head large, heads put together, and lines between tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer import figures
from transformer.figures.attention import LOG_FLOOR
from transformer.figures.data import check_choice, head_view
from transformer.figures.flow import joint_weights, mean_weights, rollout_weights
from transformer.ui.store import RunStore
from transformer.ui.views.answers import Answer, as_json, binary


def atlas(store: RunStore, *, run: str, stack: str, kind: str) -> Answer:
    """Small pictures of all heads: uint8 (L, H, Sq, Sk) and which pixels are masked (Sq, Sk)."""
    small = figures.atlas(store.any(run), stack, kind)
    return {
        "shape": list(small.pixels.shape),
        "pixels": binary(small.pixels),
        "masked": binary(small.masked),
    }


def heatmap(
    store: RunStore,
    *,
    run: str,
    site: str,
    head: int,
    numbers: bool = False,
    cells: bool = True,
    **look: Any,
) -> Answer:
    """One head large; look: stage, scale, range_, row and dark of `attention_heatmap`.

    numbers: also its exact scores and mask, from which the page works out the weights. cells=False:
    a figure without its z, for a page that works that out from them too: a head is sent once.
    """
    item = store.any(run)
    figure = figures.attention_heatmap(item, site, head, hover=False, **look)
    if not cells:
        figure.data[0].z = None
    answer: Answer = {"figure": as_json(figure)}
    if numbers:
        view = head_view(item, site, head, look.get("row", 0))
        answer |= {
            "shape": list(view.scores.shape),
            "scores": binary(view.scores),
            "allowed": binary(np.packbits(view.allowed)),
            "floor": LOG_FLOOR,
            "query_labels": list(view.query_labels),
            "key_labels": list(view.key_labels),
        }
    return answer


def flow(
    store: RunStore,
    *,
    run: str,
    which: str,
    stack: str,
    kind: str = "self",
    layer: int | None = None,
    **look: Any,
) -> Answer:
    """Heads put together: "mean", "rollout" or "joint", with the exact weights and the mask.

    look: scale, range_ and dark of `attention_heatmap`.
    """
    item = store.run(run)
    check_choice("which", which, tuple(_FLOWS))
    draw, weights = _FLOWS[which]
    place: dict[str, Any] = {"stack": stack, "layer": layer}
    if which == "mean":
        place["kind"] = kind
    elif kind != "self":
        raise ValueError(f"{which} is defined for self-attention; got {kind}-attention")
    figure = draw(item, hover=False, **place, **look)
    return {
        "figure": as_json(figure),
        "weights": binary(weights(item, **place).astype("float32")),
        "allowed": binary(item.trace[stack, 0, kind].allowed[0].cpu().numpy().astype("uint8")),
        "query_labels": list(item.queries(stack)),
        "key_labels": list(item.keys(stack, kind)),
    }


_FLOWS: dict[str, tuple[Callable[..., go.Figure], Callable[..., Any]]] = {
    "mean": (figures.mean_attention, mean_weights),
    "rollout": (figures.attention_rollout, rollout_weights),
    "joint": (figures.joint_attention, joint_weights),
}


def lines(
    store: RunStore,
    *,
    run: str,
    site: str,
    head: int,
    query: int | None = None,
    threshold: float = 0.05,
    dark: bool = False,
) -> Answer:
    """One head as lines from a query (or from all of them) to the keys that it reads."""
    figure = figures.query_lines(store.any(run), site, head, query, threshold, dark=dark)
    return {"figure": as_json(figure)}


def alignment(
    store: RunStore,
    *,
    run: str,
    layer: int | str,
    head: int | str,
    by: str = "written",
    dark: bool = False,
) -> Answer:
    """Cross-attention as lines from each target token to the source token that it read most."""
    figure = figures.alignment(store.any(run), layer, head, by=by, dark=dark)
    return {"figure": as_json(figure)}
