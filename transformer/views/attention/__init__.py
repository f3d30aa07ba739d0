"""Attention: all heads small, one head large, heads put together, and lines between tokens."""

from __future__ import annotations

from transformer.messages import mark
from transformer.views.attention.alignment import alignment as alignment_figure
from transformer.views.attention.answers import answer_atlas, answer_flow, answer_heatmap
from transformer.views.attention.flow import attention_rollout, joint_attention, mean_attention
from transformer.views.attention.grid import head_grid
from transformer.views.attention.heatmap import attention_heatmap
from transformer.views.attention.lines import query_lines
from transformer.views.declaration import Picture, View
from transformer.views.parameters import (
    HEAD,
    KIND,
    OF_STACK,
    QUERY,
    ROW,
    SITE,
    Bool,
    Choice,
    HeadOrMean,
    Int,
    Number,
    Text,
)

_STAGE = Choice(
    name="stage",
    title=mark("Stage"),
    options={"scores": mark("scores"), "masked": mark("masked scores"), "weights": mark("weights")},
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
_LAYER = Int(name="layer", title=mark("Layer"), use="selection", optional=True)
VIEW = View(
    name="attention",
    tab=mark("Attention"),
    order=110,
    part="heads",
    title=mark("Attention"),
    help=mark("How much each query reads each key: every head small, the chosen one large."),
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
            subject="run or batch",
            parameters=(
                SITE,
                HEAD,
                _STAGE,
                _SCALE,
                _RANGE,
                ROW,
                Bool(name="numbers", use="request"),
            ),
        ),
        Picture(
            name="atlas",
            title=mark("All heads"),
            help=mark("The weights of every head, layers down and heads across."),
            figure=head_grid,
            answer=answer_atlas,
            subject="run or batch",
            parameters=(OF_STACK, KIND),
        ),
        Picture(
            name="lines",
            title=mark("Lines"),
            help=mark(
                "One head as lines from a query to the keys it reads, wider for larger weights."
            ),
            figure=query_lines,
            subject="run or batch",
            parameters=(
                SITE,
                HEAD,
                QUERY,
                Number(name="threshold", title=mark("Weights from"), default=0.05, use="request"),
            ),
        ),
        Picture(
            name="alignment",
            title=mark("Alignment"),
            help=mark("Cross-attention as lines: which source token each target token read most."),
            figure=alignment_figure,
            subject="run or batch",
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
                        "mean": mark("mean of heads"),
                        "rollout": mark("rollout"),
                        "joint": mark("joint attention"),
                    },
                    default="mean",
                    use="request",
                ),
                OF_STACK,
                KIND,
                _LAYER,
                _SCALE,
                _RANGE,
                Bool(name="numbers", use="request"),
            ),
        ),
        Picture(
            name="mean",
            title=mark("Mean of heads"),
            help=mark(
                "The average of the heads of a layer, or of all; no single head need look so."
            ),
            figure=mean_attention,
            subject="run or batch",
            parameters=(OF_STACK, KIND, _LAYER),
        ),
        Picture(
            name="rollout",
            title=mark("Rollout"),
            help=mark(
                "Mean weights and residual multiplied over layers; values and MLP are left out."
            ),
            figure=attention_rollout,
            subject="run or batch",
            parameters=(OF_STACK, _LAYER),
        ),
        Picture(
            name="joint",
            title=mark("Joint attention"),
            help=mark(
                "Mean weights multiplied over layers as if there were no residual connection."
            ),
            figure=joint_attention,
            subject="run or batch",
            parameters=(OF_STACK, _LAYER),
        ),
    ),
)
