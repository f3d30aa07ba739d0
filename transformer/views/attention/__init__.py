"""Attention: all heads small, one head large, heads put together, and lines between tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer.analysis.attention_flow import joint_weights, mean_weights, rollout_weights
from transformer.messages import mark, say
from transformer.runs.head_data import head_view
from transformer.runs.run import Batch, Run
from transformer.views.attention.alignment import alignment as alignment_figure
from transformer.views.attention.flow import attention_rollout, joint_attention, mean_attention
from transformer.views.attention.grid import atlas as small_pictures
from transformer.views.attention.grid import head_grid
from transformer.views.attention.heatmap import LOG_FLOOR, attention_heatmap
from transformer.views.attention.lines import query_lines
from transformer.views.declaration import Answer, Picture, View
from transformer.views.drawing.common import HEAD, KIND, OF_STACK, SITE
from transformer.views.parameters import Choice, Flag, HeadOrMean, Number, Whole


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
                "{which} is defined for self-attention; got {kind}-attention",
                which=which,
                kind=kind,
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


_STAGE = Choice(
    name="stage",
    title=mark("Stage"),
    options={"scores": mark("scores"), "masked": mark("masked"), "weights": mark("weights")},
    default="weights",
    link="stage",
)
_SCALE = Choice(
    name="scale",
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
    name="range",
    title=mark("Range"),
    options={"fixed": mark("0 to 1"), "own": mark("to this picture's largest")},
    default="fixed",
    link="range",
)
_BY = Choice(
    name="by",
    title=mark("When the word is"),
    options={"written": mark("written"), "read": mark("read")},
    default="written",
    link="by",
)
_LAYER = Whole(name="layer", title=mark("Layer"), use="selection", optional=True)
VIEW = View(
    name="attention",
    tab=mark("Attention"),
    title=mark("Attention"),
    help=mark("How much each query reads each key: every head small, the chosen one large."),
    parameters=(
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
                "mean": mark("mean of heads"),
                "rollout": mark("through all layers"),
                "joint": mark("joint"),
            },
            default="heatmap",
            link="picture",
        ),
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
        Picture(
            name="heatmap",
            title=mark("One head"),
            help=mark(
                "How much each query (row) reads each key (column): scores, masked, or weights."
            ),
            figure=attention_heatmap,
            answer=answer_heatmap,
            takes="run or batch",
            parameters=(
                SITE,
                HEAD,
                _STAGE,
                _SCALE,
                _RANGE,
                Whole(name="row", title="Sentence", default=0, use="request"),
                Flag(name="numbers", use="request"),
                Flag(name="cells", default=True, use="request"),
            ),
        ),
        Picture(
            name="atlas",
            title=mark("All heads"),
            help=mark("The weights of every head, layers down and heads across."),
            figure=head_grid,
            answer=answer_atlas,
            takes="run or batch",
            parameters=(OF_STACK, KIND),
        ),
        Picture(
            name="lines",
            title=mark("Lines"),
            help=mark(
                "One head as lines from a query to the keys it reads, wider for larger weights."
            ),
            figure=query_lines,
            takes="run or batch",
            parameters=(
                SITE,
                HEAD,
                Whole(name="query", title=mark("Query"), use="selection", optional=True),
                Number(name="threshold", title=mark("Weights from"), default=0.05, use="request"),
            ),
        ),
        Picture(
            name="alignment",
            title=mark("Alignment"),
            help=mark("Cross-attention as lines: which source token each target token read most."),
            figure=alignment_figure,
            takes="run or batch",
            parameters=(
                HeadOrMean(name="layer", title=mark("Layer"), default="mean"),
                HeadOrMean(name="head", title=mark("Head"), default="mean"),
                _BY,
            ),
        ),
        Picture(
            name="flow",
            title=mark("Heads put together"),
            help=mark(
                "The mean of the heads, rollout, or joint attention, with the exact weights."
            ),
            answer=answer_flow,
            parameters=(
                Choice(
                    name="which",
                    options={
                        "mean": mark("mean"),
                        "rollout": mark("rollout"),
                        "joint": mark("joint"),
                    },
                    default="mean",
                    use="request",
                ),
                OF_STACK,
                KIND,
                _LAYER,
                _SCALE,
                _RANGE,
            ),
        ),
        Picture(
            name="mean",
            title=mark("Mean of heads"),
            help=mark(
                "The average of the heads of a layer, or of all; no single head need look so."
            ),
            figure=mean_attention,
            takes="run or batch",
            parameters=(OF_STACK, KIND, _LAYER),
        ),
        Picture(
            name="rollout",
            title=mark("Rollout"),
            help=mark(
                "Mean weights and residual multiplied over layers; values and MLP are left out."
            ),
            figure=attention_rollout,
            takes="run or batch",
            parameters=(OF_STACK, _LAYER),
        ),
        Picture(
            name="joint",
            title=mark("Joint attention"),
            help=mark(
                "Mean weights multiplied over layers as if there were no residual connection."
            ),
            figure=joint_attention,
            takes="run or batch",
            parameters=(OF_STACK, _LAYER),
        ),
    ),
)
