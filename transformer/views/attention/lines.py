"""Lines between two columns of tokens: from one head's queries to the keys that they read, and from
each target token of a translation to the source token that it read most.

`layout.meta` carries, for a page's own script, the labels of both columns as plain, unescaped text
(query_labels and key_labels, or target_labels and source_labels) and links, each [position of the
token that reads, position of the token that is read, weight].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.checks import check_choice, check_number, check_whole
from transformer.messages import mark, numeral, say
from transformer.network_words import attention_name, head_name
from transformer.runs.batch import Batch
from transformer.runs.head_data import (
    Head,
    HeadView,
    SiteLike,
    check_head,
    head_view,
    n_heads_at,
    sites_of,
)
from transformer.runs.run import Run
from transformer.views.drawing import style
from transformer.views.parameters import HEAD, QUERY, SITE, Choice, HeadOrMean, Number

ROW_PX, MIN_HEIGHT, TOP_PX, BELOW_PX = 24, 200, 72, 48
COLUMN_PX = 106  # two columns of this width leave room for the lines on a phone
N_BUCKETS = 8  # lines of similar weight are one trace: a trace a line would take seconds to draw
MOST_LINES = 2000  # of all queries together; more are neither drawn in time nor told apart
_NO_NUMBER = "\u2007\u2008\u2007\u2007"  # as wide as "0.12"

Link = tuple[int, int, float]  # positions of the token that reads and of the one read, the weight


class _Column(NamedTuple):
    """Tokens below a heading. hover: of each, ready for Plotly. linked: places where lines begin,
    the others are muted. numbers: ready for Plotly, in front of each token."""

    heading: str
    labels: Sequence[str]
    hover: Sequence[str]
    linked: set[int]
    numbers: Sequence[str] = ()


def _figure(
    title: str,
    subtitle: str,
    sides: tuple[_Column, _Column],
    lines: Sequence[go.Scatter],
    meta: dict[str, Any],
) -> go.Figure:
    """A row per token, headings above row 0, no axes. lines: see `_lines`."""
    left, right = (
        max(60, 12 + max(style.fitted(label, COLUMN_PX)[1] for label in side.labels))
        + 44 * bool(side.numbers)
        for side in sides
    )
    n_rows = max(len(side.labels) for side in sides)
    headings = go.Scatter(
        x=[0, 1], y=[-1, -1], text=[side.heading for side in sides], mode="text",
        hoverinfo="skip", textposition=["middle left", "middle right"], cliponaxis=False,
        textfont={"size": style.FONT_SIZE, "color": style.LIGHT.muted},
    )  # fmt: skip
    figure = style.figure(
        [*lines, *(_tokens(x, side) for x, side in enumerate(sides)), headings],
        title,
        subtitle,
        showlegend=False,
        hovermode="closest",
        margin={"l": left, "r": right, "t": TOP_PX, "b": BELOW_PX},
        height=max(MIN_HEIGHT, TOP_PX + ROW_PX * (n_rows + 1) + BELOW_PX),
        xaxis=style.axis(
            say("width and opacity: weight, 0 to 1"), range=[-0.04, 1.04],
            showticklabels=False, ticks="", showline=False, fixedrange=True,
        ),
        yaxis={"visible": False, "fixedrange": True, "range": [n_rows - 0.5, -1.5]},
        meta=meta,
    )  # fmt: skip
    figure.layout.title.update(xref="container", pad={"t": 12, "l": 12})  # not at the wide margin
    return figure


def _tokens(x: int, side: _Column) -> go.Scatter:
    """Tokens, each with a dot where its lines begin; x: 0 at the left, 1 at the right."""
    colours = style.LIGHT
    text, dot = (
        [strong if at in side.linked else colours.muted for at in range(len(side.labels))]
        for strong in (colours.text, colours.accent)
    )
    shown = [style.fitted(label, COLUMN_PX)[0] for label in side.labels]
    if side.numbers:
        shown = [f"{one} {label}" for one, label in zip(side.numbers, shown, strict=True)]
    return go.Scatter(
        x=[x] * len(shown), y=list(range(len(shown))), mode="markers+text", text=shown,
        textposition="middle right" if x else "middle left", cliponaxis=False,
        textfont={"size": style.FONT_SIZE, "color": text}, marker={"size": 6, "color": dot},
        customdata=list(side.hover), hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip


def _lines(
    ends: Sequence[Link], widths: tuple[float, float], opacities: tuple[float, float]
) -> list[go.Scatter]:
    """One trace for all lines of similar weight. ends: (place at the left, at the right, weight);
    widths in px and opacities: at weights 0 and 1."""
    buckets: dict[int, list[Link]] = {}
    for line in ends:
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


def named(column: str, position: int, label: str) -> str:
    """A token for a hover label: "query 3: cat"; column: "query", "key", "source" or "target"."""
    return f"{say(column)} {position}: {style.hover(label)}"


def _reading(query: str, key: str, weight: float) -> str:
    """How much a query reads a key, for a hover label."""
    values = {"from": query, "to": key, "weight": numeral(weight, ".4f")}
    return say("{from} reads {to}, {weight}", **values)


# One head's queries and keys


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

    At most MOST_LINES lines are drawn, the strongest, which come first in `layout.meta`; the
    subtitle says so. A head that is switched off has none. Raises ValueError, listing what is
    allowed, for an unknown site, head, query, threshold or row.
    """
    view = head_view(run, site, head, row)
    check_number("threshold", threshold, 0.0, 1.0)
    strong = view.allowed & (view.weights >= threshold) & bool(view.weights.any())
    if query is not None:
        check_whole("query", query, 0, len(strong) - 1)
        strong &= np.arange(len(strong))[:, None] == query
    links = [(q, k, float(view.weights[q, k])) for q, k in np.argwhere(strong).tolist()]
    shown = sorted(links, key=lambda link: -link[2])[:MOST_LINES]
    least = numeral(threshold, "g")
    subtitle = f"all weights of at least {least}"
    if len(links) > MOST_LINES:
        subtitle = f"the strongest {MOST_LINES:,} of {len(links):,} weights of at least {least}"
    faint = query is None
    attention = attention_name(view.site.stack, view.site.kind)
    name = head_name(view.head, view.is_off)
    whose = "all queries" if query is None else f"query {query}"
    return _figure(
        f"Lines: {attention}, layer {view.site.layer}, {name}, {whose}",
        subtitle,
        _queries_and_keys(view, query, shown),
        _lines(shown, (1, 3) if faint else (1, 8), (0.12, 0.62) if faint else (0.35, 1)),
        meta={
            "query_labels": list(view.query_labels),
            "key_labels": list(view.key_labels),
            "links": [list(link) for link in shown],
            "query": query,
            "threshold": threshold,
        },
    )


