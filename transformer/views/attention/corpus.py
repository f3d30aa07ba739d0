"""Heads over many texts: every head as a point, by any two of its metrics."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import plotly.graph_objects as go

from transformer.analysis.corpus.dossier import clusters
from transformer.analysis.head_measures import ALL
from transformer.analysis.model_queries import ModelQueries
from transformer.messages import mark, numeral, say, say_list, say_n
from transformer.network_words import attention_name
from transformer.runs.head_data import Head
from transformer.runs.run import Run
from transformer.views.declaration import Answer, view
from transformer.views.drawing import style
from transformer.views.parameters import HEAD, KIND, STACK, Choice, Int

HEIGHT = 620
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "star")  # of the largest clusters
ALONE_SYMBOL = "circle-open"
PASSAGE, LINE = 240, 60  # characters of a text
COMMAND = "python -m transformer.analysis.corpus"


class MeasuredHead(NamedTuple):
    """A head's position, its cluster, and the cluster's distinguishing metrics."""

    head: Mapping[str, Any]
    name: str
    across: float
    up: float
    group: int  # index into SHAPES; len(SHAPES) for a head outside the largest clusters
    words: str
    chosen: bool


def heads_over_texts(
    corpus: Mapping[str, Any] | None,
    kind: str,
    across: str,
    up: str,
    chosen: tuple[Any, Any] = (None, None),
) -> go.Figure:
    """Every head of a kind of attention ("decoder.self") by two metrics, or "cost".

    Each of the largest clusters of similar heads has a colour and a shape; the legend names its
    distinguishing metrics. corpus: a model's `heads`; None draws one sentence. chosen: (layer,
    head), which is marked. A head without one of the two numbers is left out. `layout.meta` has
    row_labels, column_labels and the numbers as a table.
    """
    points = _points(corpus, kind, across, up, chosen)
    if corpus is None or not points:
        words = (
            f"This model comes without such numbers; {COMMAND} measures them."
            if corpus is None
            else "No head of this attention has both numbers."
        )
        hidden = {"visible": False}
        return style.figure(
            [], say("Each head over many texts"), words, height=154,
            xaxis=hidden, yaxis=hidden, meta={"row_labels": [], "column_labels": []},
        )  # fmt: skip
    titles = [title_of(across), title_of(up)]
    traces = [
        _trace(corpus, own, up, titles)
        for group in range(len(SHAPES) + 1)
        if (own := [point for point in points if point.group == group])
    ]
    subtitle = say_n(
        "{attention}; mean over {n} text",
        "{attention}; means over {n} texts",
        corpus["n_texts"],
        attention=attention_name(*kind.split(".")),
    )
    names = [point.name for point in points]
    table = {
        "rows": names,
        "columns": [*titles, say("More than the other heads")],
        "cells": [[point.across, point.up, point.words] for point in points],
        "corner": say("head"),
    }
    return style.figure(
        traces, say("Each head over many texts"), subtitle, height=HEIGHT,
        meta={"row_labels": names, "column_labels": [across, up], "table": table},
        # one below the other: side by side they are cut off on a phone
        legend={
            "title": {"text": say("More than the other heads")},
            "x": 0, "y": -0.22, "yanchor": "top",
        },
        showlegend=True, xaxis=style.axis(titles[0]), yaxis=style.axis(titles[1]),
    )  # fmt: skip


def _points(
    corpus: Mapping[str, Any] | None, kind: str, across: str, up: str, chosen: tuple[Any, Any]
) -> list[MeasuredHead]:
    heads = [head for head in (corpus or {}).get("heads", ()) if head["kind"] == kind]
    member: dict[Any, tuple[int, str]] = {}
    for at, cluster in enumerate(clusters(heads)):
        traits = [say(ALL[name].title) for name in cluster.traits]
        group = at if at < len(SHAPES) and len(cluster.heads) > 1 else len(SHAPES)
        own = group, say_list(traits or [say("nothing in particular")])
        member |= dict.fromkeys(cluster.heads, own)
    points = []
    for head in heads:
        x, y, place = number(head, across), number(head, up), (head["layer"], head["head"])
        if x is not None and y is not None:
            name = f"{place[0]}·{place[1]}"
            points.append(MeasuredHead(head, name, x, y, *member[place], place == tuple(chosen)))
    return points


def _trace(
    corpus: Mapping[str, Any], points: Sequence[MeasuredHead], up: str, titles: Sequence[str]
) -> go.Scatter:
    """The heads of a cluster, or those of none; titles: of both axes."""
    colours, group = style.LIGHT, points[0].group
    alone = group == len(SHAPES)
    colour = colours.muted if alone else colours.groups[group]
    words = say("each on its own") if alone else points[0].words
    return go.Scatter(
        x=[point.across for point in points],
        y=[point.up for point in points],
        name=f"{words} ({len(points)})",
        mode="markers+text",
        text=[point.name for point in points],
        textposition="top center",
        textfont={"size": style.FONT_SIZE, "color": colours.muted},
        marker={
            "symbol": ALONE_SYMBOL if alone else SHAPES[group],
            "size": [16 if point.chosen else 9 for point in points],
            "opacity": 1,
            "color": [colours.text if alone and point.chosen else colour for point in points],
            "line": {
                "color": [colours.text if point.chosen else colour for point in points],
                "width": [3 if point.chosen else 1 for point in points],
            },
        },
        customdata=[f"{point.words}<br>{_passage(corpus, point.head, up)}" for point in points],
        hovertemplate=f"{say('head')} %{{text}}<br>{titles[0]} %{{x:.3f}}<br>{titles[1]} %{{y:.3f}}"
        "<br>%{customdata}<extra></extra>",
    )


def number(head: Mapping[str, Any], name: str) -> float | None:
    """A head's mean of a metric, or the cost of its ablation; None if unknown."""
    if name == "cost":
        return None if head.get("cost") is None else float(head["cost"])
    numbers = head["metrics"].get(name)
    return None if numbers is None else float(numbers["mean"])


