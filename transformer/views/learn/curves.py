"""The curves of a training: its loss, and below it what share of the questions it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from transformer.messages import say
from transformer.views.drawing import style

HEIGHT = 404
MOST = 400  # points of a curve
GAP = 0.46  # where the lower picture ends


def learning_curves(
    losses: Sequence[float],
    measured: Sequence[int],
    accuracy: Sequence[float],
    *,
    total: int,
    score: Sequence[float | None] = (),
    score_name: str = "",
    at: int | None = None,
    dark: bool = False,
) -> go.Figure:
    """Loss (nats a token) of each step above; below, of the measured steps, shares from 0 to 1.

    losses: of step 1 and those that follow, of which MOST are drawn. score: another share beside
    the accuracy, called score_name. total: steps of the whole training; at: the one looked at.
    """
    colours = style.LIGHT
    stride = max(1, -(-len(losses) // MOST))
    steps = list(range(1, len(losses) + 1, stride))
    drawn = [losses[step - 1] for step in steps]
    loss = curve(steps, drawn, say("loss"), colours.text, mode="lines", width=1.5)
    name = say("accuracy, held-out questions")
    shares = [curve(measured, accuracy, name, colours.accent, share=True)]
    if score_name:
        shares.append(curve(measured, score, score_name, colours.key, dash="dash", share=True))
    return two_pictures(
        [loss], shares, title=say("Loss and accuracy"), of=say("share"), at=at, dark=dark,
        range=[0, 1.01 * total],
    )  # fmt: skip


def curve(
    steps: Sequence[int],
    values: Sequence[float | None],
    name: str,
    colour: str,
    *,
    mode: str = "lines+markers",
    width: float = 2,
    dash: str = "solid",
    share: bool = False,
) -> go.Scatter:
    """A loss of each step, or a share of its picture below."""
    said = (
        say("step %{customdata}: %{y:.0%}") if share else say("step %{customdata}: %{y:.3f} nats")
    )
    return go.Scatter(
        x=list(steps), y=list(values), customdata=list(steps), name=name, mode=mode,
        line={"color": colour, "width": width, "dash": dash}, marker={"size": 4, "color": colour},
        hovertemplate=f"{said}<extra>{style.escape(name)}</extra>", yaxis="y" if share else "y2",
    )  # fmt: skip


def two_pictures(
    losses: Sequence[go.Scatter],
    shares: Sequence[go.Scatter],
    *,
    title: str,
    of: str,
    at: float | None,
    dark: bool,
    most: float = 1.0,
    **steps: Any,
) -> go.Figure:
    """Losses above (on the axis y2), shares below, over the same steps. of: what the shares are;
    most: the largest that has room. at: where a line goes through both; steps: what more is said of
    the steps' axis."""
    muted = style.LIGHT.muted
    here = {
        "type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper",
        "line": {"color": muted, "width": 1, "dash": "dot"},
    }  # fmt: skip
    return style.figure(
        [*losses, *shares],
        title,
        height=HEIGHT,
        margin={"l": 56, "r": 12, "t": 94, "b": 44},
        xaxis=style.axis(say("step"), anchor="y", **steps),
        yaxis=style.axis(
            of, range=[-0.02 * most, 1.04 * most], domain=[0, GAP - 0.06],
            showgrid=True, tickformat=".0%", nticks=5,
        ),
        yaxis2=style.axis(
            say("loss, nats"), domain=[GAP, 1], rangemode="tozero", showgrid=True,
            anchor="x", nticks=5,
        ),
        legend=style.LEGEND_ABOVE,
        shapes=[] if at is None else [here],
        hovermode="closest",
        dark=dark,
    )  # fmt: skip