def _queries_and_keys(
    view: HeadView, query: int | None, links: Sequence[Link]
) -> tuple[_Column, _Column]:
    queries = [[named("query", at, label)] for at, label in enumerate(view.query_labels)]
    keys = [[named("key", at, label)] for at, label in enumerate(view.key_labels)]
    for q, k, weight in links:
        for texts in (queries[q], keys[k]):
            if len(texts) < 4:  # the name and the three strongest lines
                texts.append(_reading(queries[q][0], keys[k][0], weight))
    asking = {link[0] for link in links} if query is None else {query}
    read = {key: numeral(weight, ".2f") for _, key, weight in links}
    numbers = {} if query is None else read
    return (
        _Column(say("query"), view.query_labels, list(map("<br>".join, queries)), asking),
        _Column(
            say("weight, key"), view.key_labels, list(map("<br>".join, keys)), set(read),
            [numbers.get(key, _NO_NUMBER) for key in range(len(keys))],
        ),
    )  # fmt: skip


# The tokens of a translation

_BY = {  # the subtitle, and why a target token has no line
    "written": (
        "lines: read most by the query that predicted a token",
        mark("nothing predicted it"),
    ),
    "read": (
        "lines: read most by the target token's own query",
        mark("written last, not read again"),
    ),
}
_WHEN = Choice(
    title=mark("When the word is"),
    options={"written": mark("written"), "read": mark("read")},
    default="written",
    link="by",
)


