"""The numbers of any figure as rows of a table, for a spreadsheet or a data frame."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

_MARKS = str.maketrans("", "", "\u2066\u2067\u2068\u2069")  # an axis label's direction
_TAGS = re.compile(r"</?[a-z]+>")  # what a label stands in; those of its text are escaped


def rows_of(figure: go.Figure) -> Iterator[list[Any]]:
    """Rows, the first of them a heading; an empty row before each further trace.

    A heatmap has a row a query and a column a key, under the labels of its axes; of any other trace
    each point is a row: its name, its place and its value. Cells without a number are empty.
    """
    for index, trace in enumerate(figure.data):
        if index:
            yield []
        if getattr(trace, "z", None) is not None:
            yield from _cells(figure, trace)
        elif getattr(trace, "x", None) is not None or getattr(trace, "y", None) is not None:
            yield from _points(figure, trace)


def as_csv(figure: go.Figure) -> str:
    """The same as comma-separated values, lines ended as RFC 4180 has it."""
    text = io.StringIO()
    csv.writer(text).writerows(rows_of(figure))
    return text.getvalue()


def _cells(figure: go.Figure, trace: Any) -> Iterator[list[Any]]:
    values = np.asarray(trace.z)
    rows = _labels(_axis(figure, trace, "y"), trace.y, len(values))
    columns = _labels(_axis(figure, trace, "x"), trace.x, values.shape[1])
    yield ["", *columns]
    for label, row in zip(rows, values, strict=True):
        yield [label, *(_plain(value) for value in row)]


def _points(figure: go.Figure, trace: Any) -> Iterator[list[Any]]:
    x, y = ([] if side is None else list(side) for side in (trace.x, trace.y))
    count = max(len(x), len(y))
    name = trace.name or ""
    titles = [_axis(figure, trace, side).title.text or side for side in "xy"]
    yield ["trace", *titles]
    for at in range(count):
        pair = [_plain(side[at]) if at < len(side) else at for side in (x, y)]
        axes = [_axis(figure, trace, side) for side in "xy"]
        yield [name, *(_named(axis, value) for axis, value in zip(axes, pair, strict=True))]


def _axis(figure: go.Figure, trace: Any, side: str) -> Any:
    number = str(getattr(trace, f"{side}axis", None) or side).removeprefix(side)
    return figure.layout[f"{side}axis{number}"]


def _labels(axis: Any, places: Sequence[Any] | None, count: int) -> list[Any]:
    at = list(range(count)) if places is None else list(places)
    return [_named(axis, _plain(place)) for place in at[:count]]


def _named(axis: Any, value: Any) -> Any:
    """A place of an axis that has labels, by its label."""
    if axis.tickvals is None or axis.ticktext is None:
        return value
    known = dict(zip(map(float, axis.tickvals), axis.ticktext, strict=False))
    label = known.get(value) if isinstance(value, int | float) else None
    return value if label is None else html.unescape(_TAGS.sub("", str(label).translate(_MARKS)))


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return "" if value is None or (isinstance(value, float) and np.isnan(value)) else value
