"""A drawing of a network: its blocks, the residual stream, and the number of layers.

Data flows upwards, as in the paper's figure 1. One unit of either axis is one pixel of a drawing of
`layout.meta["width"]` x `layout.meta["height"]`. `layout.meta["blocks"]` holds for each block name,
kind, stack, title, shape, each (parameters of one), times, shared_with, does, and its box (x, y,
width, height, from the lower left corner). The bars of the only trace are the boxes in the same
order; `customdata` is the block's name.
"""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
from plotly.colors import hex_to_rgb

from transformer.messages import lines, mark, numeral, say, say_list, say_n
from transformer.model.config import ModelConfig
from transformer.model.primitives import PLACEMENTS
from transformer.model.summary import blocks
from transformer.network_words import stack_name
from transformer.runs.run import Run
from transformer.views.declaration import Answer, tab_name, view
from transformer.views.drawing import style
from transformer.views.model.arrangement import (
    BOX_WIDTH,
    RADIUS,
    Arrangement,
    Box,
    Label,
    arrange,
)
from transformer.views.model.block_text import shape_of, text_of

MARGIN = {"l": 8, "r": 8, "t": 88, "b": 12}
FAMILIES = {
    "encoder-decoder": mark("encoder and decoder"),
    "decoder": mark("decoder alone"),
    "encoder": mark("encoder alone"),
}
_HOVER_CHARACTERS = 52


def architecture(source: Run | ModelConfig) -> go.Figure:
    """Draw the blocks of a run's network, or of a configuration, with shapes and parameters.

    The number after "·" is the block's parameters; in a layer, those of one layer.
    """
    config = source if isinstance(source, ModelConfig) else source.config
    plan = arrange(config)
    total = sum(block.n_parameters for block in blocks(config))
    return style.figure(
        [_bars(config, plan)],
        say("Architecture: {families}", families=say(FAMILIES[config.family])),
        (
            f"{total:,} parameters; {PLACEMENTS[config.norm].name}<br>after a ·: "
            "parameters, in one layer"
        ),
        width=plan.width + MARGIN["l"] + MARGIN["r"],
        height=plan.height + MARGIN["t"] + MARGIN["b"],
        margin=MARGIN,
        xaxis={"visible": False, "range": [0, plan.width], "fixedrange": True},
        yaxis={"visible": False, "range": [0, plan.height], "fixedrange": True},
        barmode="overlay",
        dragmode=False,
        showlegend=False,
        shapes=_shapes(plan),
        annotations=_annotations(plan),
        meta={
            "width": plan.width,
            "height": plan.height,
            "n_parameters": total,
            "stacks": list(dict.fromkeys(box.block.stack for box in plan.boxes)),
            "blocks": [_facts(config, box) for box in plan.boxes],
        },
    )


def _facts(config: ModelConfig, box: Box) -> dict[str, Any]:
    """One block as plain values."""
    block, said = box.block, text_of(config, box.block)
    names = ("name", "kind", "stack", "each", "times", "shared_with")
    of_block = {name: getattr(block, name) for name in names}
    in_words = {"title": said.title, "shape": shape_of(block), "does": said.does}
    place = {"x": box.x - BOX_WIDTH / 2, "y": box.y, "width": BOX_WIDTH, "height": box.height}
    return of_block | in_words | place


def _bars(config: ModelConfig, plan: Arrangement) -> go.Bar:
    """The boxes of the blocks."""
    colours = style.LIGHT
    of_kind = {"self": colours.accent, "cross": colours.accent, "feed_forward": colours.key}
    tints = [of_kind.get(box.block.kind, colours.muted) for box in plan.boxes]
    return go.Bar(
        x=[box.x for box in plan.boxes],
        y=[box.height for box in plan.boxes],
        base=[box.y for box in plan.boxes],
        width=[BOX_WIDTH] * len(plan.boxes),
        text=[_text(config, box) for box in plan.boxes],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="none",
        insidetextfont={"size": style.FONT_SIZE, "color": colours.text},
        customdata=[box.block.name for box in plan.boxes],
        hovertext=[_hover(config, box) for box in plan.boxes],
        hovertemplate="%{hovertext}<extra></extra>",
        marker={
            "color": [_see_through(colour, 0.16) for colour in tints],
            "line": {"color": tints, "width": 1.5},
            "cornerradius": 5,
        },
    )


