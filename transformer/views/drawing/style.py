"""What all figures share: palette, fonts, layout, and how token labels go onto an axis."""

from __future__ import annotations

import base64
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.messages import numeral, say_list, signs

MAX_TICKS = 32  # an axis: more labels cannot be read and take longer to draw than the cells
TICK_CHARACTERS = 14
COLUMN_PX = 22  # the least that a bar with an upright label needs
HOVER_CHARACTERS = 60
TRANSPARENT = "rgba(0,0,0,0)"
LEGEND_ABOVE = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"}

_ISOLATE, _RELEASE = "\u2068", "\u2069"  # keep a right-to-left token from turning its neighbours


@dataclass(frozen=True, kw_only=True, slots=True)
class Theme:
    """Colours of one mode, as web/theme.css says. Papers are transparent: the page's own background
    shows through."""

    text: str
    muted: str
    line: str
    accent: str
    key: str
    hatch: str
    groups: tuple[str, ...]
    diverging: tuple[str, ...]  # low, ..., zero, ..., high
    effects: tuple[str, ...]  # takes away, ..., none, ..., adds
    weights: tuple[str, ...]


def _declared(selector: str) -> dict[str, str]:
    """What theme.css says of a mode, by name."""
    css = (Path(__file__).parents[2] / "web" / "theme.css").read_text(encoding="utf-8")
    block = css[css.index(f"\n{selector} {{") :].partition("}")[0]
    return dict(re.findall(r"--viz-([\w-]+): ([^;]+);", block))


def _theme_of(said: Mapping[str, str]) -> Theme:
    several = ("groups", "diverging", "effects", "weights")
    values: dict[str, Any] = {field.name: said[field.name] for field in fields(Theme)}
    return Theme(**values | {name: tuple(said[name].split()) for name in several})


_SAID = _declared(":root")
PAPER = _SAID["paper"]  # a notebook may be dark, and texts are; the page has its own
FONT = _SAID["font"]
FONT_SIZE = int(_SAID["font-px"])
TITLE_SIZE = int(_SAID["title-px"])
LIGHT = _theme_of(_SAID)
DARK = _theme_of(_SAID | _declared(".dark"))


def _evenly(colours: Sequence[str]) -> list[list[Any]]:
    return [[place / (len(colours) - 1), colour] for place, colour in enumerate(colours)]


# From nearly the page's own colour at 0 to the farthest from it.
WEIGHTS = _evenly(LIGHT.weights)
DIVERGING = _evenly(LIGHT.diverging)  # purple, neutral, green
EFFECTS = _evenly(LIGHT.effects)  # purple, neutral, orange


def signed(bound: float) -> dict[str, Any]:
    """Colours of a heatmap's values from -bound to bound, with 0 in the middle."""
    return {"colorscale": DIVERGING, "zmin": -bound, "zmax": bound}


def ends(bound: float) -> dict[str, str]:
    """Both ends of these colours, as a sentence's {least} and {most}."""
    return {"least": numeral(-bound, ".3g"), "most": numeral(bound, ".3g")}


def cell_hover(rows: str, columns: str, value: str) -> str:
    """The hover template of a heatmap, from the names of its axes and of its numbers."""
    return (
        say_list([f"{rows} %{{y}}", f"{columns} %{{x}}"]) + f"<br>{value} %{{z:.4f}}<extra></extra>"
    )


def signed_cells(
    values: NDArray[Any], hover: str, *, bound: float | None = None, bar: str = "", **more: Any
) -> go.Heatmap:
    """A heatmap of signed values, by default to the largest of them; bar: its colour bar's title,
    without which it has none."""
    colours = signed(bound_of(values) if bound is None else bound)
    legend = {"colorbar": colorbar(bar)} if bar else {"showscale": False}
    return go.Heatmap(z=values, hovertemplate=hover, **(colours | legend | more))


def typed(part: Any) -> Any:
    """A figure's part with its arrays as Plotly's JSON has them: their bytes."""
    if isinstance(part, dict):
        return {name: typed(value) for name, value in part.items()}
    if isinstance(part, list):
        return [typed(value) for value in part]
    if not isinstance(part, np.ndarray):
        return part
    little = np.ascontiguousarray(part, part.dtype.newbyteorder("<"))
    kind = f"{part.dtype.kind}{part.dtype.itemsize}"
    packed = {"dtype": kind, "bdata": base64.b64encode(little.tobytes()).decode("ascii")}
    return packed if part.ndim == 1 else packed | {"shape": ", ".join(map(str, part.shape))}


def heading(text: str, x: float, y: float) -> dict[str, Any]:
    """An annotation at a position of the whole picture, from 0 to 1."""
    return {
        "text": text, "xref": "paper", "yref": "paper", "x": x, "y": y,
        "xanchor": "left", "yanchor": "bottom", "showarrow": False,
    }  # fmt: skip


def bound_of(values: NDArray[Any], least: float = 1.0) -> float:
    """The largest of these values, up or down, without NaN; where all are 0, `least`."""
    return float(np.nanmax(np.abs(values), initial=0.0)) or least


def escape(text: str) -> str:
    """Text that Plotly shows unchanged: &, < and > no longer start an entity or a tag."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, the last one an ellipsis if some were left out."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def label(text: str, limit: int = TICK_CHARACTERS) -> str:
    """A token for Plotly text: shortened, escaped, isolated from the direction of other text."""
    return _ISOLATE + escape(shorten(text, limit)) + _RELEASE


def hover(text: str) -> str:
    """A token for Plotly's hover text, which has more room."""
    return label(text, HOVER_CHARACTERS)


