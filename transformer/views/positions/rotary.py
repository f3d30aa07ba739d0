"""Rotary positions: the angle of each pair, a head's q and k before and after, and the score, which
depends on the distance alone."""

from __future__ import annotations

import math
from html import unescape
from typing import Annotated

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.analysis.rotary import angles_of, rotated_pair, rotates
from transformer.checks import check_whole
from transformer.messages import mark, numeral, say
from transformer.runs.head_data import SiteLike
from transformer.runs.run import Run
from transformer.views.declaration import Answer, View, picture
from transformer.views.drawing import style
from transformer.views.parameters import ONE_HEAD, QUERY, SITE, Int

_KEY = Int(title="Key", use="request")
_PAIR = Int(title="Pair")
Doubles = NDArray[np.float64]
BLUE, ORANGE = "rgb(0,114,178)", "rgb(213,94,0)"  # in both themes
MAX_DISTANCES = 256  # points of the curve
# An arrow before and after the rotation.
_QUERY_SAID = mark("query of token {place}, before"), mark("query of token {place}, after")
_KEY_SAID = mark("key of token {place}, before"), mark("key of token {place}, after")


def rotary_angles(run: Run, site: SiteLike = "decoder.0.self") -> go.Figure:
    """Token by pair: by how many degrees each pair of features of q and k is rotated there."""
    radians, stack = angles_of(run, site), run.trace.find(site).stack
    angles, labels = np.degrees(radians), run.queries(stack)
    used = angles[: len(labels)].astype(np.float32)
    cells = go.Heatmap(
        z=used,
        zmin=0,
        zmax=360,
        colorscale="Twilight",
        customdata=[[style.label(label)] * used.shape[1] for label in labels],
        hovertemplate="%{customdata}<br>"
        + style.cell_hover(say("token"), say("pair"), say("degrees")),
        colorbar={**style.colorbar(say("degrees")), "tickvals": [0, 90, 180, 270, 360]},
    )
    return style.figure(
        [cells],
        "By what angle each pair is rotated",
        say(
            "tokens in which a pair rotates once: {first} for pair 0, the fastest; "
            "{last} for the last",
            first=numeral(_period(radians[:, 0]), ",.1f"),
            last=numeral(_period(radians[:, -1]), ",.0f"),
        ),
        xaxis=style.axis(say("pair"), range=[-0.5, used.shape[1] - 0.5]),
        yaxis=style.axis(say("token"), range=[len(labels) - 0.5, -0.5]),
        meta={"stack": stack, "n_pairs": used.shape[1]},
    )  # fmt: skip


def rotary_pair(
    run: Run,
    site: Annotated[SiteLike, SITE] = "decoder.0.self",
    head: Annotated[int, ONE_HEAD] = 0,
    query: Annotated[int | None, QUERY] = None,
    key: Annotated[int | None, _KEY] = None,
    pair: Annotated[int, _PAIR] = 0,
) -> go.Figure:
    """One pair of features of a query and a key as arrows in its plane, before and after."""
    vectors = rotated_pair(run, site, head, query, key)
    check_whole("pair", pair, 0, vectors.n_pairs - 1)
    both = [pair, pair + vectors.n_pairs]
    colours = {"q": BLUE, "k": ORANGE}
    arrows = []
    for name, what, before, after, position in (
        ("q", _QUERY_SAID, vectors.q_before, vectors.q, vectors.query),
        ("k", _KEY_SAID, vectors.k_before, vectors.k, vectors.key),
    ):
        for vector, dash, sentence in ((before, "dot", what[0]), (after, "solid", what[1])):
            x, y = vector[both]
            words = say(sentence, place=position)
            arrows.append(
                go.Scatter(
                    x=[0, x], y=[0, y], mode="lines+markers", name=words,
                    line={"color": colours[name], "dash": dash, "width": 3},
                    marker={"symbol": ["circle", "arrow"], "angleref": "previous", "size": [1, 14]},
                    hovertemplate="(%{x:.4f}, %{y:.4f})",
                )
            )  # fmt: skip
    arrow_ends = (vectors.q, vectors.k, vectors.q_before, vectors.k_before)
    size = 1.15 * max(float(np.abs(end[both]).max()) for end in arrow_ends) or 1.0
    degrees = np.degrees(vectors.angles[[vectors.query, vectors.key], pair])
    return style.figure(
        arrows,
        f"Pair {pair} of layer {vectors.site.layer}, head {head}: rotated by its position",
        say(
            "query {query} by {query_degrees}°, key {key} by {key_degrees}°",
            query=style.label(vectors.labels[0]),
            query_degrees=numeral(degrees[0], ".1f"),
            key=style.label(vectors.labels[1]),
            key_degrees=numeral(degrees[1], ".1f"),
        ),
        xaxis=style.axis(say("feature {n}", n=both[0]), range=[-size, size],
                         zeroline=True, showgrid=True),
        yaxis=style.axis(say("feature {n}", n=both[1]), range=[-size, size],
                         zeroline=True, showgrid=True, scaleanchor="x"),
        showlegend=True,
        legend={"orientation": "h", "y": -0.25},
        meta={"degrees": degrees.tolist(), "pair": pair},
    )  # fmt: skip


