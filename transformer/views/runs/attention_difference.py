"""Two runs side by side: which tokens they share, and how the attention of two heads differs."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.analysis.row_arithmetic import TOLERANCE
from transformer.checks import InvalidRequest
from transformer.messages import say
from transformer.network_words import head_name
from transformer.runs.head_data import Head, HeadView, SiteLike, head_view
from transformer.runs.run import Run
from transformer.views.drawing import style
from transformer.views.drawing.matrix import cell_hover, matrix_figure


class Pair(NamedTuple):
    """An aligned token of A and one of B, by position; None where the other text has none.

    state: "equal", "replaced" in a stretch of equal length, "only A" or "only B".
    """

    a: int | None
    b: int | None
    state: str


class NothingShared(InvalidRequest):
    """Two runs have nothing in common that could be compared."""


class Shared(NamedTuple):
    """Two aligned tokens: their positions in A and B, and whether they are the same."""

    a: int
    b: int
    same: bool


def align(a: Sequence[str], b: Sequence[str]) -> tuple[Pair, ...]:
    """Align the tokens of two texts, in order.

    The longest common stretches are found first (Ratcliff and Obershelp 1988, as in difflib).
    """
    pairs: list[Pair] = []
    blocks = SequenceMatcher(None, list(a), list(b), autojunk=False).get_opcodes()
    for what, start_a, stop_a, start_b, stop_b in blocks:
        in_a, in_b = range(start_a, stop_a), range(start_b, stop_b)
        if len(in_a) == len(in_b):
            state = "equal" if what == "equal" else "replaced"
            pairs += [Pair(*both, state) for both in zip(in_a, in_b, strict=True)]
        else:
            pairs += [Pair(position, None, "only A") for position in in_a]
            pairs += [Pair(None, position, "only B") for position in in_b]
    return tuple(pairs)


def shared(pairs: Sequence[Pair]) -> list[Shared]:
    """The pairs that have a token of both texts."""
    both = ((p.a, p.b, p.state == "equal") for p in pairs)
    return [Shared(a, b, same) for a, b, same in both if a is not None and b is not None]


def shared_labels(pairs: Sequence[Shared], a: Sequence[str], b: Sequence[str]) -> list[str]:
    """A label for each pair, "cat → dog" where the tokens differ."""
    return [a[p.a] if p.same else f"{a[p.a]} → {b[p.b]}" for p in pairs]


def attention_difference(
    a: Run,
    b: Run,
    site: SiteLike,
    head: Head,
    *,
    other_site: SiteLike | None = None,
    other_head: Head | None = None,
) -> go.Figure:
    """The weights of a head of B minus those of a head of A, at aligned tokens.

    site, head: of A ("mean" = the average of all heads); other_site, other_head: of B, by default
    the same. Cells that both masks forbid are NaN. customdata (T, T, 2): the weight in A, in B.
    Colours reach as far to both sides as the largest difference; differences of rounding alone are
    0. `layout.meta` has query_labels and key_labels (plain text, "cat → dog" where tokens replace
    each other), queries and keys (pairs of positions), limit, and kept: [in A, in B], the share of
    all weight in these cells. Raises ValueError for a site or head that a run does not have;
    NothingShared, a ValueError, for texts without a common token.
    """
    of_a = head_view(a, site, head)
    of_b = head_view(b, other_site or site, head if other_head is None else other_head)
    rows = _common(of_a.query_labels, of_b.query_labels)
    columns = _common(of_a.key_labels, of_b.key_labels)
    queries = shared_labels(rows, of_a.query_labels, of_b.query_labels)
    keys = shared_labels(columns, of_a.key_labels, of_b.key_labels)
    weights, hidden = _weights(of_a, of_b, rows, columns)
    change = np.where(hidden, np.float32(np.nan), weights[..., 1] - weights[..., 0])
    if style.bound_of(change) <= TOLERANCE:
        change = np.where(hidden, change, np.float32(0))  # rounding alone would have every colour
    limit = style.bound_of(change)
    ending = (
        "<br>B − A: %{z:+.4f}<br>A: %{customdata[0]:.4f}, B: %{customdata[1]:.4f}<extra></extra>"
    )
    hover = cell_hover(queries, keys, ending, weights)
    cells = style.signed_cells(
        change,
        hover.pop("hovertemplate"),
        bar=say("weight in B − in A"),
        colorscale=style.EFFECTS,
        hoverongaps=True,
        **hover,
    )
    meta = {
        "queries": [list(pair[:2]) for pair in rows],
        "keys": [list(pair[:2]) for pair in columns],
        "limit": limit,
        "kept": weights.sum(axis=1).mean(axis=0).tolist(),
    }
    title = f"{_named(of_b)} in B − {_named(of_a)} in A"
    ends = style.ends(limit)
    says = f"on the tokens of both; colours from {ends['least']} to {ends['most']}"
    return matrix_figure(cells, title, says, queries, keys, meta=meta)


def _weights(
    a: HeadView, b: HeadView, rows: Sequence[Shared], columns: Sequence[Shared]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """(rows, columns, 2): weights in A and in B, 0 where its mask forbids; where both forbid."""
    weights, allowed = [], []
    for view, side in ((a, 0), (b, 1)):
        at = np.ix_([int(pair[side]) for pair in rows], [int(pair[side]) for pair in columns])
        weights.append(np.where(view.allowed[at], view.weights[at], np.float32(0)))
        allowed.append(view.allowed[at])
    return np.stack(weights, axis=-1), ~(allowed[0] | allowed[1])


def _common(a: Sequence[str], b: Sequence[str]) -> list[Shared]:
    pairs = shared(align(a, b))
    if not any(pair.same for pair in pairs):
        raise NothingShared(
            "nothing_shared",
            "the two texts have no token in common; tokens in A: {n_a}, in B: {n_b}",
            n_a=len(a),
            n_b=len(b),
        )
    return pairs


def _named(view: HeadView) -> str:
    return f"{view.site}, {head_name(view.head, view.is_off)}"
