"""Lines between two columns of tokens: what `alignment` and `query_lines` share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import plotly.graph_objects as go

from transformer.views.drawing import style

ROW_PX, MIN_HEIGHT, TOP_PX = 24, 200, 72
N_BUCKETS = 8  # lines of similar weight are one trace: a trace a line would take seconds to draw


Line = tuple[int, int, float]  # from a place at the left to one at the right, and its weight


class Column(NamedTuple):
    """Tokens below a heading. hover: of each, ready for Plotly. linked: places where lines begin,
    the others are muted. before: ready for Plotly, in front of each token."""

    heading: str
    labels: Sequence[str]
    hover: Sequence[str]
    linked: set[int]
    before: Sequence[str] = ()


def columns_figure(
    title: str,
    subtitle: str,
    legend: str,
    sides: tuple[Column, Column],
    lines: Sequence[go.Scatter],
    *,
    column_px: int,
    room: int = 0,
    below: int = 48,
    dark: bool,
    meta: dict[str, Any],
) -> go.Figure:
    """A row a token, headings above row 0, no axes; legend: what stands below.

    lines: see `drawn_lines`. column_px: the most that a column is wide; room: px more at the right;
    below: px of the legend.
    """
    left, right = (
        max(60, 12 + max(style.fitted(label, column_px)[1] for label in side.labels))
        for side in sides
    )
    n_rows = max(len(side.labels) for side in sides)
    columns = [_tokens(x, side, column_px) for x, side in enumerate(sides)]
    headings = go.Scatter(
        x=[0, 1], y=[-1, -1], text=[side.heading for side in sides], mode="text",
        hoverinfo="skip", textposition=["middle left", "middle right"], cliponaxis=False,
        textfont={"size": style.FONT_SIZE, "color": style.LIGHT.muted},
    )  # fmt: skip
    figure = style.figure(
        [*lines, *columns, headings],
        title,
        subtitle,
        dark=dark,
        showlegend=False,
        hovermode="closest",
        margin={"l": left, "r": right + room, "t": TOP_PX, "b": below},
        height=max(MIN_HEIGHT, TOP_PX + ROW_PX * (n_rows + 1) + below),
        xaxis=style.axis(
            legend, range=[-0.04, 1.04],
            showticklabels=False, ticks="", showline=False, fixedrange=True,
        ),
        yaxis={"visible": False, "fixedrange": True, "range": [n_rows - 0.5, -1.5]},
        meta=meta,
    )  # fmt: skip
    figure.layout.title.update(xref="container", pad={"t": 12, "l": 12})  # not at the wide margin
    return figure


def _tokens(x: int, side: Column, column_px: int) -> go.Scatter:
    """Tokens, each with a dot where its lines begin; x: 0 at the left, 1 at the right."""
    colours = style.LIGHT
    text, dot = (
        [strong if at in side.linked else colours.muted for at in range(len(side.labels))]
        for strong in (colours.text, colours.accent)
    )
    shown = [style.fitted(label, column_px)[0] for label in side.labels]
    if side.before:
        shown = [f"{one} {label}" for one, label in zip(side.before, shown, strict=True)]
    return go.Scatter(
        x=[x] * len(shown), y=list(range(len(shown))), mode="markers+text", text=shown,
        textposition="middle right" if x else "middle left", cliponaxis=False,
        textfont={"size": style.FONT_SIZE, "color": text}, marker={"size": 6, "color": dot},
        customdata=list(side.hover), hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip


def drawn_lines(
    lines: Sequence[Line],
    widths: tuple[float, float],
    opacities: tuple[float, float],
) -> list[go.Scatter]:
    """One trace for all lines of similar weight; widths in px and opacities: at 0 and at 1."""
    buckets: dict[int, list[Line]] = {}
    for line in lines:
        buckets.setdefault(min(N_BUCKETS - 1, int(line[2] * N_BUCKETS)), []).append(line)
    traces = []
    for bucket, members in sorted(buckets.items()):
        share = (bucket + 0.5) / N_BUCKETS
        width, opacity = (low + share * (high - low) for low, high in (widths, opacities))
        traces.append(
            go.Scatter(
                x=[0, 1, None] * len(members),
                y=[y for left, right, _ in members for y in (left, right, None)],
                mode="lines",
                line={"width": width, "color": style.LIGHT.accent},
                opacity=opacity,
                hoverinfo="skip",
            )
        )
    return traces