def rotary_distance(
    run: Run,
    site: Annotated[SiteLike, SITE] = "decoder.0.self",
    head: Annotated[int, ONE_HEAD] = 0,
    query: Annotated[int | None, QUERY] = None,
    key: Annotated[int | None, _KEY] = None,
) -> go.Figure:
    """The score of one query and one key at every distance; if both move together, it stays the
    same.

    `layout.meta["moved"]`: the largest change of the score where both move on together.
    """
    vectors = rotated_pair(run, site, head, query, key)
    last = len(vectors.angles) - 1
    distances = range(min(last + 1, MAX_DISTANCES))
    scores = [vectors.score_at(distance, 0) for distance in distances]
    distance = vectors.query - vectors.key
    steps = range(0, last - vectors.query + 1)
    together = [vectors.score_at(vectors.query + step, vectors.key + step) for step in steps]
    moved = max(abs(score - vectors.score) for score in together)
    score = say("score q·k/√d") if run.config.scores_from_heads else say("score")
    line = go.Scatter(
        x=list(distances), y=scores, mode="lines", name=say("the same two, this far apart"),
        line={"color": BLUE, "width": 2}, hovertemplate="%{x}: %{y:.4f}",
    )  # fmt: skip
    here = go.Scatter(
        x=[distance], y=[vectors.score], mode="markers", name=say("as they stand in this text"),
        marker={"color": ORANGE, "size": 12}, hovertemplate="%{y:.4f}",
    )  # fmt: skip
    return style.figure(
        [line, here],
        f"The score of {style.label(vectors.labels[0])} and {style.label(vectors.labels[1])}, "
        "by their distance",
        say(
            "moved on together by up to {n} places, the score changes by {change}",
            n=len(together) - 1,
            change=numeral(moved, ".1e"),
        ),
        xaxis=style.axis(say("tokens from key to query")),
        yaxis=style.axis(score, showgrid=True),
        showlegend=True,
        legend={"orientation": "h", "y": -0.25},
        meta={"moved": moved, "score": vectors.score},
    )  # fmt: skip


def _period(angles: Doubles) -> float:
    """The number of positions in which a pair, given its angle at each, rotates once."""
    return 2 * math.pi / float(angles[1]) if len(angles) > 1 and angles[1] else math.inf


def answer_rotary(
    item: Run,
    *,
    site: Annotated[str, SITE] = "decoder.0.self",
    head: Annotated[int, ONE_HEAD] = 0,
    query: Annotated[int | None, QUERY] = None,
    pair: Annotated[int, _PAIR] = 0,
) -> Answer:
    """All three pictures of one head and pair; nothing for an attention that rotates nothing."""
    if not rotates(item, site):
        return {"is_rotary": False}
    n_pairs = angles_of(item, site).shape[1]
    pair = min(pair, n_pairs - 1)
    drawn = {
        "angles": rotary_angles(item, site),
        "pair": rotary_pair(item, site, head, query, pair=pair),
        "distance": rotary_distance(item, site, head, query),
    }
    # Plain text: Plotly's own is escaped.
    says = {name: unescape(figure.layout.title.subtitle.text) for name, figure in drawn.items()}
    return {"is_rotary": True, "n_pairs": n_pairs, "says": says, **drawn}


VIEW = View(
    name="rotary",
    tab="Positions",
    order=320,
    title="Rotary positions",
    help="Queries and keys are rotated by an angle that grows with their position.",
    pictures=(
        picture(
            answer_rotary,
            title="Rotary positions",
            help="The angle of each pair, one pair of q and k before and after, and scores.",
        ),
        picture(
            rotary_pair,
            title="One pair, rotated",
            help="One pair of features of a query and a key, before and after the rotation.",
        ),
        picture(
            rotary_distance,
            title="Score by distance",
            help="The score of a query and a key at every distance from each other.",
        ),
    ),
)
