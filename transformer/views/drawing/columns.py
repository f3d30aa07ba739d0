"""Lines between two columns of tokens: what `alignment` and `query_lines` share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import plotly.graph_objects as go

from transformer.views.drawing import style

ROW_PX, MIN_HEIGHT, TOP_PX = 24, 200, 72
N_BUCKETS = 8  # lines of similar weight are one trace: a trace a line would take seconds to draw

Columns = tuple[Sequence[str], Sequence[str]]  # the labels at the left and at the right


class Line(NamedTuple):
    """From a place at the left to one at the right, both counted from 0."""

    left: int
    right: int
    weight: float


def columns_layout(
    title: str,
    subtitle: str,
    legend: str,
    labels: Columns,
    column_px: int,
    *,
    room: int = 0,
    below: int = 48,
    dark: bool = False,
) -> dict[str, Any]:
    """A row a token, headings above row 0, no axes; legend: what stands below.

    column_px: the most that a column is wide; room: px more at the right; below: px of the legend.
    """
    left, right = (
        max(60, 12 + max(style.fitted(label, column_px)[1] for label in side)) for side in labels
    )
    n_rows = max(map(len, labels))
    layout = style.layout(
        title,
        subtitle,
        dark=dark,
        showlegend=False,
        hovermode="closest",
        margin={"l": left, "r": right + room, "t": TOP_PX, "b": below},
        height=max(MIN_HEIGHT, TOP_PX + ROW_PX * (n_rows + 1) + below),
        xaxis=style.axis(
            legend, dark=dark, range=[-0.04, 1.04],
            showticklabels=False, ticks="", showline=False, fixedrange=True,
        ),
        yaxis={"visible": False, "fixedrange": True, "range": [n_rows - 0.5, -1.5]},
    )  # fmt: skip
    layout["title"] |= {"xref": "container", "pad": {"t": 12, "l": 12}}  # not at the wide margin
    return layout


def drawn_lines(
    lines: Sequence[Line], looks: Callable[[float], tuple[float, float]], dark: bool
) -> list[go.Scatter]:
    """One trace for all lines of similar weight; looks: weight -> (width in px, opacity)."""
    buckets: dict[int, list[Line]] = {}
    for line in lines:
        buckets.setdefault(min(N_BUCKETS - 1, int(line.weight * N_BUCKETS)), []).append(line)
    traces = []
    for bucket, members in sorted(buckets.items()):
        width, opacity = looks((bucket + 0.5) / N_BUCKETS)
        traces.append(
            go.Scatter(
                x=[0, 1, None] * len(members),
                y=[y for line in members for y in (line.left, line.right, None)],
                mode="lines",
                line={"width": width, "color": style.theme(dark).accent},
                opacity=opacity,
                hoverinfo="skip",
            )
        )
    return traces


def headings(left: str, right: str, dark: bool) -> go.Scatter:
    """What stands above the columns."""
    return go.Scatter(
        x=[0, 1], y=[-1, -1], text=[left, right], mode="text", hoverinfo="skip",
        textposition=["middle left", "middle right"], cliponaxis=False,
        textfont={"size": style.FONT_SIZE, "color": style.theme(dark).muted},
    )  # fmt: skip


def column(
    x: int, texts: Sequence[str], hover: Sequence[str], linked: set[int], dark: bool
) -> go.Scatter:
    """Tokens, each with a dot where its lines begin; those without a line are muted.

    x: 0 at the left, 1 at the right. texts, hover: ready for Plotly.
    """
    colours = style.theme(dark)
    text, dot = (
        [strong if place in linked else colours.muted for place in range(len(texts))]
        for strong in (colours.text, colours.accent)
    )
    return go.Scatter(
        x=[x] * len(texts), y=list(range(len(texts))), mode="markers+text", text=list(texts),
        textposition="middle right" if x else "middle left", cliponaxis=False,
        textfont={"size": style.FONT_SIZE, "color": text}, marker={"size": 6, "color": dot},
        customdata=list(hover), hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip
