"""Frames of matrices: queries by keys, hatched where they are empty, and layers by heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.messages import say, say_list
from transformer.views.drawing import style

HATCHES = 44
TEXT_LIMIT = 64  # tokens on a side: more texts of cells would be ten times all the rest


def matrix_figure(
    cells: go.Heatmap,
    title: str,
    subtitle: str,
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    *,
    meta: dict[str, Any],
) -> go.Figure:
    """A matrix of queries by keys with `matrix_layout`."""
    layout = matrix_layout(query_labels, key_labels, meta, title, subtitle)
    return go.Figure(data=cells, layout=layout)


def matrix_layout(
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    meta: dict[str, Any],
    title: str = "",
    subtitle: str = "",
) -> dict[str, Any]:
    """Query 0 on top, square cells, those that are NaN hatched.

    meta: more than the labels, which it holds as plain text: query_labels and key_labels.
    """
    labels = {"query_labels": list(query_labels), "key_labels": list(key_labels)}
    return style.layout(
        title,
        subtitle,
        meta=labels | meta,
        shapes=[hatching(len(query_labels), len(key_labels))],
        xaxis=style.token_axis(
            say("key (the token that is read)"), key_labels,
            range=[-0.5, len(key_labels) - 0.5], constrain="domain",
            tickangle=-90 if len(key_labels) > 3 else 0,
        ),
        yaxis=style.token_axis(
            say("query (the token that reads)"), query_labels,
            range=[len(query_labels) - 0.5, -0.5], constrain="domain", constraintoward="top",
            scaleanchor="x",
        ),
    )  # fmt: skip


def cell_hover(
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    ending: str,
    numbers: NDArray[Any],
) -> dict[str, Any]:
    """A cell's position, its two tokens (up to TEXT_LIMIT tokens) and `ending` with the numbers.

    numbers: (Tq, Tk) or (Tq, Tk, n), the customdata that the ending names.
    """
    template = hover_template(query_labels, key_labels, ending)
    options = {"customdata": numbers, "hovertemplate": template}
    if "%{text}" in template:
        keys = [style.hover(text) for text in key_labels]
        options["text"] = [
            [say("{query} reads {key}", query=query, key=key) for key in keys]
            for query in map(style.hover, query_labels)
        ]
    return options


def hover_template(query_labels: Sequence[str], key_labels: Sequence[str], ending: str) -> str:
    """The hover label of `cell_hover`."""
    where = say_list([f"{say('query')} %{{y:d}}", f"{say('key')} %{{x:d}}"])
    few = max(len(query_labels), len(key_labels)) <= TEXT_LIMIT
    first = say("{title}: {part}", title=where, part="%{text}") if few else where
    return first + ending


def hatching(n_rows: int, n_columns: int) -> dict[str, Any]:
    """A shape: faint diagonal lines under a matrix whose cells are at the integers 0, 1, ...

    Cells that are left out (NaN) are see-through, so the lines show there and nowhere else. One
    SVG path however many cells there are.
    """
    path = ""
    for reach in (2 * place / HATCHES for place in range(1, HATCHES)):
        # the part of x + y = reach in the unit square, stretched over the cells
        low, high = max(0.0, reach - 1), min(1.0, reach)
        ends = ((x * n_columns - 0.5, y * n_rows - 0.5) for x, y in ((low, high), (high, low)))
        path += "M" + "L".join(f"{x:.4f},{y:.4f}" for x, y in ends)
    return {
        "type": "path", "path": path, "xref": "x", "yref": "y", "layer": "below",
        "line": {"color": style.LIGHT.hatch, "width": 1},
    }  # fmt: skip


def head_layout(shape: Sequence[int], meta: dict[str, Any]) -> dict[str, Any]:
    """Both axes of heads (down) x layers (across), head 0 on top, and their room; meta: more than
    the names of the rows and of the columns."""
    n_heads, n_layers = shape
    names = {
        "row_labels": [say("head {head}", head=head) for head in range(n_heads)],
        "column_labels": [say("layer {layer}", layer=layer) for layer in range(n_layers)],
    }
    room = {"height": min(484, 154 + 34 * n_heads), "margin": {"t": 72, "r": 8, "l": 44, "b": 44}}
    return room | {"meta": names | meta} | {
        f"{name}axis": style.axis(
            title, range=span, constrain="domain",
            tickmode="linear", tick0=0, dtick=max(1, -(-count // style.MAX_TICKS)),
        )
        for name, title, count, span in (
            ("x", say("layer"), n_layers, [-0.5, n_layers - 0.5]),
            ("y", say("head"), n_heads, [n_heads - 0.5, -0.5]),
        )
    }  # fmt: skip
