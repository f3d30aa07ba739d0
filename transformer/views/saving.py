"""One picture of a run as a file, for the command line: what it draws, or the numbers behind it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from transformer.messages import invalid
from transformer.runs.run import Run
from transformer.views import PICTURES, VIEWS
from transformer.views.declaration import Picture, takes_argument
from transformer.views.drawing.table import as_csv

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
        raise invalid(
            "the picture must be one of {allowed}; got {got}",
            allowed=sorted(pictures),
            got=repr(name),
        )
    if path.suffix not in FORMS:
        raise invalid(
            "a picture's file must end in one of {allowed}; got {got}",
            allowed=list(FORMS),
            got=repr(path.name),
        )
    known = {parameter.name: parameter for parameter in pictures[name].parameters}
    values: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or key not in known:
            raise invalid(
                "{name} takes NAME=VALUE with one of {allowed}; got {got}",
                name=name,
                allowed=sorted(known),
                got=repr(text),
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
