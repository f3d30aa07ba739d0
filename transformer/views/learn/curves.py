"""The curves of a training: its loss, and below it what share of the questions it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from transformer.messages import say
from transformer.views.drawing import style

HEIGHT = 340
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
    colours = style.theme(dark)
    stride = max(1, -(-len(losses) // MOST))
    steps = list(range(1, len(losses) + 1, stride))
    loss = go.Scatter(
        x=steps, y=[losses[step - 1] for step in steps], name=say("loss"), mode="lines",
        line={"color": colours.text, "width": 1.5}, yaxis="y2",
        hovertemplate=say("step %{x}: loss %{y:.3f} nats") + "<extra></extra>",
    )  # fmt: skip
    right = _share(measured, accuracy, say("accuracy, held-out questions"), colours.accent)
    shares = [right]
    if score_name:
        shares.append(_share(measured, score, score_name, colours.key, "dash"))
    return two_pictures(
        [loss], shares, title=say("Loss and accuracy"), of=say("share"), at=at, dark=dark,
        range=[0, 1.01 * total],
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
    layout = style.layout(
        title,
        dark=dark,
        height=HEIGHT,
        margin={"l": 56, "r": 12, "t": 30, "b": 44},
        xaxis=style.axis(say("step"), dark=dark, anchor="y", **steps),
        yaxis=style.axis(
            of, dark=dark, range=[-0.02 * most, 1.04 * most], domain=[0, GAP - 0.06],
            showgrid=True, tickformat=".0%", nticks=5,
        ),
        yaxis2=style.axis(
            say("loss, nats"), dark=dark, domain=[GAP, 1], rangemode="tozero", showgrid=True,
            anchor="x", nticks=5,
        ),
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        shapes=[] if at is None else [_here(at, style.theme(dark).muted)],
        hovermode="closest",
    )  # fmt: skip
    layout["yaxis2"]["title"]["font"] = {"size": style.FONT_SIZE}  # the page sets the others'
    return go.Figure(data=[*losses, *shares], layout=layout)


def _share(
    steps: Sequence[int],
    shares: Sequence[float | None],
    name: str,
    colour: str,
    dash: str = "solid",
) -> go.Scatter:
    return go.Scatter(
        x=list(steps), y=list(shares), name=name, mode="lines+markers", connectgaps=False,
        line={"color": colour, "width": 2, "dash": dash}, marker={"size": 4, "color": colour},
        hovertemplate=say("step %{x}: %{y:.0%}") + f"<extra>{style.escape(name)}</extra>",
    )  # fmt: skip


def _here(step: float, colour: str) -> dict[str, object]:
    """A line through both pictures."""
    line = {"color": colour, "width": 1, "dash": "dot"}
    return {
        "type": "line", "x0": step, "x1": step, "y0": 0, "y1": 1, "yref": "paper", "line": line,
    }  # fmt: skip
