"""Rotary positions: the angle of each pair of features, and a head's q and k before and after.

A head's vectors are recorded rotated. "Before" is the same vector rotated back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transformer.checks import check_whole
from transformer.interventions.descriptions import Break
from transformer.model.rotary import Rotation
from transformer.model.sites import Site
from transformer.runs.head_data import SiteLike, array, check_head, labels_of
from transformer.runs.run import Run

Doubles = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RotatedPair:
    """A query and a key of one head.

    q, k: (D,), as they meet, and q_before, k_before, rotated back. query, key: their positions.
    angles: (max_len, R / 2), radians from 0 to 2 pi, of each position and pair. multiplier: extra
    factor of YaRN and LongRoPE. score: the network's own, before the mask; divisor,
    cap: of scores.
    """

    site: Site
    head: int
    query: int
    key: int
    labels: tuple[str, str]
    q: Doubles
    k: Doubles
    q_before: Doubles
    k_before: Doubles
    angles: Doubles
    multiplier: float
    score: float
    divisor: float
    cap: float | None

    @property
    def n_pairs(self) -> int:
        """The number of pairs of features that are rotated."""
        return self.angles.shape[1]

    def score_at(self, query: int, key: int) -> float:
        """The score of the same two vectors at these positions."""
        q, k = (
            rotated(self.q_before, self.angles[query], self.multiplier),
            rotated(self.k_before, self.angles[key], self.multiplier),
        )
        score = float(q @ k) / self.divisor
        return score if self.cap is None else self.cap * math.tanh(score / self.cap)


def rotates(run: Run, site: SiteLike) -> bool:
    """Whether this attention rotates queries and keys, each by its own place."""
    if _broken(run) & {"no-rotation", "shuffled-positions"}:
        return False
    place = run.trace.find(site)
    return place.kind == "self" and run.config.rotary_of(place.layer) is not None


def angles_of(run: Run, site: SiteLike) -> Doubles:
    """(max_len, R / 2) radians. Raises ValueError for an attention that rotates nothing."""
    place = run.trace.find(site)
    settings = run.config.rotary_of(place.layer)
    if settings is None or place.kind == "cross":
        raise ValueError(
            f"{place} rotates no queries and keys; this network's positions are "
            f"{run.config.positions}"
        )
    matrix = Rotation(settings, run.config.max_len_of(place.stack)).matrix.double().numpy()
    cosines, sines = np.split(matrix, 2, axis=1)
    return np.arctan2(sines, cosines) % (2 * math.pi)


def rotated_pair(
    run: Run, site: SiteLike, head: int, query: int | None = None, key: int | None = None
) -> RotatedPair:
    """A query and a key of a head; by default the last query, and the key before it.

    Raises ValueError for an unknown position, head or site, and for an attention that rotates
    nothing, such as cross-attention.
    """
    record, angles = run.trace[site], angles_of(run, site)
    check_head(head, record.pattern.shape[1])
    assert record.q is not None
    assert record.k is not None
    last = record.pattern.shape[2] - 1
    at = check_whole("query", last if query is None else query, 0, last)
    other = check_whole("key", max(at - 1, 0) if key is None else key, 0, last)
    q, k = (
        array(part[0, head, position]).astype(np.float64)
        for part, position in ((record.q, at), (record.k, other))
    )
    labels = labels_of(run, record.site, 0)[0]
    settings = run.config.rotary_of(record.site.layer)
    assert settings is not None
    multiplier = settings.multiplier
    return RotatedPair(
        site=record.site, head=head, query=at, key=other, labels=(labels[at], labels[other]),
        q=q, k=k, q_before=rotated(q, -angles[at], 1 / multiplier),
        k_before=rotated(k, -angles[other], 1 / multiplier), angles=angles, multiplier=multiplier,
        score=float(record.scores[0, head, at, other]),
        divisor=_divisor(run), cap=run.config.score_cap,
    )  # fmt: skip


def _broken(run: Run) -> set[str]:
    return {change.what for change in run.request.interventions if isinstance(change, Break)}


def _divisor(run: Run) -> float:
    """What the run divided scores by."""
    broken = _broken(run)
    if "no-scale" in broken:
        return 1.0
    return math.sqrt(run.config.d_model if "model-scale" in broken else run.config.score_size)


def rotated(vector: Doubles, angles: Doubles, multiplier: float) -> Doubles:
    """(D,) with its first R features rotated by (R / 2,) angles and multiplied."""
    half = len(angles)
    first, second, rest = vector[:half], vector[half : 2 * half], vector[2 * half :]
    cosines, sines = multiplier * np.cos(angles), multiplier * np.sin(angles)
    rotated = [first * cosines - second * sines, second * cosines + first * sines, rest]
    return np.concatenate(rotated)