def title_of(name: str) -> str:
    """The title of a metric's axis."""
    if name == "cost":
        return say("what ablating it adds to the loss (nats a token)")
    unit = ALL[name].unit
    return say(ALL[name].title) + (f" ({say(unit)})" if unit else "")


def _passage(corpus: Mapping[str, Any], head: Mapping[str, Any], name: str) -> str:
    """The text with a head's largest number, wrapped."""
    metric = head["metrics"].get(name)
    if metric is None or not metric["strongest"]:
        return ""
    value, index = metric["strongest"][0]
    text = style.shorten(str(corpus["texts"].get(str(index), "")), PASSAGE)
    lines = "<br>".join(style.label(line, LINE) for line in textwrap.wrap(text, LINE))
    return say("{value} in:", value=numeral(value, ".3f")) + f"<br>{lines}"


OPTIONS = {name: metric.title for name, metric in ALL.items()} | {"cost": mark("Cost of ablation")}


@view(
    tab=mark("Attention"),
    order=140,
    folded=True,
    title=mark("Each head over many texts"),
    help=mark(
        "One text may be chance. Each point is a head, placed by two of its numbers, each the mean "
        "over many texts; point at one to read a passage where its number is largest. Heads of one "
        "colour and shape behave alike, by all their numbers together."
    ),
    figure=heads_over_texts,
)
def answer_corpus(
    models: ModelQueries,
    item: Run,
    *,
    stack: Annotated[str, STACK],
    kind: Annotated[str, KIND],
    layer: Annotated[int, Int(title="Layer", use="selection")] = 0,
    head: Annotated[Head, HEAD],
    across: Annotated[
        str, Choice(title=mark("Across"), options=OPTIONS, link="across")
    ] = "previous",
    up: Annotated[str, Choice(title=mark("Up"), options=OPTIONS, link="up")] = "induction",
) -> Answer:
    """The heads of one kind of attention of the run's network, over the texts that it was measured
    on; the chosen head is marked."""
    corpus, of = models.model(item.model).heads, f"{stack}.{kind}"
    return {"figure": heads_over_texts(corpus, of, across, up, (layer, head))}
