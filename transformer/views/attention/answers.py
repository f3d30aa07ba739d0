"""What the page and programs get of each picture of attention: its figure, or its exact numbers;
and one head as comma-separated values, for a spreadsheet or a data frame."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.analysis.atlas import atlas as small_pictures
from transformer.checks import check_choice
from transformer.runs.head_data import Head, SiteLike, head_view, sites_of, stored_head
from transformer.runs.run import Batch, Run
from transformer.views.attention.flow import flow_figure, flow_weights
from transformer.views.attention.heatmap import STAGES, attention_heatmap
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
    **look: Any,
) -> Answer:
    """One head large: `attention_heatmap`; or its numbers, of which a page draws every look of it.

    numbers: the mask and the scores, or the queries and keys of which the scores are made, where
    these are many fewer; the weights follow from them.
    """
    if not numbers:
        look |= {"range_": range, "row": row, "hover": False}
        return {"figure": attention_heatmap(item, site, head, **look)}
    view = head_view(item, site, head, row)
    answer, vectors = mask_answer(view.allowed, view.query_labels, view.key_labels), view.vectors
    if vectors is None or FEWER * sum(part.size for part in vectors) > view.allowed.size:
        return answer | {"scores": view.scores}
    return answer | dict(zip(("queries", "keys"), vectors, strict=True))


def mask_answer(allowed: NDArray[np.bool_], queries: Sequence[str], keys: Sequence[str]) -> Answer:
    """A mask, one bit a cell, and its tokens."""
    return {
        "shape": list(allowed.shape),
        "allowed": np.packbits(allowed),
        "query_labels": list(queries),
        "key_labels": list(keys),
    }


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
) -> Answer:
    """Heads put together, "mean", "rollout" or "joint": the figure, or the weights and the mask."""
    place = item, stack, kind, layer
    if not numbers:
        return {"figure": flow_figure(which, *place, hover=False, scale=scale, range_=range)}
    weights = flow_weights(which, *place).astype("float32")
    allowed = stored_head(item.trace, sites_of(item, stack, kind)[0], 0, 0).allowed[0].cpu().numpy()
    labels = item.queries(stack), item.keys(stack, kind)
    return mask_answer(allowed, *labels) | {"weights": weights}


def head_csv(
    run: Run | Batch, site: SiteLike, head: Head, *, stage: str = "weights", row: int = 0
) -> str:
    """A line a query, a column a key; the first line and the first column name the tokens.

    stage: "weights", "masked" (scores) or "scores"; cells that the mask hides are empty, but for
    "scores". Numbers are the trace's float32, with as many digits as tell them apart.
    A token is written `[place] label`: so every name is one of a kind, and none begins with =, +,
    - or @, which a spreadsheet would take for a formula and run.
    Raises ValueError, listing what is allowed, for an unknown site, head, stage or row.
    """
    check_choice("stage", stage, STAGES)
    view = head_view(run, site, head, row)
    values = view.weights if stage == "weights" else view.scores
    shown = np.ones_like(view.allowed) if stage == "scores" else view.allowed
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["query \\ key", *_names(view.key_labels)])
    for name, numbers, drawn in zip(_names(view.query_labels), values, shown, strict=True):
        cells = [str(number) if may else "" for number, may in zip(numbers, drawn, strict=True)]
        writer.writerow([name, *cells])
    return text.getvalue()


def _names(labels: Sequence[str]) -> list[str]:
    return [f"[{place}] {label}" for place, label in enumerate(labels)]
