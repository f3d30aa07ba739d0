"""The metrics of a head: their definitions, and how they are measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """One number of a head. definition: one sentence, without a full stop.

    against: the baseline that can differ from the head: "shuffled" or "even".
    label: what a head is said to do if the number is high; None if that says nothing.
    """

    name: str
    title: str
    definition: str
    unit: str = ""
    against: str = "even"
    label: str | None = None


ALL = {
    metric.name: metric
    for metric in (
        Metric(
            name="entropy", title="Entropy", unit="bits",
            definition="the entropy of a row's weights, 0 if it reads one key only",
        ),
        Metric(
            name="largest", title="Largest weight",
            definition="the largest weight of a row",
        ),
        Metric(
            name="distance", title="Distance", unit="tokens", against="shuffled",
            definition="|query - key| in tokens, weighted by the weights",
        ),
        Metric(
            name="previous", title="Previous", against="shuffled",
            label="reads the previous token",
            definition="the weight on the token just before the query (rows that have one)",
        ),
        Metric(
            name="next", title="Next", against="shuffled", label="reads the next token",
            definition="the weight on the token just after the query (rows that may read it)",
        ),
        Metric(
            name="itself", title="Itself", against="shuffled", label="reads itself",
            definition="the weight on the query's own token",
        ),
        Metric(
            name="first", title="First", against="shuffled", label="reads the first token",
            definition="the weight on the first key",
        ),
        Metric(
            name="last", title="Last", against="shuffled", label="reads the last source token",
            definition="the weight on the last source token, which is the sign that ends it",
        ),
        Metric(
            name="most_read", title="Most-read", label="reads one token",
            definition="the share of all reading that goes to the one key that is read most",
        ),
        Metric(
            name="order", title="Order", against="shuffled", label="reads in order",
            definition="the correlation, -1 to 1, between a query's place and the mean place that "
            "it reads",
        ),
    )
}  # fmt: skip
_SELF = ("entropy", "largest", "distance", "previous", "next", "itself", "first", "most_read")
_CROSS = ("entropy", "largest", "most_read", "first", "last", "order")


def measure(weights: Tensor, allowed: Tensor, names: tuple[str, ...]) -> dict[str, Tensor]:
    """The named metrics of weights (H, Tq, Tk) under a mask (Tq, Tk): (H,) each, see `ALL`."""
    at = (allowed.sum(dim=1) >= 2).nonzero()[:, 0]  # places of the rows that can choose
    rows = weights[:, at].float()
    n_keys = weights.shape[-1]
    keys = torch.arange(n_keys)

    def there(shift: int) -> Tensor:
        """The mean weight on the key `shift` places after the query."""
        fits = (at + shift >= 0) & (at + shift < n_keys)
        fits &= allowed[at, (at + shift).clamp(0, n_keys - 1)]
        return rows[:, fits, at[fits] + shift].mean(dim=1)

    ways = {
        "entropy": lambda: torch.special.entr(rows).sum(dim=-1).mean(dim=1) / math.log(2),
        "largest": lambda: rows.amax(dim=-1).mean(dim=1),
        "distance": lambda: (rows * (at[:, None] - keys).abs()).sum(dim=-1).mean(dim=1),
        "previous": lambda: there(-1),
        "next": lambda: there(1),
        "itself": lambda: there(0),
        "first": lambda: rows[:, :, 0].mean(dim=1),
        "last": lambda: rows[:, :, -1].mean(dim=1),
        "most_read": lambda: rows.mean(dim=1).amax(dim=-1),
        "order": lambda: _correlation(at.float(), rows @ keys.float()),
    }
    return {name: ways[name]() for name in names}


def _correlation(x: Tensor, y: Tensor) -> Tensor:
    """Pearson's, of x (T,) with each of y (H, T); NaN where one of them does not vary."""
    x, y = x.double() - x.double().mean(), y.double() - y.double().mean(dim=1, keepdim=True)
    length = (x.square().sum() * y.square().sum(dim=1)).sqrt()
    return torch.where(length > 1e-4, (y @ x) / length, torch.nan).clamp(-1, 1)


def names_of(kind: str, allowed: Tensor) -> tuple[str, ...]:
    """The metrics that a kind of attention has, in the order of a table."""
    if kind == "cross":
        return _CROSS
    forward = bool(allowed.diagonal(1).any())
    return tuple(name for name in _SELF if name != "next" or forward)