def alignment(
    run: Run | Batch,
    layer: Annotated[Head, HeadOrMean(title="Layer", default="mean")],
    head: Annotated[Head, HeadOrMean(title="Head", default="mean")],
    *,
    row: int = 0,
    by: Annotated[str, _WHEN] = "written",
) -> go.Figure:
    """Source tokens left, target tokens right, and a line from each target token to the source
    token that it read most, wider and stronger the larger the weight (fixed scale, 0 to 1).

    layer, head: an index, or "mean" for the average over all of them; row: which text of a Batch.
    by: whose reading a token's line shows; a query at one position predicts the token at the next.
      "written": that of the query one position before, which predicted the token. The start token
        has no line, since nothing predicted it; the last written one (the end token) has one.
      "read": that of the token's own query, which predicts the next token. The start token has a
        line; a last token that the network did not read again has none.
    Raises ValueError, listing what is allowed, for a run without cross-attention and for an
    unknown layer, head, row or by.
    """
    weights = alignment_weights(run, layer, head, row=row, by=by)
    links = [
        (target, int(read.argmax()), float(read.max()))
        for target, read in enumerate(weights)
        if np.nan_to_num(read).any()
    ]
    source, target = _tokens_of(run, row)
    layers = "mean of all layers" if layer == "mean" else say("layer {layer}", layer=layer)
    heads = "mean of heads" if head == "mean" else say("head {head}", head=head)
    return _figure(
        f"Alignment: {layers}, {heads}",
        _BY[by][0],
        _sources_and_targets(source, target, weights, links, by),
        _lines([(read, reader, weight) for reader, read, weight in links], (1, 6), (0.2, 1)),
        meta={
            "source_labels": list(source),
            "target_labels": list(target),
            "links": [list(link) for link in links],
        },
    )


def alignment_weights(
    run: Run | Batch, layer: Head, head: Head, *, row: int = 0, by: str = "written"
) -> NDArray[np.float32]:
    """(Tt, Ts), without padding: the weights with which each target token reads, NaN where no query
    is its own; 0 of heads that are switched off. Arguments and errors as of `alignment`."""
    check_choice("by", by, _BY)
    sites = sites_of(run, "decoder", "cross")
    check_head(layer, len(sites), "layer")
    views = [head_view(run, site, head, row) for site in sites if layer in ("mean", site.layer)]
    n_heads = n_heads_at(run.trace, sites[0]) if head == "mean" else 1
    on = np.array([n_heads - len(view.off) for view in views])
    queries = sum(n * view.weights for n, view in zip(on, views, strict=True)) / max(1, on.sum())
    source, target = _tokens_of(run, row)
    shift = 1 if by == "written" else 0
    queries = queries[: len(target) - shift, : len(source)]
    weights = np.full((len(target), len(source)), np.nan, dtype=np.float32)
    weights[shift : shift + len(queries)] = queries
    return weights


def _tokens_of(run: Run | Batch, row: int) -> tuple[Sequence[str], Sequence[str]]:
    """The source's and the target's labels, without padding, which is on the right."""
    if isinstance(run, Run):
        return run.source_labels, run.labels
    source, target = (
        run.queries(stack, row)[: int(run.is_token(stack)[row].sum())]
        for stack in ("encoder", "decoder")
    )
    return source, target


def _sources_and_targets(
    source: Sequence[str],
    target: Sequence[str],
    weights: NDArray[np.float32],
    links: Sequence[Link],
    by: str,
) -> tuple[_Column, _Column]:
    read = [link[1] for link in links]
    linked = {link[0] for link in links}
    sources = [named("source", position, label) for position, label in enumerate(source)]
    targets = [named("target", position, label) for position, label in enumerate(target)]

    def readings(position: int) -> str:
        """The query with the two tokens that it reads most, or why it has no line."""
        if position not in linked:
            return say(_BY[by][1] if links else mark("switched off"))
        query, row = targets[position - (by == "written")], weights[position]
        best = np.argsort(-row, kind="stable")[:2]
        return "<br>".join(_reading(query, sources[key], row[key]) for key in best)

    of_sources = [
        say("{token}<br>read most by {count} target tokens", token=name, count=read.count(position))
        for position, name in enumerate(sources)
    ]
    of_targets = [f"{name}<br>{readings(position)}" for position, name in enumerate(targets)]
    return (
        _Column(say("source"), source, of_sources, set(read)),
        _Column(say("target"), target, of_targets, linked),
    )
