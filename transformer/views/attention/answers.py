"""What the page and programs get of each picture of attention: its figure, or its exact numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.analysis.atlas import atlas as small_pictures
from transformer.analysis.attention_flow import joint_weights, mean_weights, rollout_weights
from transformer.messages import invalid
from transformer.runs.head_data import HeadView, head_view, sites_of, stored_head
from transformer.runs.run import Batch, Run
from transformer.views.attention.flow import attention_rollout, joint_attention, mean_attention
from transformer.views.attention.heatmap import attention_heatmap
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
    row: int,
    range: str,
    numbers: bool = False,
    dark: bool = False,
    **look: Any,
) -> Answer:
    """One head large: `attention_heatmap`; or its numbers, of which a page draws every look of it.

    numbers: the mask and the scores, or the queries and keys of which the scores are made, where
    these are many fewer; the weights follow from them.
    """
    if not numbers:
        look |= {"range_": range, "row": row, "dark": dark, "hover": False}
        return {"figure": attention_heatmap(item, site, head, **look)}
    view = head_view(item, site, head, row)
    labels = view.query_labels, view.key_labels
    return _masked(view.allowed, *labels) | _scores_or_vectors(view)


def _masked(
    allowed: NDArray[np.bool_], queries: Sequence[str], keys: Sequence[str]
) -> dict[str, Any]:
    return {
        "shape": list(allowed.shape),
        "allowed": np.packbits(allowed),
        "query_labels": list(queries),
        "key_labels": list(keys),
    }


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
    numbers: bool = False,
    dark: bool = False,
) -> Answer:
    """Heads put together, "mean", "rollout" or "joint": the figure, or the weights and the mask."""
    draw, weights = _FLOWS[which]
    place: dict[str, Any] = {"stack": stack, "layer": layer}
    if which == "mean":
        place["kind"] = kind
    elif kind != "self":
        raise invalid(
            "{which} is defined for self-attention; got kind {kind}", which=which, kind=repr(kind)
        )
    if not numbers:
        return {"figure": draw(item, hover=False, **place, scale=scale, range_=range, dark=dark)}
    allowed = _allowed(item, stack, kind)
    found = {"weights": weights(item, **place).astype("float32")}
    return _masked(allowed, item.queries(stack), item.keys(stack, kind)) | found


def _allowed(item: Run, stack: str, kind: str) -> NDArray[np.bool_]:
    site = sites_of(item, stack, kind)[0]
    found: NDArray[np.bool_] = stored_head(item.trace, site, 0, 0).allowed[0].cpu().numpy()
    return found


_FLOWS: dict[str, tuple[Callable[..., go.Figure], Callable[..., Any]]] = {
    "mean": (mean_attention, mean_weights),
    "rollout": (attention_rollout, rollout_weights),
    "joint": (joint_attention, joint_weights),
}