def _see_through(colour: str, share: float) -> str:
    return f"rgba{(*hex_to_rgb(colour), share)}"


def _text(config: ModelConfig, box: Box) -> str:
    """The text inside a box: one line for a norm, else two."""
    said, block = text_of(config, box.block), box.block
    if not said.short:
        return f"<b>{said.title}</b> · {numeral(block.each)}"
    numbers = said.short if block.kind == "softmax" else f"{said.short} · {numeral(block.each)}"
    return f"<b>{said.title}</b><br>{numbers}"


def _hover(config: ModelConfig, box: Box) -> str:
    said, block = text_of(config, box.block), box.block
    where = stack_name(block.stack)
    if block.in_layer:
        times = say_n("in {n} layer", "in each of {n} layers", block.times)
        where = say_list([where, times])
    told = [
        f"<b>{said.title}</b> ({where})",
        shape_of(block),
        say(
            "{each} parameters in each layer, {total} in all",
            each=numeral(block.each),
            total=numeral(block.n_parameters),
        )
        if block.in_layer
        else say("{each} parameters", each=numeral(block.each)),
        lines(style.escape(said.does), _HOVER_CHARACTERS),
    ]
    return "<br>".join(told)


def _annotations(plan: Arrangement) -> list[dict[str, Any]]:
    """The last segment of each link as an arrow, and the text outside the boxes."""
    font = {"size": style.FONT_SIZE, "color": style.LIGHT.text}
    arrows = [
        {
            "x": to_x, "y": to_y, "ax": from_x, "ay": from_y,
            "xref": "x", "yref": "y", "axref": "x", "ayref": "y",
            "text": "", "showarrow": True, "arrowhead": 2, "arrowsize": 0.9, "arrowwidth": 1.5,
            "arrowcolor": style.LIGHT.muted, "standoff": 0,
        }
        for (from_x, from_y), (to_x, to_y) in (path[-2:] for path in plan.links)
    ]  # fmt: skip
    labels = [*plan.labels, *(Label("+", x, y) for x, y in plan.sums)]
    return arrows + [
        {
            "x": label.x, "y": label.y, "xref": "x", "yref": "y", "xanchor": label.anchor,
            "yanchor": "middle", "text": label.text, "showarrow": False, "font": font,
        }
        for label in labels
    ]  # fmt: skip


def _shapes(plan: Arrangement) -> list[dict[str, Any]]:
    """Frames around the layers, bent lines, and circles where two paths are added."""
    colours = style.LIGHT
    line = {"color": colours.muted, "width": 1.5}
    frames = [
        {
            "type": "rect", "x0": x0, "y0": y0, "x1": x1, "y1": y1, "layer": "below",
            "line": {"color": colours.line, "width": 1.5, "dash": "dash"},
            "fillcolor": _see_through(colours.muted, 0.05),
        }
        for x0, y0, x1, y1 in plan.frames
    ]  # fmt: skip
    bends = [
        {
            "type": "path", "line": line, "layer": "below",
            "path": "M" + "L".join(f"{x},{y}" for x, y in path[:-1]),
        }
        for path in plan.links
        if len(path) > 2
    ]  # fmt: skip
    circles = [
        {
            "type": "circle", "x0": x - RADIUS, "x1": x + RADIUS,
            "y0": y - RADIUS, "y1": y + RADIUS, "line": line,
        }
        for x, y in plan.sums
    ]  # fmt: skip
    return frames + bends + circles


# The tab that shows a kind of block.
LEADS = {
    "tokens": mark("Positions"),
    "positions": mark("Positions"),
    "self": mark("Attention"),
    "cross": mark("Attention"),
    "head": mark("Prediction"),
    "softmax": mark("Prediction"),
}

# The topic of `equations` that shows a kind of block.
FORMULAS = {"norm": "norm", "feed_forward": "feed-forward"}


@view(
    tab=mark("Model"),
    order=710,
    title=mark("Architecture"),
    help="The blocks of the network with their shapes and parameters, as data goes through them.",
    figure=architecture,
)
def answer_architecture(item: Run) -> Answer:
    """The drawing, and the tab or formula that each kind of block leads to."""
    figure = architecture(item)
    leads = {kind: {"tab": tab_name(tab), "title": say(tab)} for kind, tab in LEADS.items()}
    formulas = {
        kind: {"equation": topic, "title": say("Formula")} for kind, topic in FORMULAS.items()
    }
    return {"figure": figure, "leads": leads | formulas}
