"""Attention: all heads small, one head large, heads combined, and lines between tokens, as
figures and as numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from transformer.analysis.atlas import atlas as small_pictures
from transformer.analysis.attention_flow import flow_allowed, flow_weights
from transformer.messages import mark
from transformer.runs.batch import Batch
from transformer.runs.head_data import Head, head_view, sites_of
from transformer.runs.run import Run
from transformer.views.attention.grid import head_grid
from transformer.views.attention.heatmap import (
    FLOW_NAMES,
    attention_flow,
    attention_heatmap,
    head_frame,
)
from transformer.views.attention.lines import alignment, answer_columns, query_lines
from transformer.views.declaration import Answer, View, picture
from transformer.views.parameters import HEAD, KIND, ROW, SITE, STACK, Bool, Choice, Int, Text

_STAGE = Choice(
    title=mark("Stage"),
    options={"scores": mark("scores"), "masked": mark("masked scores"), "weights": mark("weights")},
    default="weights",
    link="stage",
)
_SCALE = Choice(
    title=mark("Colour"),
    options={
        "linear": mark("even"),
        "sqrt": mark("boost small weights"),
        "log": mark("boost more (log)"),
    },
    default="sqrt",
    link="scale",
)
_RANGE = Choice(
    title=mark("Range"),
    options={"fixed": mark("0 to 1"), "own": mark("to this picture's largest")},
    default="fixed",
    link="range",
)
_WHICH = Choice(
    title=mark("Combined as"),
    options=FLOW_NAMES,
    default="mean",
    link="which",
)
_NUMBERS = Bool(use="request")
FEWER = 2  # queries and keys are sent in place of so many times as many scores, or more


def answer_atlas(
    item: Run | Batch,
    *,
    stack: Annotated[str, STACK],
    kind: Annotated[str, KIND],
) -> Answer:
    """Small pictures of all heads: uint8 (L, H, Sq, Sk) and which pixels are masked (L, Sq, Sk)."""
    return small_pictures(item, stack, kind).answer()


def answer_heatmap(
    item: Run | Batch,
    *,
    site: Annotated[str, SITE],
    head: Annotated[Head, HEAD],
    stage: Annotated[str, _STAGE],
    scale: Annotated[str, _SCALE],
    range: Annotated[str, _RANGE],
    row: Annotated[int, ROW],
    numbers: Annotated[bool, _NUMBERS],
) -> Answer:
    """One head large: `attention_heatmap`; or its `head_frame` and its numbers, from which a page
    draws it at any stage and scale.

    numbers: the mask and the scores, or the queries and keys of which the scores are made, where
    these are many fewer; the weights follow from them, but of a head that is switched off.
    """
    if not numbers:
        figure = attention_heatmap(
            item, site, head, stage=stage, scale=scale, range_=range, row=row, hover=False
        )
        return {"figure": figure}
    view = head_view(item, site, head, row)
    frame = head_frame(view.query_labels, view.key_labels)
    answer, vectors = mask_answer(view.allowed) | {"figure": frame}, view.vectors
    if view.is_off:
        return answer | {"scores": view.scores, "weights": view.weights}
    if vectors is None or FEWER * sum(part.size for part in vectors) > view.allowed.size:
        return answer | {"scores": view.scores}
    return answer | dict(zip(("queries", "keys"), vectors, strict=True))


def mask_answer(allowed: NDArray[np.bool_]) -> Answer:
    """A mask, one bit a cell."""
    return {"shape": list(allowed.shape), "allowed": np.packbits(allowed)}


def answer_flow(
    item: Run | Batch,
    *,
    stack: Annotated[str, STACK],
    which: Annotated[str, replace(_WHICH, use="request")],
    kind: Annotated[str, KIND],
    layer: Annotated[int | None, Int(title="Layer", use="selection")],
    scale: Annotated[str, _SCALE],
    range: Annotated[str, _RANGE],
    row: Annotated[int, ROW],
    numbers: Annotated[bool, _NUMBERS],
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


VIEW = View(
    name="attention",
    tab=mark("Attention"),
    order=110,
    title=mark("Attention"),
    help="How much each query reads each key: every head small, the chosen one large.",
    parameters=(
        Text(name="cell", use="place", link="cell"),
        Choice(
            name="threshold",
            title=mark("Weights from"),
            options={weight: weight for weight in ("0.01", "0.05", "0.1", "0.2")},
            default="0.05",
            link="threshold",
        ),
        Choice(
            name="picture",
            title=mark("Picture"),
            options={
                "heatmap": mark("heatmap"),
                "alignment": mark("alignment"),
                "lines": mark("lines"),
                "flow": mark("heads combined"),
            },
            default="heatmap",
            link="picture",
        ),
        replace(_WHICH, name="which"),
        Choice(
            name="depth",
            title=mark("Layers"),
            options={"layer": "", "all": mark("all")},
            default="all",
            link="depth",
        ),
        Choice(
            name="over_heads",
            title="Of",
            options={
                "head": mark("this head"),
                "layer": mark("this layer"),
                "all": mark("all heads"),
            },
            default="head",
            link="over_heads",
        ),
    ),
    pictures=(
        picture(
            answer_heatmap,
            figure=attention_heatmap,
            title="One head",
            help="How much each query (row) reads each key (column): scores, masked, or weights.",
        ),
        picture(
            answer_atlas,
            figure=head_grid,
            title="All heads",
            help="The weights of every head, layers across and heads down.",
        ),
        picture(
            answer_columns,
            help="Tokens in two columns, between which lines can be drawn.",
        ),
        picture(
            query_lines,
            name="lines",
            title="Lines",
            help="One head as lines from a query to the keys it reads, wider for larger weights.",
        ),
        picture(
            alignment,
            title=mark("alignment"),
            help="Cross-attention as lines: which source token each target token read most.",
        ),
        picture(
            answer_flow,
            figure=attention_flow,
            title=mark("heads combined"),
            help=mark(
                "Many heads as one map: their mean, or the means multiplied over the layers, with "
                "the residual (rollout) or without it (joint). Values and feed-forward are left "
                "out."
            ),
        ),
    ),
)