def fitted(text: str, room: int) -> tuple[str, int]:
    """A token for Plotly text, cut to at most `room` px, and its width in px as guessed.

    The guess is generous: nothing here knows the reader's font.
    """
    for limit in range(TICK_CHARACTERS, 0, -1):
        width = sum(map(_pixels, shorten(text, limit)))
        if width <= room:
            break
    return label(text, limit), width


def _pixels(character: str) -> int:
    if unicodedata.east_asian_width(character) in "WF":  # also most emoji
        return 18
    return 13 if character in "mwMW%@…" else 10 if character.isupper() else 8


def axis_labels(labels: Sequence[str]) -> tuple[list[int], list[str]]:
    """(tickvals, ticktext) of an integer axis: one place per token, at most MAX_TICKS labelled.

    Positions are integers, so that repeated tokens keep separate positions.
    """
    stride = max(1, math.ceil(len(labels) / MAX_TICKS))
    places = list(range(0, len(labels), stride))
    return places, [label(labels[place]) for place in places]


def of_text(text: str) -> go.Figure:
    """Lines of plain text as a figure, such as a traceback's."""
    lines = "<br>".join(escape(line) for line in text.splitlines())
    font = {"family": "monospace", "size": 11}
    note = {"text": lines, "align": "left", "showarrow": False, "font": font}
    corner = {"xref": "paper", "yref": "paper", "x": 0, "y": 1, "xanchor": "left", "yanchor": "top"}
    layout = {"annotations": [note | corner], "height": 16 * len(text.splitlines()) + 40}
    return go.Figure(layout=layout | {"template": "none", "xaxis": _NO_AXIS, "yaxis": _NO_AXIS})


_NO_AXIS = {"visible": False}


def figure(data: Any, title: str, subtitle: str = "", **more: Any) -> go.Figure:
    """Traces with `layout`."""
    return go.Figure(data=data, layout=layout(title, subtitle, **more))


def layout(title: str, subtitle: str = "", **more: Any) -> dict[str, Any]:
    """The layout and light colours of every figure; `more` adds or replaces parts.

    title, subtitle: fixed text, never a token's; the page says the title itself, and takes 64 px of
    the room above. The page recolours a figure in the dark theme, see `dark_colours`.
    """
    common = {
        "template": "none",
        "title": {
            "text": title,
            "font": {"size": TITLE_SIZE},
            "x": 0,
            "xref": "paper",
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 12},
            "subtitle": {"text": subtitle, "font": {"size": FONT_SIZE, "color": LIGHT.muted}},
        },
        "font": {"family": FONT, "size": FONT_SIZE, "color": LIGHT.text},
        "paper_bgcolor": PAPER,
        "plot_bgcolor": TRANSPARENT,
        "margin": {"l": 60, "r": 16, "t": 72, "b": 60},
        "modebar": {"bgcolor": TRANSPARENT, "color": LIGHT.muted, "activecolor": LIGHT.accent},
        "separators": signs(),
        "hoverlabel": {"font": {"family": FONT, "size": FONT_SIZE}, "align": "left"},
    }
    return common | more


def axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis with a title; `more` adds to it.

    Plotly measures every label once for each label to find those that stick out of the picture:
    with a hundred of them that takes longer than everything else in a drawing. Here there is room
    for all.
    """
    common = {
        "title": {"text": title, "standoff": 10},
        "showgrid": False,
        "zeroline": False,
        "automargin": True,
        "ticklabeloverflow": "allow",
        "linecolor": LIGHT.line,
        "gridcolor": LIGHT.line,
        "tickcolor": LIGHT.line,
    }
    return common | more


def token_axis(title: str, labels: Sequence[str], **more: Any) -> dict[str, Any]:
    """An axis of tokens at the integers 0, 1, ..."""
    places, texts = axis_labels(labels)
    return axis(title, tickmode="array", tickvals=places, ticktext=texts, **more)


def named_axis(title: str, texts: Sequence[str], **more: Any) -> dict[str, Any]:
    """An axis with a text at each of 0, 1, ...; texts: ready for Plotly."""
    at = {"tickmode": "array", "tickvals": list(range(len(texts))), "ticktext": list(texts)}
    return axis(title, **{"range": [-0.5, len(texts) - 0.5]} | at | more)


def colorbar(title: str, **more: Any) -> dict[str, Any]:
    """A slim colour bar with its title at the side."""
    common = {
        "title": {"text": title, "side": "right", "font": {"size": FONT_SIZE}},
        "thickness": 14,
        "outlinewidth": 0,
        "ypad": 0,
        "ticklabeloverflow": "allow",
        "tickfont": {"size": FONT_SIZE},
    }
    return common | more


@cache
def dark_colours() -> Mapping[str, str]:
    """Map each colour of a light figure to its colour in the dark theme.

    "rgba(r, g, b," matches the colour at any opacity.
    """
    pairs = {
        "rgba(255,255,255,0.8)": "rgba(34,39,46,0.75)",  # behind a note on a picture
        "#000000": "#ffffff",  # on a cell of weights
        "#ffffff": "#000000",
    }
    for name in (field.name for field in fields(Theme)):
        light, dark = getattr(LIGHT, name), getattr(DARK, name)
        if isinstance(light, tuple):
            pairs |= dict(zip(light, dark, strict=True))
        else:
            pairs[light] = dark
            if light.startswith("#"):
                pairs[_channels(light)] = _channels(dark)
    return pairs


def _channels(colour: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue},"
