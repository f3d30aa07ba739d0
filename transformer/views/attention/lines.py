"""Lines between two columns of tokens: from one head's queries to the keys that they read, and from
each target token of a translation to the source token that it read most.

`layout.meta` carries, for a script, the labels of both columns as plain, unescaped text
(query_labels and key_labels, or target_labels and source_labels) and links, each [position of the
token that reads, position of the token that is read, weight].

The page gets the columns alone, once for all heads: see `answer_columns`. It draws the lines of a
head's numbers between them (attention/lines.js).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.checks import check_choice, check_number, check_whole
from transformer.messages import mark, numeral, say
from transformer.network_words import attention_name, head_name
from transformer.runs.batch import Batch
from transformer.runs.head_data import (
    Head,
    SiteLike,
    check_head,
    head_view,
    n_heads_at,
    sites_of,
)
from transformer.runs.run import Run
from transformer.views.declaration import Answer
from transformer.views.drawing import style
from transformer.views.parameters import HEAD, KIND, QUERY, SITE, STACK, Choice, HeadOrMean, Number

ROW_PX, MIN_HEIGHT, TOP_PX, BELOW_PX = 24, 200, 72, 48
COLUMN_PX = 106  # two columns of this width leave room for the lines on a phone
N_BUCKETS = 8  # lines of similar weight are one trace: a trace a line would take seconds to draw
MOST_LINES = 2000  # of all queries together; more are neither drawn in time nor told apart
MOST_READINGS = 3  # in the hover label of a token
_NO_NUMBER = "\u2007\u2008\u2007\u2007"  # as wide as "0.12"

Link = tuple[int, int, float]  # places at the left and at the right, weight
Reading = tuple[int | None, int, str]  # the same places, and what their hover labels say


def answer_columns(
    run: Run | Batch,
    *,
    stack: Annotated[str, STACK],
    kind: Annotated[str, KIND],
) -> Answer:
    """Figures without lines, by the name of the picture: of "lines", and for cross-attention of
    "alignment"."""
    columns = {"lines": _queries_and_keys(run, stack, kind, 0)}
    return columns | ({"alignment": _translation(run, 0)} if kind == "cross" else {})


def _queries_and_keys(run: Run | Batch, stack: str, kind: str, row: int) -> dict[str, Any]:
    """Queries left, keys right with room for a number in front of each."""
    view = head_view(run, sites_of(run, stack, kind)[0], 0, row)
    strokes = {"all": _strokes((1, 3), (0.12, 0.62)), "one": _strokes((1, 8), (0.35, 1))}
    tokens = {"query": view.query_labels, "key": view.key_labels}
    columns = _columns(tokens, [say("query"), say("weight, key")], strokes)
    keys = columns["data"][1]
    keys["text"] = [f"{_NO_NUMBER} {text}" for text in keys["text"]]
    columns["layout"]["margin"]["r"] += 44
    return columns


def _translation(run: Run | Batch, row: int) -> dict[str, Any]:
    """The source left, the target right."""
    tokens = dict(zip(("source", "target"), _tokens_of(run, row), strict=True))
    return _columns(tokens, [say("source"), say("target")], {"all": _strokes((1, 6), (0.2, 1))})


def _columns(
    tokens: Mapping[str, Sequence[str]], headings: list[str], strokes: dict[str, Any]
) -> dict[str, Any]:
    """Two columns of tokens, by what one is called, below their headings; no axes.

    strokes: of the lines, those of "all" tokens or of "one".
    """
    colours, n_rows = style.LIGHT, max(map(len, tokens.values()))
    fitted = [[style.fitted(label, COLUMN_PX) for label in side] for side in tokens.values()]
    left, right = (max(60, *(12 + width for _, width in side)) for side in fitted)
    sides = [
        {
            "type": "scatter", "x": [x] * len(labels), "y": list(range(len(labels))),
            "text": [text for text, _ in fitted[x]],
            "mode": "markers+text", "textposition": "middle right" if x else "middle left",
            "cliponaxis": False, "textfont": {"size": style.FONT_SIZE}, "marker": {"size": 6},
            "customdata": [named(word, at, label) for at, label in enumerate(labels)],
            "hovertemplate": "%{customdata}<extra></extra>",
        }
        for x, (word, labels) in enumerate(tokens.items())
    ]  # fmt: skip
    heading = {
        "type": "scatter", "x": [0, 1], "y": [-1, -1], "text": headings, "mode": "text",
        "hoverinfo": "skip", "textposition": ["middle left", "middle right"], "cliponaxis": False,
        "textfont": {"size": style.FONT_SIZE, "color": colours.muted},
    }  # fmt: skip
    layout = style.layout(
        "",
        showlegend=False,
        hovermode="closest",
        margin={"l": left, "r": right, "t": TOP_PX, "b": BELOW_PX},
        height=max(MIN_HEIGHT, TOP_PX + ROW_PX * (n_rows + 1) + BELOW_PX),
        xaxis=style.axis(
            say("width and opacity: weight, 0 to 1"), range=[-0.04, 1.04],
            showticklabels=False, ticks="", showline=False, fixedrange=True,
        ),
        yaxis={"visible": False, "fixedrange": True, "range": [n_rows - 0.5, -1.5]},
        meta={
            "labels": [list(labels) for labels in tokens.values()],
            "strokes": strokes,
            "colours": {"text": colours.text, "dot": colours.accent, "unlinked": colours.muted},
        },
    )  # fmt: skip
    return {"data": [*sides, heading], "layout": layout}


def _strokes(widths: tuple[float, float], opacities: tuple[float, float]) -> list[dict[str, Any]]:
    """A trace for all lines of similar weight, still without any. widths in px and opacities: at
    weights 0 and 1."""
    strokes = []
    for bucket in range(N_BUCKETS):
        share = (bucket + 0.5) / N_BUCKETS
        width, opacity = (low + share * (high - low) for low, high in (widths, opacities))
        line = {"width": width, "color": style.LIGHT.accent}
        strokes.append(
            {"type": "scatter", "mode": "lines", "line": line, "opacity": opacity}
            | {"hoverinfo": "skip"}
        )
    return strokes


def _linked(
    columns: dict[str, Any],
    links: Sequence[Link],
    readings: Sequence[Reading],
    query: int | None = None,
) -> dict[str, Any]:
    """The figure with its lines, as the page's script draws them. Tokens without one are muted.

    query: the one whose lines they are, with the weights in front of the keys.
    """
    (*sides, heading), layout = columns["data"], columns["layout"]
    meta, numbers = layout.pop("meta"), sides[1]["text"]
    strokes = meta["strokes"]["all" if query is None else "one"]
    lines = [stroke | {"x": [], "y": []} for stroke in strokes]
    for left, right, weight in links:
        line = lines[min(N_BUCKETS - 1, int(weight * N_BUCKETS))]
        line["x"] += [0, 1, None]
        line["y"] += [left, right, None]
        if query is not None:
            numbers[right] = numeral(weight, ".2f") + numbers[right][len(_NO_NUMBER) :]
    for x, side in enumerate(sides):
        linked = {link[x] for link in links} | ({query} if x == 0 else set())
        for part, name in (("textfont", "text"), ("marker", "dot")):
            colours = [meta["colours"][name if at in linked else "unlinked"] for at in side["y"]]
            side[part]["color"] = colours
        for place, name in enumerate(side["customdata"]):
            said = [reading[2] for reading in readings if reading[x] == place]
            side["customdata"][place] = "<br>".join([name, *said[:MOST_READINGS]])
    drawn = [line for line in lines if line["x"]]
    return {"data": [*drawn, *sides, heading], "layout": layout}


def _titled(linked: dict[str, Any], title: str, subtitle: str, meta: dict[str, Any]) -> go.Figure:
    figure = go.Figure(linked)
    figure.update_layout(title={"text": title, "subtitle": {"text": subtitle}}, meta=meta)
    figure.layout.title.update(xref="container", pad={"t": 12, "l": 12})  # not at the wide margin
    return figure


def named(column: str, position: int, label: str) -> str:
    """A token for a hover label: "query 3: cat"; column: "query", "key", "source" or "target"."""
    return say("{title}: {part}", title=f"{say(column)} {position}", part=style.hover(label))


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
    strongest = sorted(links, key=lambda link: -link[2])[:MOST_LINES]
    least = numeral(threshold, "g")
    subtitle = f"all weights of at least {least}"
    if len(links) > MOST_LINES:
        subtitle = f"the strongest {MOST_LINES:,} of {len(links):,} weights of at least {least}"
    attention = attention_name(view.site.stack, view.site.kind)
    name = head_name(view.head, view.is_off)
    whose = "all queries" if query is None else f"query {query}"
    columns = _queries_and_keys(run, view.site.stack, view.site.kind, row)
    queries, keys = (list(side["customdata"]) for side in columns["data"][:2])
    readings = [(q, k, _reading(queries[q], keys[k], weight)) for q, k, weight in strongest]
    return _titled(
        _linked(columns, strongest, readings, query),
        f"Lines: {attention}, layer {view.site.layer}, {name}, {whose}",
        subtitle,
        meta={
            "query_labels": list(view.query_labels),
            "key_labels": list(view.key_labels),
            "links": [list(link) for link in strongest],
            "query": query,
            "threshold": threshold,
        },
    )


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
    weights = np.nan_to_num(alignment_weights(run, layer, head, row=row, by=by))
    columns = _translation(run, row)
    sources, targets = (list(side["customdata"]) for side in columns["data"][:2])
    best = [np.argsort(-read, kind="stable")[:2].tolist() for read in weights]  # the first: a line
    links: list[Link] = [
        (source, target, float(weights[target, source]))
        for target, (source, *_) in enumerate(best)
        if weights[target, source]
    ]
    linked, shift = {link[1] for link in links}, int(by == "written")
    readings: list[Reading] = [
        (source, target, _reading(targets[target - shift], sources[source], weight))
        for target in linked
        for source in best[target]
        if (weight := float(weights[target, source]))
    ]
    why = say(_BY[by][1] if links else mark("switched off"))
    readings += [(None, at, why) for at in range(len(targets)) if at not in linked]
    layers = "mean of all layers" if layer == "mean" else say("layer {layer}", layer=layer)
    heads = "mean of heads" if head == "mean" else say("head {head}", head=head)
    source_labels, target_labels = _tokens_of(run, row)
    return _titled(
        _linked(columns, links, readings),
        f"Alignment: {layers}, {heads}",
        _BY[by][0],
        meta={
            "source_labels": list(source_labels),
            "target_labels": list(target_labels),
            "links": [[target, source, weight] for source, target, weight in links],
        },
    )


def alignment_weights(
    run: Run | Batch, layer: Head, head: Head, *, row: int = 0, by: str = "written"
) -> NDArray[np.float32]:
    """(Tt, Ts), without padding: the weights with which each target token reads, NaN where no query
    is its own; 0 for heads that are switched off. Arguments and errors as in `alignment`."""
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
