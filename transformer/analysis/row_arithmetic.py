"""The arithmetic of one row of attention: from q, K and V to one head's output for one query.

It is computed in float64, from the recorded queries, keys and values; what the network itself
recorded is only compared with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.checks import InvalidCall, check_whole
from transformer.model.sites import Site
from transformer.model.trace import AttentionRecord
from transformer.runs.batch import Batch
from transformer.runs.head_data import (
    Head,
    SiteLike,
    array,
    head_view,
    one_head,
)
from transformer.runs.run import Run

TOLERANCE = 1e-5  # float32 against float64: of a weight, and of a score relative to the largest
_FILL = float(np.finfo(np.float32).min)  # what the network puts where the mask forbids

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RowArithmetic:
    """One query of one head: what is recorded (float32), and what follows from it (float64).

    q: (D,); keys, values: (Tk, D); allowed: (Tk,) bool; traced_scores, traced_weights: (Tk,), the
    network's own. dots: q·k; scores: q·k / √score_size, which is D unless the network has a
    historical divisor, + bias, which is what positions add to the recorded scores, if they do, then
    capped to cap · tanh(score / cap), if the network does that; exps: e to the power of (masked
    score - the largest one); weights: exps / their sum; each (Tk,). output: (D,), the sum of
    weight · value.
    """

    site: Site
    head: int
    query: int
    query_label: str
    key_labels: tuple[str, ...]
    q: Floats
    keys: Floats
    values: Floats
    allowed: NDArray[np.bool_]
    score_size: float
    bias: Doubles | None
    cap: float | None
    traced_scores: Floats
    traced_weights: Floats
    dots: Doubles
    scores: Doubles
    exps: Doubles
    weights: Doubles
    output: Doubles

    @property
    def weight_difference(self) -> float:
        """Largest difference between these weights and the network's own."""
        return float(np.abs(self.weights - self.traced_weights).max())

    @property
    def agrees(self) -> bool:
        """Whether scores and weights are the network's own, to float32's rounding."""
        largest = np.abs(self.dots).max() / np.sqrt(self.score_size)  # before bias and cap
        room = TOLERANCE * max(1.0, float(largest), float(np.abs(self.scores).max()))
        by_score = float(np.abs(self.scores - self.traced_scores).max())
        return by_score < room and self.weight_difference < TOLERANCE


def row_arithmetic(
    run: Run | Batch, site: SiteLike, head: Head, query: int | None = None, *, row: int = 0
) -> RowArithmetic:
    """q · kᵀ, ÷ √D, mask, softmax and the weighted sum of values, for one query of one head.

    query: a row of the attention matrix, by default the last; row: which sentence of a Batch.
    Raises ValueError for an unknown site, head, query or row, and for a record without queries.
    Source: Vaswani et al. 2017, equation 1.
    """
    view = head_view(run, site, head, row)
    if head == "mean":
        raise InvalidCall("mean_head", "choose one head, not the mean of all")
    record = one_head(run.trace, view.site, row, int(head))
    last = record.pattern.shape[2] - 1
    position = last if query is None else check_whole("query", query, 0, last)
    q, keys, values = (array(part[0, 0]) for part in heads_of(record))
    allowed = record.allowed[0, position].cpu().numpy()
    traced_scores = array(record.scores[0, 0, position])
    dots = keys.astype(np.float64) @ q[position].astype(np.float64)
    scores = dots / np.sqrt(run.config.score_size)
    bias, cap = None, run.config.score_cap
    if run.config.biases_scores and view.site.kind == "self":
        bias = _uncapped(traced_scores.astype(np.float64), cap) - scores
        scores = scores + bias
    if cap is not None:
        scores = cap * np.tanh(scores / cap)
    masked = np.where(allowed, scores, _FILL)
    exps = np.exp(masked - masked.max())  # the same weights, and no number overflows
    weights = exps / exps.sum()
    return RowArithmetic(
        site=view.site,
        head=int(head),
        query=position,
        query_label=view.query_labels[position],
        key_labels=view.key_labels,
        traced_scores=traced_scores,
        traced_weights=array(record.pattern[0, 0, position]),
        q=q[position],
        keys=keys,
        values=values,
        allowed=allowed,
        score_size=run.config.score_size,
        bias=bias,
        cap=cap,
        dots=dots,
        scores=scores,
        exps=exps,
        weights=weights,
        output=weights @ values.astype(np.float64),
    )


def _uncapped(scores: Doubles, cap: float | None) -> Doubles:
    below = 1 - 1e-7  # float32's tanh is 1 for large scores
    return scores if cap is None else cap * np.arctanh(np.clip(scores / cap, -below, below))


def heads_of(record: AttentionRecord) -> tuple[Any, Any, Any]:
    """(queries, keys, values), each (B, H, T, D). Raises ValueError where none were recorded."""
    if record.q is None or record.k is None or record.v is None:
        raise ValueError(
            f"the record of {record.site} holds no queries, keys and values; needed: one "
            "made by the network itself"
        )
    return record.q, record.k, record.v
