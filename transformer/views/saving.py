"""One picture of a run as a file, for the command line: what it draws, or the numbers behind it, as
rows of a table for a spreadsheet or a data frame."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer.checks import shortened
from transformer.runs.run import Run
from transformer.views import PICTURES, VIEWS
from transformer.views.declaration import Picture, takes_argument

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


FORMS: dict[str, Callable[[go.Figure], str]] = {
    ".html": lambda figure: figure.to_html(include_plotlyjs=True, full_html=True),
    ".json": lambda figure: str(figure.to_json(validate=False)),
    ".csv": as_csv,
}


def drawable() -> dict[str, Picture]:
    """The pictures that need a run and nothing else, by name."""
    return {
        name: picture
        for name, picture in PICTURES.items()
        if picture.figure is not None and not picture.network and picture.subject.startswith("run")
        and picture.subject != "runs"
    }  # fmt: skip


def check(name: str, given: Sequence[str], path: Path) -> dict[str, Any]:
    """The parameters that "NAME=VALUE" texts give, before any network has run.

    Raises ValueError for an unknown picture, parameter or file ending.
    """
    pictures = drawable()
    if name not in pictures:
        raise ValueError(f"the picture must be one of {sorted(pictures)}; got {shortened(name)}")
    if path.suffix not in FORMS:
        raise ValueError(
            f"a picture's file must end in one of {list(FORMS)}; got {shortened(path.name)}"
        )
    known = {parameter.name: parameter for parameter in pictures[name].parameters}
    values: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or key not in known:
            raise ValueError(
                f"{name} takes NAME=VALUE with one of {sorted(known)}; got {shortened(text)}"
            )
        values[key] = known[key].read(value)
    return pictures[name].checked(values)


def save(run: Run, name: str, values: dict[str, Any], path: Path) -> None:
    """Draw it and write it. Raises ValueError where the run lacks what it shows."""
    picture = PICTURES[name]
    figure = picture.ask(run, given=values, item=run).get("figure")
    if figure is None and picture.figure is not None:  # its page's script draws from numbers
        draw = picture.figure
        figure = draw(run, **{key: one for key, one in values.items() if takes_argument(draw, key)})
    path.write_text(FORMS[path.suffix](figure), encoding="utf-8")


def listing() -> str:
    """Every picture with its sentence and parameters, as `--pictures` prints it."""
    pictures = drawable()
    lines: list[str] = []
    for view in VIEWS.values():
        for picture in view.pictures:
            if picture.name in pictures:
                lines.append(f"{picture.name}: {picture.help}")
                for schema in (one.schema() for one in picture.parameters):
                    options, most = schema.get("options"), schema.get("most")
                    allowed = f", one of {', '.join(options)}" if options else ""
                    allowed += f", from {schema['least']}" if "least" in schema else ""
                    allowed += "" if most is None else f" to {most}"
                    default = json.dumps(schema["default"])
                    lines.append(f"    {schema['name']}={default} ({schema['type']}{allowed})")
    return "\n".join(lines)
