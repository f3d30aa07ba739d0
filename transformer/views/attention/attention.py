"""Attention: all heads small, one head large, heads combined, and lines between tokens, as
figures and as numbers."""

from __future__ import annotations

from dataclasses import replace

from transformer.messages import mark
from transformer.views.attention.flow import WHICH, answer_flow, attention_flow
from transformer.views.attention.grid import answer_atlas, head_grid
from transformer.views.attention.heatmap import answer_heatmap, attention_heatmap
from transformer.views.attention.lines import alignment, answer_columns, query_lines
from transformer.views.declaration import View, picture
from transformer.views.parameters import Choice, Text

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
        replace(WHICH, name="which"),
        Choice(
            name="depth",
            title=mark("Layers"),
            options={"layer": "", "all": mark("all")},
            default="all",
            link="depth",
        ),
        Choice(
            name="line_heads",
            title=mark("Which heads"),
            options={"head": mark("this head"), "layer": mark("every head of its layer")},
            default="head",
            link="line_heads",
        ),
        Choice(
            name="over_heads",
            title=mark("Which heads"),
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
                "the residual (rollout) or without it (joint). Values and feed-forwards are left "
                "out."
            ),
        ),
    ),
)
