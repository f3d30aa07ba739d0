"""What the page gets of each picture of attention: the figure, and exact numbers beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.analysis.attention_flow import joint_weights, mean_weights, rollout_weights
from transformer.messages import invalid
from transformer.runs.head_data import HeadView, head_view, sites_of
from transformer.runs.run import Batch, Run
from transformer.runs.stored_head import stored_head
from transformer.views.attention.flow import attention_rollout, joint_attention, mean_attention
from transformer.views.attention.grid import atlas as small_pictures
from transformer.views.attention.heatmap import LOG_FLOOR, check_look, heatmap_of
from transformer.views.declaration import Answer

FEWER = 2  # queries and keys are sent in place of so many times as many scores, or more


def answer_atlas(item: Run | Batch, *, stack: str, kind: str) -> Answer:
    """Small pictures of all heads: uint8 (L, H, Sq, Sk) and which pixels are masked (Sq, Sk)."""
    return small_pictures(item, stack, kind).answer()


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

    numbers: also its exact mask and scores, or its queries and keys, of which the scores are made,
    where these are many fewer; the page works out the weights. cells=False: a figure without its z,
    for a page that works that out from them too: a head is sent once.
    """
    check_look(stage, scale, range)
    view = head_view(item, site, head, row)
    look: dict[str, Any] = {"stage": stage, "scale": scale, "range_": range, "row": row}
    answer: Answer = {"figure": heatmap_of(view, **look, dark=dark, hover=False, cells=cells)}
    if numbers:
        answer |= _scores_or_vectors(view) | {
            "shape": list(view.allowed.shape),
            "allowed": np.packbits(view.allowed),
            "floor": LOG_FLOOR,
            "query_labels": list(view.query_labels),
            "key_labels": list(view.key_labels),
        }
    return answer


def _scores_or_vectors(view: HeadView) -> Answer:
    vectors = view.vectors
    if vectors is None or FEWER * sum(part.size for part in vectors) > view.allowed.size:
        return {"scores": view.scores}
    return dict(zip(("queries", "keys"), vectors, strict=True))


def answer_flow(
    item: Run,
    *,
    which: str,
    stack: str,
    kind: str = "self",
    layer: int | None = None,
    scale: str,
    range: str,
    numbers: bool = True,
    cells: bool = True,
    dark: bool = False,
) -> Answer:
    """Heads put together: "mean", "rollout" or "joint", with the exact weights and the mask.

    numbers, cells: as in `answer_heatmap`.
    """
    draw, weights = _FLOWS[which]
    place: dict[str, Any] = {"stack": stack, "layer": layer}
    if which == "mean":
        place["kind"] = kind
    elif kind != "self":
        raise invalid(
            "{which} is defined for self-attention; got kind {kind}", which=which, kind=repr(kind)
        )
    look: dict[str, Any] = {"scale": scale, "range_": range, "dark": dark}
    figure = draw(item, hover=False, **place, **look)
    if not cells:
        figure.data[0].z = None
    if not numbers:
        return {"figure": figure}
    return {
        "figure": figure,
        "floor": LOG_FLOOR,
        "weights": weights(item, **place).astype("float32"),
        "allowed": _allowed(item, stack, kind).astype("uint8"),
        "query_labels": list(item.queries(stack)),
        "key_labels": list(item.keys(stack, kind)),
    }


def _allowed(item: Run, stack: str, kind: str) -> NDArray[np.bool_]:
    site = sites_of(item, stack, kind)[0]
    found: NDArray[np.bool_] = stored_head(item.trace, site, 0, 0).allowed[0].cpu().numpy()
    return found


_FLOWS: dict[str, tuple[Callable[..., go.Figure], Callable[..., Any]]] = {
    "mean": (mean_attention, mean_weights),
    "rollout": (attention_rollout, rollout_weights),
    "joint": (joint_attention, joint_weights),
}
