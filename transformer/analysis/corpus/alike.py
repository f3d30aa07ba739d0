"""Which heads do alike over many texts: clusters of them, and what the heads of one share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.analysis.head_measures import ALL

Floats = NDArray[np.float64]
FARTHEST = 1.0  # standard deviations between heads that are still called alike
CLEAR = 0.5  # standard deviations above the mean of all heads, for a trait
MOST_TRAITS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """Heads that do alike.

    heads: (layer, head) of each. traits: the metrics that all of them have more of than the mean
    head, by name, the clearest first; there may be none.
    """

    heads: tuple[tuple[int, int], ...]
    traits: tuple[str, ...]


def standardised(numbers: Floats) -> Floats:
    """(N, M) in standard deviations from the mean of each column; NaN counts as the mean."""
    known = np.isfinite(numbers)
    n_known = np.maximum(known.sum(axis=0), 1)
    off = np.where(known, numbers - np.where(known, numbers, 0).sum(axis=0) / n_known, 0)
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
    """The places of the rows (N, M), in groups."""
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
    """Of the rows (N, M) of one cluster: what all have more of than the mean head."""
    means = rows.mean(axis=0)
    clear = (means >= CLEAR) & (rows > 0).all(axis=0)
    order = np.argsort(-means, kind="stable")
    found = [names[place] for place in order if clear[place] and ALL[names[place]].short]
    return tuple(found[:MOST_TRAITS])
