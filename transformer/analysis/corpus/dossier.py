"""The statistics of each head as plain values, and clusters of similar heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.analysis.corpus.reading import KINDS
from transformer.analysis.corpus.summary import NO_TEXT, UNIT, HeadSums, MetricSums, Summary
from transformer.analysis.head_measures import ALL

Dossier = dict[str, Any]
MOST_ALIKE = 3
Floats = NDArray[np.float64]
FARTHEST = 1.0  # standard deviations between heads that are still called alike
CLEAR = 0.5  # standard deviations above the mean of all heads, for a trait
MOST_TRAITS = 3


def dossiers(summary: Summary) -> list[Dossier]:
    """One dossier per head: its metrics, what it reads, similar heads, and the cost of its
    ablation.

    metrics: {name: mean, n, counts (by bin), strongest [[number, text]], typical (a text of the
    fullest bin)}. reads: the mean weight that a query of each kind of token gives to each kind.
    alike: the heads of its kind whose metrics are nearest, each in standard deviations over the
    heads; cost: nats per token that its ablation adds to the loss, None where it was not measured.
    """
    return [
        _of_head(kind, heads, layer, head, alike)
        for kind, heads in summary.kinds.items()
        for (layer, head), alike in _alike(heads.metrics).items()
    ]


def _of_head(
    kind: str, heads: HeadSums, layer: int, head: int, alike: Sequence[tuple[int, int]]
) -> Dossier:
    rows = np.maximum(heads.rows, 1)[:, None] * UNIT
    reads = (heads.read[layer, head] / rows).round(4)
    n_costs = int(heads.n_costs)
    return {
        "kind": kind,
        "layer": layer,
        "head": head,
        "metrics": {
            name: _of_metric(sums, layer, head)
            for name, sums in heads.metrics.items()
            if sums.n[layer, head]
        },
        "reads": {
            of: {to: float(reads[a, b]) for b, to in enumerate(KINDS) if reads[a, b] > 0}
            for a, of in enumerate(KINDS)
            if heads.rows[a]
        },
        "alike": [list(cluster) for cluster in alike],
        "cost": round(heads.cost[layer, head] / UNIT / n_costs, 6) if n_costs else None,
    }


def _of_metric(sums: MetricSums, layer: int, head: int) -> dict[str, Any]:
    counts = sums.counts[layer, head]
    return {
        "mean": round(float(sums.mean()[layer, head]), 4),
        "n": int(sums.n[layer, head]),
        "counts": counts.tolist(),
        "strongest": [
            [round(int(number) / UNIT, 4), int(text)]
            for number, text in sums.strongest[layer, head]
            if text != NO_TEXT
        ],
        "typical": int(sums.earliest[layer, head, counts.argmax()]),
    }


def _alike(metrics: Mapping[str, MetricSums]) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """The nearest heads of each head, the nearest first."""
    means = np.stack([sums.mean() for sums in metrics.values()], axis=-1)  # (L, H, M)
    n_heads = means.shape[1]
    rows = standardised(means.reshape(-1, means.shape[-1]))
    found = {}
    for place, row in enumerate(rows):
        order = np.argsort(np.square(rows - row).sum(axis=1), kind="stable")
        near = [int(other) for other in order if other != place][:MOST_ALIKE]
        found[divmod(place, n_heads)] = [divmod(other, n_heads) for other in near]
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """Similar heads.

    heads: (layer, head) of each. traits: the metrics that all of them have more of than the mean
    head, by name, the clearest first; there may be none.
    """

    heads: tuple[tuple[int, int], ...]
    traits: tuple[str, ...]


def standardised(numbers: Floats) -> Floats:
    """(N, M) in standard deviations from the mean of each column; NaN counts as the mean."""
    is_number = np.isfinite(numbers)
    n_known = np.maximum(is_number.sum(axis=0), 1)
    off = np.where(is_number, numbers - np.where(is_number, numbers, 0).sum(axis=0) / n_known, 0)
    spread = np.sqrt(np.square(off).sum(axis=0) / n_known)
    return off / np.where(spread > 1e-12, spread, 1)


def clusters(heads: Sequence[Mapping[str, Any]]) -> list[Cluster]:
    """The clusters of dossiers of one kind of attention, the largest first; many are of one head.

    Two heads are as far apart as their metrics, in standard deviations over the heads: the root of
    the mean square. Two clusters are as far apart as their heads on average; the nearest two become
    one, again and again, as long as that is at most FARTHEST (average linkage: Sokal and Michener
    1958). Equal distances are taken in the order of the heads.
    """
    if not heads:
        return []
    names = [name for name in ALL if any(name in head["metrics"] for head in heads)]
    numbers = [
        [head["metrics"].get(name, {"mean": np.nan})["mean"] for name in names] for head in heads
    ]
    rows = standardised(np.array(numbers, dtype=np.float64))
    groups = sorted(_joined(rows), key=lambda group: (-len(group), group))
    return [
        Cluster(
            heads=tuple((heads[place]["layer"], heads[place]["head"]) for place in group),
            traits=_traits(rows[group], names),
        )
        for group in groups
    ]


def _joined(rows: Floats) -> list[list[int]]:
    """Indices of the rows (N, M), in groups."""
    groups: dict[int, list[int]] = {place: [place] for place in range(len(rows))}
    apart = np.sqrt(np.square(rows[:, None] - rows).mean(axis=-1))
    apart[np.tril_indices(len(rows))] = np.inf
    while len(groups) > 1:
        one, other = map(int, np.unravel_index(apart.argmin(), apart.shape))
        if apart[one, other] > FARTHEST:
            break
        sizes = len(groups[one]), len(groups[other])
        both = np.minimum(apart, apart.T)
        mean = np.average(both[[one, other]], axis=0, weights=sizes)
        groups[one] = sorted(groups[one] + groups.pop(other))
        apart[other, :] = apart[:, other] = np.inf
        apart[one, one + 1 :] = mean[one + 1 :]
        apart[:one, one] = mean[:one]
    return list(groups.values())


def _traits(rows: Floats, names: Sequence[str]) -> tuple[str, ...]:
    """The metrics in which all rows (N, M) of one cluster exceed the mean head."""
    means = rows.mean(axis=0)
    clear = (means >= CLEAR) & (rows > 0).all(axis=0)
    order = np.argsort(-means, kind="stable")
    signs = [names[place] for place in order if clear[place] and ALL[names[place]].sign]
    return tuple(signs[:MOST_TRAITS])
