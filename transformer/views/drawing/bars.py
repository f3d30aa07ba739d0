"""Pairs of horizontal bars, one pair per token: what the pictures of probabilities share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import plotly.graph_objects as go

from transformer.messages import mark, numeral, say
from transformer.views.drawing import style

_LEAST = 0.02  # the axis reaches at least this far, however improbable all of it is
_ROOM = 1.4  # the axis is this many times as long as the longest bar, to fit its number


class Series(NamedTuple):
    """One bar of each pair. texts: behind the bars' ends, by default the percentages."""

    name: str
    probabilities: Sequence[float]
    colour: str
    hatched: bool = False
    texts: Sequence[str] | None = None


def paired_bars(
    title: str,
    subtitle: str,
    labels: Sequence[str],
    pair: Sequence[Series],
    *,
    y_title: str = mark("next token"),
    ids: Sequence[int] = (),
    here: int | None = None,
    meta: dict[str, Any],
) -> go.Figure:
    """A pair of bars per token, the first on top; x is the probability, y the token's place.

    ids: of the tokens; the one whose id is `here` has an arrow before its label. meta: more than
    the labels, which it holds as plain text.
    """
    ticks = [
        f"<b>▶ {style.label(text)}</b>" if token == here else style.label(text)
        for text, token in zip_longest(labels, ids, fillvalue="")
    ]
    longest = max(_LEAST, *(max(series.probabilities) for series in pair))
    return style.figure(
        [_bars(series, labels) for series in pair],
        title,
        subtitle,
        barmode="group",
        bargap=0.25,
        bargroupgap=0.05,
        xaxis=style.axis(
            say("probability"), range=[0, longest * _ROOM], showgrid=True, nticks=6,
            tickformat=".0%" if longest > 0.1 else ".1%",
        ),
        yaxis=style.named_axis(
            say(y_title), ticks, range=[len(labels) - 0.4, -0.6],
        ),
        legend=style.LEGEND_ABOVE,
        margin={"l": 60, "r": 16, "t": 104, "b": 50},
        height=154 + 44 * max(len(labels), 3),
        meta={"labels": list(labels)} | meta,
    )  # fmt: skip


def _bars(series: Series, labels: Sequence[str]) -> go.Bar:
    name, values, colour, hatched, texts = series
    return go.Bar(
        x=list(values),
        y=list(range(len(values))),
        name=name,
        orientation="h",
        text=[percent(value) for value in values] if texts is None else list(texts),
        textposition="outside",
        textfont={"size": style.FONT_SIZE},
        constraintext="none",
        cliponaxis=False,
        marker={"color": colour, "pattern": {"shape": "/" if hatched else ""}},
        customdata=[numeral(value, ".4f") for value in values],
        hovertext=[style.hover(text) for text in labels],
        hovertemplate="%{hovertext}<br>"
        + say("{title}: {part}", title=name, part="%{customdata}")
        + "<extra></extra>",
    )


def percent(probability: float) -> str:
    """A probability for Plotly text, a small one never shown as nothing."""
    if 0 < probability < 0.001:
        return f"&lt;{numeral(0.1, '.1f')}%"
    return numeral(probability, ".1%")
