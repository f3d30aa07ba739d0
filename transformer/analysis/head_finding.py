"""The strongest finding among the heads of a run: one head, its number, and where it shows best."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.analysis.head_measures import ALL, Metric, cells_of, choosing, repeats_of
from transformer.analysis.head_metrics import MIN_ROWS, TIMES_EVEN, HeadMetrics, Metrics
from transformer.runs.head_data import records_of
from transformer.runs.run import Run


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What one head does on this text, further above an even head than all others.

    clear: whether it has a label. Else no head has one, and this is the nearest: TIMES_EVEN times
    an even head's number at the least, and above that of every shuffled copy.
    value, even: the number of `metric`, of the head and of an even head (of an order the largest
    weight of a row); n_rows: the rows that it is a mean of.
    query, key, weight: of these rows the one where the head reads so most clearly.
    """

    layer: int
    head: int
    metric: Metric
    clear: bool
    value: float
    even: float
    n_rows: int
    query: int
    key: int
    weight: float


def strongest(run: Run, found: Metrics) -> Finding | None:
    """The finding of the run's metrics; None where no head stands out."""
    labelled = [
        (head, head.named_after)
        for head in found.heads
        if head.named_after is not None and head.named_after != "entropy"
    ]
    candidates = labelled or _nearly(found)
    if not candidates:
        return None
    times = [head.values[_number(name)] / found.even[_number(name)] for head, name in candidates]
    best, name = candidates[max(range(len(times)), key=times.__getitem__)]
    record = records_of(run, found.stack, found.kind)[best.layer]
    weights = record.pattern[0, best.head].cpu()
    queries, keys = _cells(run, found, best, name, weights, record.allowed[0].cpu())
    most = int(weights[queries, keys].argmax())
    return Finding(
        layer=best.layer,
        head=best.head,
        metric=ALL[name],
        clear=bool(labelled),
        value=best.values[_number(name)],
        even=found.even[_number(name)],
        n_rows=len(queries),
        query=int(queries[most]),
        key=int(keys[most]),
        weight=float(weights[queries, keys][most]),
    )


def _nearly(found: Metrics) -> list[tuple[HeadMetrics, str]]:
    """Heads with a number about a place above both baselines, though too low for a label."""
    enough = {
        metric.name: found.n_repeats if metric.repeats else found.n_rows
        for metric in found.metrics
        if metric.place
    }
    return [
        (head, name)
        for head in found.heads
        for name, n_rows in enough.items()
        if n_rows >= MIN_ROWS
        and head.values[name] >= TIMES_EVEN * found.even[name]
        and head.values[name] > head.shuffled[name][1]
    ]


def _number(name: str) -> str:
    """The metric that can be held against an even head's: of an order there is none."""
    return "largest" if name == "order" else name


def _cells(
    run: Run, found: Metrics, head: HeadMetrics, name: str, weights: Tensor, allowed: Tensor
) -> tuple[Tensor, Tensor]:
    """(N,) queries and (N,) keys of the cells that a metric is about."""
    if ALL[name].place:
        tokens = run.queries(found.stack) if found.kind == "self" else ()
        return cells_of(name, allowed, repeats_of(tokens, allowed))
    queries = choosing(allowed)
    if name == "order":
        return queries, weights[queries].argmax(dim=-1)
    return queries, torch.full_like(queries, head.most_read_key)
