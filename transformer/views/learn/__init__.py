"""Learn: train a small network on the page, and look at it like any other. The curves are the loss
and, below, the share of questions that it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from transformer.messages import mark, say
from transformer.model.config import PRESETS
from transformer.views.declaration import View
from transformer.views.drawing import style
from transformer.views.parameters import Bool, Choice, Int, Number

HEIGHT = 404
MAX_POINTS = 400  # points of a curve
LOSS_DOMAIN_START = 0.46  # where the lower picture ends


def learning_curves(
    losses: Sequence[float],
    measured: Sequence[int],
    accuracy: Sequence[float],
    *,
    total: int,
    score: Sequence[float | None] = (),
    score_name: str = "",
    at: int | None = None,
) -> go.Figure:
    """Loss (nats per token) of each step above; below, of the measured steps, shares from 0 to 1.

    losses: from step 1 on; at most MAX_POINTS are drawn. score: another share next to the accuracy,
    called score_name. total: steps of the whole training run; at: the step that is looked at.
    """
    colours, stride = style.LIGHT, max(1, -(-len(losses) // MAX_POINTS))
    steps = range(1, len(losses) + 1, stride)
    drawn = [losses[step - 1] for step in steps]
    right = say("accuracy, held-out questions")
    traces = [
        _curve(steps, drawn, say("loss"), colours.text, ".3f", yaxis="y2", mode="lines"),
        _curve(measured, accuracy, right, colours.accent, ".0%"),
        _curve(measured, score, score_name, colours.key, ".0%", line_dash="dash"),
    ]
    here = {
        "type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper",
        "line": {"color": colours.muted, "width": 1, "dash": "dot"},
    }  # fmt: skip
    return style.figure(
        traces if score_name else traces[:2],
        say("Loss and accuracy"),
        height=HEIGHT,
        margin={"l": 56, "r": 12, "t": 94, "b": 44},
        xaxis=style.axis(say("step"), anchor="y", range=[0, 1.01 * total]),
        yaxis=style.axis(
            say("share"), range=[-0.02, 1.04], domain=[0, LOSS_DOMAIN_START - 0.1],
            showgrid=True, tickformat=".0%", nticks=5,
        ),
        yaxis2=style.axis(
            say("loss, nats"), domain=[LOSS_DOMAIN_START, 1], rangemode="tozero", showgrid=True,
            anchor="x", nticks=5,
        ),
        legend=style.LEGEND_ABOVE,
        shapes=[] if at is None else [here],
        hovermode="closest",
    )  # fmt: skip


def _curve(
    steps: Sequence[int],
    values: Sequence[float | None],
    name: str,
    colour: str,
    number: str,
    **more: Any,
) -> go.Scatter:
    return go.Scatter(
        x=list(steps), y=list(values), name=name, line_color=colour, marker_size=4,
        hovertemplate=say("{title}: {part}", title=f"{say('step')} %{{x}}", part=f"%{{y:{number}}}")
        + f"<extra>{style.escape(name)}</extra>",
        **{"mode": "lines+markers"} | more,
    )  # fmt: skip


# The exercises of `transformer.training`, which no view may import; a test compares them.
TASKS = {
    "copy": mark("Copy"),
    "reverse": mark("Reverse"),
    "sort": mark("Sort"),
    "addition": mark("Add"),
    "induction": mark("Repeat what followed"),
}
VIEW = View(
    name="learn",
    tab=mark("Learn"),
    order=610,
    title="Watch it learn",
    help="A small network learns an exercise: its loss, its accuracy, and its heads.",
    parameters=(
        Choice(name="task", title=mark("Exercise"), options=TASKS, default="induction"),
        Choice(
            name="preset",
            title=mark("Preset"),
            options={name: name for name in PRESETS},
            default="gpt",
        ),
        Int(name="n_layers", title=mark("Layers"), default=2, least=1, most=4),
        Int(name="n_heads", title=mark("Heads"), default=4, least=1, most=8),
        Int(name="width", title=mark("Width"), default=32, least=8, most=96),
        Bool(name="feed_forward", title=mark("Feed-forward layers"), default=False),
        Int(name="n_steps", title=mark("Steps"), default=400, least=1, most=2000),
        Number(
            name="learning_rate", title=mark("Learning rate"), default=0.01,
            least=0.0001, most=0.5,
        ),
        Int(name="seed", title=mark("Seed"), default=0, most=2**32 - 1),
        Int(name="at", optional=True, use="place", most=2000),  # the step that is looked at
    ),
    pictures=(),
)  # fmt: skip
