"""What was found of each head, as plain values: for a file, and for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from transformer.analysis.corpus.alike import standardised
from transformer.analysis.corpus.reading import KINDS
from transformer.analysis.corpus.summary import NO_TEXT, UNIT, HeadSums, MetricSums, Summary

Dossier = dict[str, Any]
MOST_ALIKE = 3


def dossiers(summary: Summary) -> list[Dossier]:
    """One a head: its metrics, where it reads, which heads do alike, and what its silence costs.

    metrics: {name: mean, n, counts (by bin), strongest [[number, text]], typical (a text of the
    fullest bin)}. reads: the mean weight that a query of each kind of token gives to each kind.
    alike: the heads of its kind whose metrics are nearest, each in standard deviations over the
    heads; cost: nats a token that its silence adds to the loss, None where it was not measured.
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
        "alike": [list(one) for one in alike],
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
    """Of each head those that are nearest to it, the nearest first."""
    means = np.stack([sums.mean() for sums in metrics.values()], axis=-1)  # (L, H, M)
    n_heads = means.shape[1]
    rows = standardised(means.reshape(-1, means.shape[-1]))
    found = {}
    for place, row in enumerate(rows):
        order = np.argsort(np.square(rows - row).sum(axis=1), kind="stable")
        near = [int(other) for other in order if other != place][:MOST_ALIKE]
        found[divmod(place, n_heads)] = [divmod(other, n_heads) for other in near]
    return found
