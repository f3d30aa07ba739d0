"""One head of one sentence as arrays, checked: what the figures draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.messages import say
from transformer.model.sites import Site
from transformer.model.trace import AttentionRecord
from transformer.runs.checks import is_whole
from transformer.runs.compact_trace import n_heads_at, one_head
from transformer.runs.run import Batch, Run

SiteLike = Site | tuple[str, int, str] | str
Head = int | str


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class HeadView:
    """scores, weights: (Tq, Tk) float32; allowed: (Tq, Tk) bool; one label a query and a key."""

    site: Site
    head: Head
    scores: NDArray[np.float32]
    weights: NDArray[np.float32]
    allowed: NDArray[np.bool_]
    query_labels: tuple[str, ...]
    key_labels: tuple[str, ...]


def head_view(run: Run | Batch, site: SiteLike, head: Head, row: int = 0) -> HeadView:
    """What one head ("mean": the average of all) computed for one sentence.

    Raises ValueError, listing what there is, for an unknown site, head or row.
    """
    place = run.trace.find(site)
    check_row(run, row)
    check_head(head, n_heads_at(run.trace, place))
    record = one_head(run.trace, place, row, None if head == "mean" else int(head))
    queries, keys = labels_of(run, record, row)
    return HeadView(
        site=record.site,
        head=head if head == "mean" else int(head),
        scores=array(record.scores[0].mean(dim=0)),
        weights=array(record.weights[0].mean(dim=0)),
        allowed=record.allowed[0].cpu().numpy(),
        query_labels=queries,
        key_labels=keys,
    )


def record_of(run: Run | Batch, site: SiteLike) -> AttentionRecord:
    """The record of a site. Raises ValueError listing the recorded ones."""
    return run.trace[site]


def records_of(run: Run | Batch, stack: str, kind: str) -> list[AttentionRecord]:
    """The records of every layer. Raises ValueError listing the recorded kinds."""
    kinds = run.trace.kinds()
    if (stack, kind) not in kinds:
        known = ", ".join(f"{a} {b}" for a, b in kinds)
        raise ValueError(
            say(
                "no {stack} {kind}-attention was recorded; recorded: {known}",
                stack=stack,
                kind=kind,
                known=known,
            )
        )
    return [run.trace[site] for site in run.trace.sites if (site.stack, site.kind) == (stack, kind)]


def check_head(head: Any, n_heads: int) -> None:
    """Raise ValueError unless head is 0..n_heads-1 or "mean"."""
    if head != "mean" and not (is_whole(head) and 0 <= head < n_heads):
        raise ValueError(
            say(
                "head must be a whole number from 0 to {last} or 'mean'; got {got}",
                last=n_heads - 1,
                got=repr(head),
            )
        )


def check_row(run: Run | Batch, row: Any) -> None:
    """Raise ValueError unless row is a sentence of the batch (a Run has only row 0)."""
    last = len(run.texts) - 1 if isinstance(run, Batch) else 0
    if not is_whole(row) or not 0 <= row <= last:
        raise ValueError(
            say("row must be a whole number from 0 to {last}; got {got}", last=last, got=repr(row))
        )


def check_choice(name: str, got: Any, allowed: tuple[str, ...]) -> None:
    """Raise ValueError, listing the allowed ones, for anything else."""
    if got not in allowed:
        raise ValueError(
            say(
                "{name} must be one of {allowed}; got {got}",
                name=name,
                allowed=list(allowed),
                got=repr(got),
            )
        )


def labels_of(
    run: Run | Batch, record: AttentionRecord, row: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(query labels, key labels), plain text."""
    site = record.site
    if isinstance(run, Run):
        return run.queries(site.stack), run.keys(site.stack, site.kind)
    return run.queries(site.stack, row), run.keys(site.stack, site.kind, row)


def array(tensor: Any) -> NDArray[np.float32]:
    """A tensor as contiguous float32, which Plotly sends as binary."""
    return np.ascontiguousarray(tensor.detach().cpu().numpy(), dtype=np.float32)
