"""One head as lines between two columns of tokens: from the queries, left, to the keys that they
read, right.

`layout.meta` carries, for a page's own script, query_labels and key_labels as plain, unescaped
text, and links as [query position, key position, weight], strongest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from transformer.checks import check_number, is_whole
from transformer.messages import invalid, mark, numeral, say
from transformer.network_words import attention_name
from transformer.runs.head_data import Head, HeadView, SiteLike, head_view
from transformer.runs.run import Batch, Run
from transformer.views.drawing import style
from transformer.views.drawing.columns import Column, columns_figure, drawn_lines

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
    """Every allowed weight of at least `threshold` (of one query, or of all), strongest first.

    Raises ValueError, listing what is allowed, for an unknown site, head, query, threshold or row.
    """
    return _links(head_view(run, site, head, row), query, threshold)


def query_lines(
    run: Run | Batch,
    site: SiteLike,
    head: Head,
    query: int | None = None,
    threshold: float = 0.05,
    *,
    row: int = 0,
    dark: bool = False,
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
    lines = drawn_lines(
        shown,
        (1, 3) if faint else (1, 8),
        (0.12, 0.62) if faint else (0.35, 1),
    )
    return columns_figure(
        _title(view, query),
        _subtitle(len(links), threshold),
        say("width and opacity: weight, 0 to 1"),
        _columns(view, query, shown),
        lines,
        column_px=COLUMN_PX,
        room=44,
        dark=dark,
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
    last = len(view.query_labels) - 1
    if query is not None and not (is_whole(query) and 0 <= query <= last):
        raise invalid(
            "query must be a whole number from 0 to {last}, or None; got {got}",
            last=last,
            got=repr(query),
        )
    strong = view.allowed & (view.weights >= threshold)
    if query is not None:
        strong &= np.arange(len(strong))[:, None] == query
    found = [Link(q, k, float(view.weights[q, k])) for q, k in np.argwhere(strong).tolist()]
    return sorted(found, key=lambda link: -link.weight)


def _title(view: HeadView, query: int | None) -> str:
    head = say("mean of all heads") if view.head == "mean" else say("head {head}", head=view.head)
    return say(
        "Lines: {attention}, layer {layer}, {head}, {whose}",
        attention=attention_name(view.site.stack, view.site.kind),
        layer=view.site.layer,
        head=head,
        whose=say("all queries") if query is None else say("query {query}", query=query),
    )


def _subtitle(count: int, threshold: float) -> str:
    least = numeral(threshold, "g")
    if count <= MOST_LINES:
        return say("all weights of at least {threshold}", threshold=least)
    return say(
        "the strongest {most_lines} of {count} weights of at least {threshold}",
        most_lines=numeral(MOST_LINES),
        count=numeral(count),
        threshold=least,
    )


def _columns(view: HeadView, query: int | None, links: Sequence[Link]) -> tuple[Column, Column]:
    asking = {link.query for link in links} if query is None else {query}
    read = {link.key for link in links}
    numbers = {} if query is None else {link.key: numeral(link.weight, ".2f") for link in links}
    before = [numbers.get(position, _NO_NUMBER) for position in range(len(view.key_labels))]
    return (
        Column(say("query"), view.query_labels, _hover(view, links, "query"), asking),
        Column(say("weight, key"), view.key_labels, _hover(view, links, "key"), read, before),
    )


_LINKED = {
    "query": (
        mark("query {place}: {name}"), mark("reads key {at}: {name}, weight {weight}"), "key",
    ),
    "key": (
        mark("key {place}: {name}"),
        mark("is read by query {at}: {name}, weight {weight}"),
        "query",
    ),
}  # fmt: skip


def _hover(view: HeadView, links: Sequence[Link], side: str) -> list[str]:
    """For each token its name and the three strongest of its lines."""
    labels = view.query_labels if side == "query" else view.key_labels
    others = view.key_labels if side == "query" else view.query_labels
    heading, sentence, other = _LINKED[side]
    texts = [
        [say(heading, place=position, name=style.hover(label))]
        for position, label in enumerate(labels)
    ]
    for link in links:
        mine = texts[getattr(link, side)]
        if len(mine) < 4:
            at = getattr(link, other)
            name, weight = style.hover(others[at]), numeral(link.weight, ".4f")
            mine.append(say(sentence, at=at, name=name, weight=weight))
    return ["<br>".join(text) for text in texts]
