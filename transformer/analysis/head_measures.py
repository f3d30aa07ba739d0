"""The metrics of a head: their definitions, and how they are measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.messages import mark
from transformer.model.functional import masked_softmax

TINY = torch.finfo(torch.float32).tiny
Cells = Mapping[str, tuple[Tensor, Tensor]]  # (N,) queries and (N,) keys by metric


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """One number of a head. definition: one sentence, without a full stop.

    against: the baseline that can differ from the head: "shuffled" or "even". label: what a head
    with a high number does (entropy: near that of a uniform head), or None. sign: the label as one
    character, for the grid of heads. position: it is the mean weight of certain cells, see
    `cells_of`. repeats: only rows whose token occurred earlier in the text.
    """

    name: str
    title: str
    definition: str
    unit: str = ""
    against: str = "even"
    label: str | None = None
    sign: str = ""
    position: bool = False
    repeats: bool = False


ALL = {
    metric.name: metric
    for metric in (
        Metric(
            name="entropy", title=mark("Entropy"), unit=mark("bits"),
            label=mark("reads evenly"), sign="≈",
            definition=mark("the entropy of a row's weights, 0 if it reads one key only"),
        ),
        Metric(
            name="largest", title=mark("Largest weight"),
            definition=mark("the largest weight of a row"),
        ),
        Metric(
            name="distance", title=mark("Distance"), unit=mark("tokens"), against="shuffled",
            definition=mark("|query - key| in tokens, averaged with the weights"),
        ),
        Metric(
            name="previous", title=mark("Previous"), position=True, against="shuffled",
            label=mark("reads the previous token"), sign="←",
            definition=mark("the weight on the token just before the query (rows that have one)"),
        ),
        Metric(
            name="next", title=mark("Next"), position=True, against="shuffled",
            label=mark("reads the next token"), sign="→",
            definition=mark("the weight on the token just after the query (rows that may read it)"),
        ),
        Metric(
            name="itself", title=mark("Itself"), position=True, against="shuffled",
            label=mark("reads itself"), sign="○",
            definition=mark("the weight on the query's own token"),
        ),
        Metric(
            name="first", title=mark("First"), position=True, against="shuffled",
            label=mark("reads the first token"), sign="⇤",
            definition=mark("the weight on the first key"),
        ),
        Metric(
            name="induction", title=mark("Induction"), position=True, against="shuffled",
            repeats=True, label=mark("reads what followed the last time"),
            sign="↻", definition=mark(
                "the weight on the token that followed the last earlier occurrence of the query's "
                "own token (rows whose token occurred before, with another between)"
            ),
        ),
        Metric(
            name="duplicate", title=mark("Duplicate"), position=True, against="shuffled",
            repeats=True, label=mark("reads the same token further back"), sign="=",
            definition=mark("the weight on that last earlier occurrence itself (the same rows)"),
        ),
        Metric(
            name="backwards", title=mark("Backwards"), position=True, against="shuffled",
            repeats=True, label=mark("reads the text backwards"),
            sign="↗", definition=mark(
                "the weight on the token just before that last earlier occurrence (the same rows)"
            ),
        ),
        Metric(
            name="last", title=mark("Last"), position=True, against="shuffled",
            label=mark("reads the last source token"), sign="⇥",
            definition=mark("the weight on the last source token, which marks its end"),
        ),
        Metric(
            name="mirror", title=mark("Mirror"), position=True, against="shuffled",
            label=mark("reads the source backwards"), sign="↗",
            definition=mark(
                "the weight on the source token as far from the end as the query is from the start"
            ),
        ),
        Metric(
            name="most_read", title=mark("Most-read"),
            label=mark("reads one token"), sign="●",
            definition=mark("the share of attention that goes to the one key that is read most"),
        ),
        Metric(
            name="order", title=mark("Order"), against="shuffled", label=mark("reads in order"),
            sign="↘",
            definition=mark(
                "the correlation, -1 to 1, between a query's place and the mean place that it reads"
            ),
        ),
    )
}  # fmt: skip
NAMES_OF_KIND = {
    "self": (
        "entropy", "largest", "distance", "previous", "next", "itself", "first", "induction",
        "duplicate", "backwards", "most_read",
    ),
    "cross": ("entropy", "largest", "most_read", "first", "last", "mirror", "order"),
}  # fmt: skip


def repeats_of(tokens: Sequence[str], allowed: Tensor) -> Tensor:
    """(N, 2) int64: rows of a mask (T, T) whose token occurred earlier, and its last occurrence.

    Leaves out rows whose token is a repeat of the token just before (what followed it is the row
    itself), and rows that may not read that position and the next.
    """
    last: dict[str, int] = {}
    rows = []
    for query, token in enumerate(tokens[: len(allowed)]):
        before = last.get(token, query)
        if before + 1 < query and bool(allowed[query, before : before + 2].all()):
            rows.append((query, before))
        last[token] = query
    return torch.tensor(rows, dtype=torch.int64, device="cpu").view(-1, 2)


def cells_of(name: str, allowed: Tensor, repeats: Tensor) -> tuple[Tensor, Tensor]:
    """(N,) queries and (N,) keys: the cells whose mean weight is a metric about a position.

    repeats: those of the text, see `repeats_of`.
    """
    at = choosing(allowed)
    n_keys = allowed.shape[1]
    if name in ("first", "last"):
        return at, torch.full_like(at, 0 if name == "first" else n_keys - 1)
    if ALL[name].repeats:
        at, before = repeats.unbind(dim=1)
        keys = before + {"backwards": -1, "duplicate": 0, "induction": 1}[name]
    elif name == "mirror":
        keys = n_keys - 2 - at  # the last key is the sign that ends the source
    else:
        keys = at + {"previous": -1, "itself": 0, "next": 1}[name]
    fits = (keys >= 0) & (keys < n_keys)
    fits &= allowed[at, keys.clamp(0, n_keys - 1)]
    return at[fits], keys[fits]


def choosing(allowed: Tensor) -> Tensor:
    """Indices of the rows of a mask (Tq, Tk) with at least two allowed keys."""
    return (allowed.sum(dim=1) >= 2).nonzero()[:, 0]


def cells_by_name(names: Iterable[str], allowed: Tensor, repeats: Tensor) -> Cells:
    """The cells of each of these metrics that is about a position, see `cells_of`."""
    return {name: cells_of(name, allowed, repeats) for name in names if ALL[name].position}


def measure(
    weights: Tensor, allowed: Tensor, names: tuple[str, ...], cells: Cells
) -> dict[str, Tensor]:
    """The named metrics of weights (H, Tq, Tk) under a mask (Tq, Tk): (H,) each, see `ALL`.

    cells: see `cells_by_name`.
    """
    at = choosing(allowed)
    rows = weights.index_select(1, at).float()
    keys = torch.arange(weights.shape[-1], device="cpu")

    def of_place(name: str) -> Tensor:
        queries, read = cells[name]
        return weights[:, queries, read].float().mean(dim=1)

    ways = {
        # As torch.special.entr, in half the time: TINY changes the logarithm of 0 alone.
        "entropy": lambda: -(rows * (rows + TINY).log_()).sum(dim=-1).mean(dim=1) / math.log(2),
        "largest": lambda: rows.amax(dim=-1).mean(dim=1),
        "distance": lambda: (rows * (at[:, None] - keys).abs().float()).sum(dim=-1).mean(dim=1),
        "most_read": lambda: rows.mean(dim=1).amax(dim=-1),
        "order": lambda: _correlation(at, rows @ keys.float()),
    }
    return {name: ways[name]() if name in ways else of_place(name) for name in names}


class ShuffledKeys:
    """Heads with their keys in other orders (P, Tk), measured for all orders at once.

    Each order gives what `measure` gives for masked_softmax(scores[..., order], allowed). An order
    only moves the columns of exp(scores). So the row sums of every copy (of weights, distances and
    positions) are one matrix product, and only the cells of the metrics are gathered. Scores too
    far apart for float32 are measured one order at a time.
    """

    MOST_SPREAD = 80.0  # largest minus smallest score of a row: exp of more leaves float32

    def __init__(
        self, orders: Tensor, allowed: Tensor, names: tuple[str, ...], cells: Cells
    ) -> None:
        self._of = allowed, names, cells
        self._orders, self._at = orders, choosing(allowed)
        keys, at = torch.arange(allowed.shape[1], device="cpu"), self._at[:, None]
        of_keys = {"sum": torch.ones_like(keys), "distance": (at - keys).abs(), "order": keys}
        may, places = allowed[self._at], orders.argsort(dim=1).T.flatten()
        self._factors = {  # the factor of each key at its position in a copy: (N, Tk, P)
            name: (may * of_key).float().index_select(1, places).unflatten(1, (len(keys), -1))
            for name, of_key in of_keys.items()
            if name == "sum" or name in names
        }
        self._placed = [name for name in names if name in cells]
        self._counts = [len(cells[name][0]) for name in self._placed]
        queries, read = (torch.cat([cells[name][i] for name in self._placed]) for i in (0, 1))
        self._rows = torch.searchsorted(self._at, queries)
        self._cells = (self._rows[:, None] * len(keys) + orders.T[read]).flatten()
        self._may = allowed[queries, read].float()[:, None]

    def measure(self, scores: Tensor) -> dict[str, Tensor]:
        """The metrics of heads with these scores (H, Tq, Tk): (H, P) each."""
        rows = scores.index_select(1, self._at).float()
        rows -= rows.amax(dim=-1, keepdim=True)
        allowed, names, _ = self._of
        if rows.numel() and not rows.amin() >= -self.MOST_SPREAD:
            copies = [
                measure(masked_softmax(scores[..., order], allowed), *self._of)
                for order in self._orders
            ]
            return {name: torch.stack([copy[name] for copy in copies], dim=1) for name in names}
        powers = rows.exp_()  # (H, N, Tk)
        sums = {  # (H, N, P) each
            name: (powers.transpose(0, 1) @ factors).transpose(0, 1)
            for name, factors in self._factors.items()
        }
        total = sums.pop("sum")
        of_cells = total.index_select(1, self._rows)
        read = powers.flatten(1).index_select(1, self._cells).view_as(of_cells)
        read = read * self._may / of_cells
        metrics = {
            name: cells.mean(dim=1)
            for name, cells in zip(self._placed, read.split(self._counts, dim=1), strict=True)
        }
        for name, of_rows in sums.items():
            means = of_rows / total
            metrics[name] = (
                _correlation(self._at, means.mT) if name == "order" else means.mean(dim=1)
            )
        return {name: metrics[name] for name in names}


def _correlation(x: Tensor, y: Tensor) -> Tensor:
    """Pearson's correlation of x (T,) with each row of y (..., T); NaN if one of them is
    constant."""
    x, y = x.double() - x.double().mean(), y.double() - y.double().mean(dim=-1, keepdim=True)
    length = (x.square().sum() * y.square().sum(dim=-1)).sqrt()
    return torch.where(length > 1e-4, (y @ x) / length, torch.nan).clamp(-1, 1)


def names_of(kind: str, allowed: Tensor) -> tuple[str, ...]:
    """The metrics that a kind of attention has, in the order of a table."""
    forward = bool(allowed.diagonal(1).any())
    return tuple(name for name in NAMES_OF_KIND[kind] if name != "next" or forward)
