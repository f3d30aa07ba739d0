"""One head as lines between two columns of tokens: from the queries, left, to the keys that they
read, right.

`layout.meta` carries, for a page's own script, query_labels and key_labels as plain, unescaped
text, and links as [query position, key position, weight], strongest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from transformer.checks import check_number, check_whole
from transformer.messages import mark, numeral, say
from transformer.network_words import attention_name, head_name
from transformer.runs.batch import Batch
from transformer.runs.head_data import Head, HeadView, SiteLike, head_view
from transformer.runs.run import Run
from transformer.views.drawing import style
from transformer.views.parameters import HEAD, QUERY, SITE, Number

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
    meta: dict[str, Any],
) -> go.Figure:
    """A row per token, headings above row 0, no axes; legend: the text below.

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
    lines: Sequence[Line], widths: tuple[float, float], opacities: tuple[float, float]
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


COLUMN_PX = 106  # two columns of this width leave room for the lines on a phone
MOST_LINES = 2000  # of all queries together; more are neither drawn in time nor told apart
_NO_NUMBER = "\u2007\u2008\u2007\u2007"  # as wide as "0.12"


class Link(NamedTuple):
    """How much a query reads a key; both are positions counted from 0."""

    query: int
    key: int
    weight: float


def query_links(
    run: Run | Batch,
    site: SiteLike,
    head: Head,
    query: int | None = None,
    threshold: float = 0.05,
    row: int = 0,
) -> list[Link]:
    """Every allowed weight of at least `threshold` (of one query, or of all), strongest first;
    none of a head that is switched off.

    Raises ValueError, listing what is allowed, for an unknown site, head, query, threshold or row.
    """
    return _links(head_view(run, site, head, row), query, threshold)


def query_lines(
    run: Run | Batch,
    site: Annotated[SiteLike, SITE],
    head: Annotated[Head, HEAD],
    query: Annotated[int | None, QUERY] = None,
    threshold: Annotated[float, Number(title=mark("Weights from"), use="request")] = 0.05,
    *,
    row: int = 0,
) -> go.Figure:
    """Lines from a query to each key that it reads with a weight of at least `threshold`, wider the
    larger the weight, the weight written at the key; without a query, faint lines of all queries.

    At most MOST_LINES lines are drawn, the strongest; the subtitle says so. Errors as
    `query_links`.
    """
    view = head_view(run, site, head, row)
    links = _links(view, query, threshold)
    shown = links[:MOST_LINES]
    faint = query is None
    lines = drawn_lines(shown, (1, 3) if faint else (1, 8), (0.12, 0.62) if faint else (0.35, 1))
    return columns_figure(
        _title(view, query),
        _subtitle(len(links), threshold),
        say("width and opacity: weight, 0 to 1"),
        _columns(view, query, shown),
        lines,
        column_px=COLUMN_PX,
        room=44,
        meta={
            "query_labels": list(view.query_labels),
            "key_labels": list(view.key_labels),
            "links": [list(link) for link in shown],
            "query": query,
            "threshold": threshold,
        },
    )


def _links(view: HeadView, query: int | None, threshold: float) -> list[Link]:
    check_number("threshold", threshold, 0.0, 1.0)
    if query is not None:
        check_whole("query", query, 0, len(view.query_labels) - 1)
    strong = view.allowed & (view.weights >= threshold) & bool(view.weights.any())
    if query is not None:
        strong &= np.arange(len(strong))[:, None] == query
    found = [Link(q, k, float(view.weights[q, k])) for q, k in np.argwhere(strong).tolist()]
    return sorted(found, key=lambda link: -link.weight)


def _title(view: HeadView, query: int | None) -> str:
    head = head_name(view.head, view.is_off)
    whose = "all queries" if query is None else f"query {query}"
    attention = attention_name(view.site.stack, view.site.kind)
    return f"Lines: {attention}, layer {view.site.layer}, {head}, {whose}"


def _subtitle(count: int, threshold: float) -> str:
    least = numeral(threshold, "g")
    if count <= MOST_LINES:
        return f"all weights of at least {least}"
    return f"the strongest {MOST_LINES:,} of {count:,} weights of at least {least}"


def _columns(view: HeadView, query: int | None, links: Sequence[Link]) -> tuple[Column, Column]:
    asking = {link.query for link in links} if query is None else {query}
    read = {link.key for link in links}
    numbers = {} if query is None else {link.key: numeral(link.weight, ".2f") for link in links}
    before = [numbers.get(position, _NO_NUMBER) for position in range(len(view.key_labels))]
    return (
        Column(say("query"), view.query_labels, _hover(view, links, "query"), asking),
        Column(say("weight, key"), view.key_labels, _hover(view, links, "key"), read, before),
    )


def _hover(view: HeadView, links: Sequence[Link], side: str) -> list[str]:
    """For each token its name and the three strongest of its lines."""
    labels = view.query_labels if side == "query" else view.key_labels
    texts = [[named(side, position, label)] for position, label in enumerate(labels)]
    for link in links:
        own = texts[getattr(link, side)]
        if len(own) < 4:
            query = named("query", link.query, view.query_labels[link.query])
            own.append(
                reading(query, named("key", link.key, view.key_labels[link.key]), link.weight)
            )
    return ["<br>".join(text) for text in texts]


def named(column: str, position: int, label: str) -> str:
    """A token for a hover label: "query 3: cat"; column: "query", "key", "source" or "target"."""
    return f"{say(column)} {position}: {style.hover(label)}"


def reading(query: str, key: str, weight: float) -> str:
    """How much a query reads a key, for a hover label."""
    values = {"from": query, "to": key, "weight": numeral(weight, ".4f")}
    return say("{from} reads {to}, {weight}", **values)
