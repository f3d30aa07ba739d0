"""Rotary positions: what is rotated, by how much, and what that does to a score."""

from __future__ import annotations

from html import unescape

from transformer.messages import mark
from transformer.runs.run import Run
from transformer.views.declaration import Answer, Picture, View
from transformer.views.drawing.common import SITE
from transformer.views.parameters import Int
from transformer.views.rotary.rotary import (
    angles_of,
    is_rotary,
    rotary_angles,
    rotary_distance,
    rotary_pair,
)


def answer_rotary(
    item: Run,
    *,
    site: str = "decoder.0.self",
    head: int = 0,
    query: int | None = None,
    pair: int = 0,
) -> Answer:
    """All three pictures of one head and pair; nothing for a network that rotates nothing."""
    if not is_rotary(item) or site.endswith("cross"):
        return {"turns": False}
    stack = site.split(".")[0]
    n_pairs = angles_of(item, stack).shape[1]
    pair = min(pair, n_pairs - 1)
    drawn = {
        "angles": rotary_angles(item, stack),
        "pair": rotary_pair(item, site, head, query, pair=pair),
        "distance": rotary_distance(item, site, head, query),
    }
    # Plain text: Plotly's own is escaped.
    says = {name: unescape(one.layout.title.subtitle.text) for name, one in drawn.items()}
    return {"turns": True, "n_pairs": n_pairs, "says": says, **drawn}


_HEAD = Int(name="head", title="Head", use="selection", default=0)
_QUERY = Int(name="query", title="Query", use="selection", optional=True)
_KEY = Int(name="key", title="Key", use="request", optional=True)
_PAIR = Int(name="pair", title="Pair", default=0)
VIEW = View(
    name="rotary",
    tab="Positions",
    order=320,
    title=mark("Rotary positions"),
    help=mark("Queries and keys are rotated by an angle that grows with their position."),
    pictures=(
        Picture(
            name="rotary",
            title=mark("Rotary positions"),
            help=mark("The angle of each pair, one pair of q and k before and after, and scores."),
            answer=answer_rotary,
            parameters=(SITE, _HEAD, _QUERY, _PAIR),
        ),
        Picture(
            name="rotary_pair",
            title=mark("One pair, rotated"),
            help=mark("One pair of features of a query and a key, before and after the rotation."),
            figure=rotary_pair,
            parameters=(SITE, _HEAD, _QUERY, _KEY, _PAIR),
        ),
        Picture(
            name="rotary_distance",
            title=mark("Score by distance"),
            help=mark("The score of a query and a key at every distance from each other."),
            figure=rotary_distance,
            parameters=(SITE, _HEAD, _QUERY, _KEY),
        ),
    ),
)
