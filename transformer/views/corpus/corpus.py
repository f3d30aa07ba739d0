"""The heads of a network as points: what each does over many texts."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

from transformer.analysis.head_measures import ALL
from transformer.messages import numeral, say, say_n
from transformer.model.site_words import attention_name
from transformer.views.drawing import style

SIDE, HEIGHT = 720, 460
PASSAGE, LINE = 240, 60  # characters of a text
COMMAND = "python -m transformer.analysis.corpus"


def heads_over_texts(
    found: Mapping[str, Any] | None,
    kind: str,
    across: str,
    up: str,
    chosen: tuple[Any, Any] = (None, None),
    *,
    dark: bool = False,
) -> go.Figure:
    """Every head of a kind of attention ("decoder.self") by two metrics, or "cost".

    found: a model's `heads`; None draws one sentence. chosen: (layer, head), which is marked. A
    head without one of the two numbers is left out. `layout.meta` has row_labels and column_labels.
    """
    points = [
        (one, x, y)
        for one in (found or {}).get("heads", ())
        if one["kind"] == kind
        for x, y in [(number(one, across), number(one, up))]
        if x is not None and y is not None
    ]
    if found is None or not points:
        return _nothing(found, dark)
    colours = style.theme(dark)
    marked = [(one["layer"], one["head"]) == tuple(chosen) for one, _, _ in points]
    names = [f"{one['layer']}·{one['head']}" for one, _, _ in points]
    trace = go.Scatter(
        x=[x for _, x, _ in points],
        y=[y for _, _, y in points],
        mode="markers+text",
        text=names,
        textposition="top center",
        textfont={"size": style.FONT_SIZE, "color": colours.muted},
        marker={
            "size": [16 if one else 9 for one in marked],
            "color": [colours.second if one else colours.accent for one in marked],
        },
        customdata=[_passage(found, one, up) for one, _, _ in points],
        hovertemplate=say("head %{text}: %{x:.3f} across, %{y:.3f} up")
        + "<br>%{customdata}<extra></extra>",
    )
    subtitle = say_n(
        "{attention}; mean over {n} text",
        "{attention}; means over {n} texts",
        found["n_texts"],
        attention=attention_name(*kind.split(".")),
    )
    axes = {
        "xaxis": style.axis(title_of(across), dark=dark),
        "yaxis": style.axis(title_of(up), dark=dark),
    }
    layout = style.layout(
        say("Each head over many texts"), subtitle, dark=dark, width=SIDE, height=HEIGHT,
        meta={"row_labels": names, "column_labels": [across, up]}, showlegend=False, **axes,
    )  # fmt: skip
    return go.Figure(data=[trace], layout=layout)


def number(head: Mapping[str, Any], name: str) -> float | None:
    """A head's mean of a metric, or what its silence costs; None where that is unknown."""
    if name == "cost":
        return None if head.get("cost") is None else float(head["cost"])
    found = head["metrics"].get(name)
    return None if found is None else float(found["mean"])


def title_of(name: str) -> str:
    """A metric as an axis is called."""
    if name == "cost":
        return say("what silencing it adds to the loss (nats a token)")
    unit = ALL[name].unit
    return say(ALL[name].title) + (f" ({say(unit)})" if unit else "")


def _passage(found: Mapping[str, Any], head: Mapping[str, Any], name: str) -> str:
    """The text where a head's number is largest, in lines."""
    metric = head["metrics"].get(name)
    if metric is None or not metric["strongest"]:
        return ""
    value, index = metric["strongest"][0]
    text = style.shorten(str(found["texts"].get(str(index), "")), PASSAGE)
    lines = "<br>".join(style.label(line, LINE) for line in textwrap.wrap(text, LINE))
    return say("{value} in:", value=numeral(value, ".3f")) + f"<br>{lines}"


def _nothing(found: Mapping[str, Any] | None, dark: bool) -> go.Figure:
    words = (
        say("This model comes without such numbers; {command} measures them.", command=COMMAND)
        if found is None
        else say("No head of this attention has both numbers.")
    )
    hidden = {"visible": False}
    layout = style.layout(
        say("Each head over many texts"), words, dark=dark, width=SIDE, height=90,
        xaxis=hidden, yaxis=hidden, meta={"row_labels": [], "column_labels": []},
    )  # fmt: skip
    return go.Figure(layout=layout)
