"""Pairs of horizontal bars, a pair a token: what the pictures of probabilities share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from transformer.messages import mark, numeral, say
from transformer.views.drawing import style

_LEAST = 0.02  # the axis reaches at least this far, however improbable all of it is


def paired_layout(
    title: str,
    subtitle: str,
    ticks: Sequence[str],
    longest: float,
    *,
    y_title: str = mark("next token"),
    room: float = 1.18,
    height: int | None = None,
    dark: bool = False,
    meta: dict[str, Any],
) -> dict[str, Any]:
    """The layout of pairs of bars, the first of them on top.

    ticks: one a pair, from `token_ticks`. longest: the largest probability, which the axis reaches
    beyond, `room` times as far, for the number that stands there. height: in px, None = by `ticks`.
    """
    longest = max(longest, _LEAST)
    return style.layout(
        title,
        subtitle,
        dark=dark,
        barmode="group",
        bargap=0.25,
        bargroupgap=0.05,
        xaxis=style.axis(
            say("probability"), dark=dark, range=[0, longest * room], showgrid=True, nticks=6,
            tickformat=".0%" if longest > 0.1 else ".1%",
        ),
        yaxis=style.axis(
            say(y_title), dark=dark, range=[len(ticks) - 0.4, -0.6], tickmode="array",
            tickvals=list(range(len(ticks))), ticktext=list(ticks),
        ),
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
        margin={"l": 60, "r": 16, "t": 72, "b": 100},
        height=height or 172 + 40 * len(ticks),
        meta=meta,
    )  # fmt: skip


def token_ticks(
    labels: Sequence[str], ids: Sequence[int] = (), here: int | None = None
) -> list[str]:
    """A tick a token, since all are wanted; the one whose id is `here` is pointed at."""
    ticks = [style.label(text) for text in labels]
    for place, token in enumerate(ids):
        if token == here:
            ticks[place] = f"<b>▶ {ticks[place]}</b>"
    return ticks


def bars(
    name: str,
    lengths: Sequence[float],
    texts: Sequence[str],
    colour: str,
    *,
    hatched: bool = False,
    **more: Any,
) -> go.Bar:
    """One bar of each pair, its text behind its end; `more` goes to Plotly."""
    return go.Bar(
        x=list(lengths),
        y=list(range(len(lengths))),
        name=name,
        orientation="h",
        text=list(texts),
        textposition="outside",
        textfont={"size": style.FONT_SIZE},
        constraintext="none",
        cliponaxis=False,
        marker={"color": colour, "pattern": {"shape": "/" if hatched else ""}},
        **more,
    )


def percent(probability: float) -> str:
    """A probability for Plotly text; a small one is never shown as nothing."""
    return f"&lt;{numeral(0.1, '.1f')}%" if 0 < probability < 0.001 else numeral(probability, ".1%")
