"""Metrics of each head: how widely it reads, how far, and whether at a fixed position.

Every number comes with a baseline from the same run and the same mask, because a causal mask alone
makes early keys likely: see `Metrics`.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.analysis.head_measures import (
    ALL,
    Metric,
    ShuffledKeys,
    cells_by_name,
    cells_of,
    choosing,
    measure,
    names_of,
    repeats_of,
)
from transformer.model.sites import Site
from transformer.runs.compact_trace import stored_at
from transformer.runs.head_data import n_heads_at, one_head, sites_of, switched_off
from transformer.runs.run import Run

MIN_ROWS = 5  # with fewer rows a label would be chance
N_SHUFFLES, LEAST_SHUFFLES = 20, 5
CELLS = 150_000_000  # of all shuffled copies together: a few seconds on two cores
CELLS_AT_ONCE = 1_000_000  # of the layers that are measured together

LEAST_WEIGHT, TIMES_EVEN, NEARLY_EVEN, LEAST_ORDER = 0.4, 3.0, 0.95, 0.8
LEAST_AGAIN, TIMES_EVEN_AGAIN = 0.2, 5.0  # of rows whose token occurred earlier


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadMetrics:
    """One head's numbers by metric. NaN: there is no row, nothing varies, or the head is switched
    off.

    even: those of a uniform head under the layer's mask; n_rows, n_repeats: as in `Metrics`, under
    this mask. shuffled: (mean, largest) over the shuffled copies, for the metrics compared with
    them.
    most_read_key: the position of the key that the metric `most_read` is about. named_after: the
    metric that is high enough for a label (see `named_after`), if any is.
    """

    layer: int
    head: int
    values: Mapping[str, float]
    even: Mapping[str, float]
    shuffled: Mapping[str, tuple[float, float]]
    n_rows: int
    n_repeats: int
    most_read_key: int
    named_after: str | None

    @property
    def label(self) -> str | None:
        """The label of the metric that the head is named after; None if no number is high."""
        return None if self.named_after is None else ALL[self.named_after].label


@dataclass(frozen=True, kw_only=True, slots=True)
class Metrics:
    """All heads of one kind of attention of a run, layer by layer, with their baselines.

    Rows with a single allowed key cannot choose and are left out of every mean. n_rows: the others;
    n_repeats: the rows whose token occurred earlier in the text; induction, duplicate and backwards
    are means over these. Both are of the layer that has the most, where layers have masks of their
    own.

    Two baselines, because neither fits all metrics:
    - even: a head that gives every allowed key of a row the same weight, under the mask of the
      layer: `HeadMetrics.even`. It says what the mask and
      the length alone make of a metric. It is also, exactly, what shuffling a row's weights among
      its allowed keys gives on average for a weight at a fixed position; entropy and the largest
      weight are not changed by such a shuffle at all, and so have this baseline only.
    - shuffled: `n_shuffles` copies of each head in which every key vector has another position: one
    seeded permutation of the columns of the scores, then the same mask and softmax. A head that
    looks for content at any position keeps that content but loses the position; so a number about a
    position that no copy reaches is about the position.
    """

    stack: str
    kind: str
    metrics: tuple[Metric, ...]
    heads: tuple[HeadMetrics, ...]
    n_rows: int
    n_repeats: int
    n_left_out: int
    n_shuffles: int


def head_metrics(run: Run, stack: str | None = None, kind: str = "self") -> Metrics:
    """The metrics of every head of a stack, by default the last. Raises ValueError listing the
    kinds that were recorded."""
    if not isinstance(run, Run):
        raise ValueError(
            f"metrics are of a run of one text, as a batch's batch[0]; got {type(run).__name__}"
        )
    stack = run.trace.sites[-1].stack if stack is None else stack
    sites = sites_of(run, stack, kind)
    masks = [stored_at(run.trace, site).allowed[0].cpu() for site in sites]
    names = names_of(kind, torch.stack(masks).any(dim=0))
    n_cells = n_heads_at(run.trace, sites[0]) * masks[0].numel()  # of a layer
    n_orders = max(LEAST_SHUFFLES, min(N_SHUFFLES, CELLS // (len(sites) * n_cells)))
    orders = _permutations(n_orders, masks[0].shape[1])
    tokens = run.queries(stack) if kind == "self" else ()
    under: list[_UnderMask] = []  # by layer; layers with the same mask share one
    for mask in masks:
        alike = (metrics for metrics in under if metrics.allowed.equal(mask))
        under.append(next(alike, None) or _UnderMask(mask, names, tokens, orders))
    at_once = max(1, CELLS_AT_ONCE // n_cells)
    heads: list[HeadMetrics] = []
    for _, same in itertools.groupby(zip(sites, under, strict=True), lambda pair: id(pair[1])):
        layers = [*same]
        for first in range(0, len(layers), at_once):
            part = [site for site, _ in layers[first : first + at_once]]
            heads += _of_layers(run, part, names, layers[0][1])
    n_rows = max(head.n_rows for head in heads)
    return Metrics(
        stack=stack,
        kind=kind,
        metrics=tuple(ALL[name] for name in names),
        heads=tuple(heads),
        n_rows=n_rows,
        n_repeats=max(head.n_repeats for head in heads),
        n_left_out=len(masks[0]) - n_rows,
        n_shuffles=len(orders),
    )


class _UnderMask:
    """What the heads of layers with one mask are compared with."""

    def __init__(
        self, allowed: Tensor, names: tuple[str, ...], tokens: Sequence[str], orders: Tensor
    ) -> None:
        repeats = repeats_of(tokens, allowed)
        self.allowed, self.n_repeats = allowed, len(repeats)
        self.cells = cells_by_name(names, allowed, repeats)
        uniform = allowed[None] / allowed.sum(dim=1, keepdim=True)
        even = measure(uniform, allowed, names, self.cells)
        self.even = {name: float(values[0]) for name, values in even.items()}
        placed = tuple(name for name in names if ALL[name].against == "shuffled")
        self.copies = ShuffledKeys(orders, allowed, placed, self.cells)


@functools.lru_cache(maxsize=16)
def _permutations(count: int, n_keys: int) -> Tensor:
    """(P, Tk), the same ones for every head."""
    generator = torch.Generator().manual_seed(0)
    return torch.stack([_moved(n_keys, generator) for _ in range(count)])


def _moved(n_keys: int, generator: torch.Generator) -> Tensor:
    """A permutation without fixed points (a single key has none)."""
    positions = torch.arange(n_keys, device="cpu")
    while True:  # one in three permutations has no fixed point
        order = torch.randperm(n_keys, generator=generator, device="cpu")
        if n_keys < 2 or not (order == positions).any():
            return order


def _of_layers(
    run: Run, sites: Sequence[Site], names: tuple[str, ...], under: _UnderMask
) -> list[HeadMetrics]:
    """The heads of some layers with one mask, all measured at once."""
    records = [run.trace[site] for site in sites]
    allowed, n_repeats = under.allowed, under.n_repeats
    weights = torch.cat([record.pattern[0].cpu() for record in records])  # (N, Tq, Tk)
    scores = torch.cat([record.scores[0].cpu() for record in records])
    values = {
        name: of_heads.tolist()
        for name, of_heads in measure(weights, allowed, names, under.cells).items()
    }
    shuffled = {
        name: list(zip(x.mean(dim=1).tolist(), x.amax(dim=1).tolist(), strict=True))
        for name, x in under.copies.measure(scores).items()
    }
    at = choosing(allowed)
    most = weights.index_select(1, at).sum(dim=1).argmax(dim=-1).tolist()
    few = {name for name in names if ALL[name].repeats and n_repeats < MIN_ROWS}
    off = {site: switched_off(run, site) for site in sites}
    heads = []
    for number in range(len(weights)):
        layer, head = divmod(number, len(weights) // len(sites))
        site = sites[layer]
        is_off = head in off[site]
        own = {name: math.nan if is_off else values[name][number] for name in names}
        others = {} if is_off else {name: shuffled[name][number] for name in shuffled}
        enough = {name: value for name, value in own.items() if name not in few}
        is_named = len(at) >= MIN_ROWS and not is_off
        heads.append(
            HeadMetrics(
                layer=site.layer, head=head, values=own, even=under.even, shuffled=others,
                n_rows=len(at), n_repeats=n_repeats, most_read_key=most[number],
                named_after=named_after(enough, under.even, others) if is_named else None,
            )
        )  # fmt: skip
    return heads


def named_after(
    values: Mapping[str, float],
    even: Mapping[str, float],
    shuffled: Mapping[str, tuple[float, float]],
) -> str | None:
    """The metric that says clearly what the head does: the position metric that is the largest
    multiple of a uniform head's, else one token, else order, else entropy (reads evenly), else
    None."""

    def clear(name: str) -> bool:
        again = ALL[name].repeats
        least, times = (LEAST_AGAIN, TIMES_EVEN_AGAIN) if again else (LEAST_WEIGHT, TIMES_EVEN)
        return values[name] >= least and values[name] >= times * even[name]

    positions = [name for name in values if ALL[name].position]
    clear_names = [name for name in positions if clear(name) and values[name] > shuffled[name][1]]
    if clear_names:
        return max(clear_names, key=lambda name: values[name] / even[name])
    if clear("most_read"):
        return "most_read"
    sharp = "order" in values and values["largest"] >= LEAST_WEIGHT
    if sharp and values["order"] >= LEAST_ORDER and values["order"] > shuffled["order"][1]:
        return "order"
    return "entropy" if values["entropy"] >= NEARLY_EVEN * even["entropy"] else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The head that differs most clearly from a uniform head on this text, and how.

    clear: whether it has a label. Else no head has one, and this is the nearest: at least
    TIMES_EVEN times a uniform head's number, and above that of every shuffled copy. value, even:
    the number of `metric`, of the head and of a uniform head (of an order the largest weight of a
    row); n_rows: the rows that it is a mean of.
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
    """The finding of the run's metrics; None if no head is clearly above a uniform one."""
    labelled = [
        (head, head.named_after)
        for head in found.heads
        if head.named_after is not None and head.named_after != "entropy"
    ]
    candidates = labelled or _nearly(found)
    if not candidates:
        return None
    times = [head.values[_number(name)] / head.even[_number(name)] for head, name in candidates]
    best, name = candidates[max(range(len(times)), key=times.__getitem__)]
    site = Site(found.stack, best.layer, found.kind)
    record = one_head(run.trace, site, 0, best.head)
    weights = record.pattern[0, 0].cpu()
    allowed = record.allowed[0].cpu()
    queries, keys = _cells(run, found, best, name, weights, allowed)
    most = int(weights[queries, keys].argmax())
    return Finding(
        layer=best.layer,
        head=best.head,
        metric=ALL[name],
        clear=bool(labelled),
        value=best.values[_number(name)],
        even=best.even[_number(name)],
        n_rows=len(queries),
        query=int(queries[most]),
        key=int(keys[most]),
        weight=float(weights[queries, keys][most]),
    )


def _nearly(found: Metrics) -> list[tuple[HeadMetrics, str]]:
    """Heads with a position metric above both baselines but too low for a label."""
    return [
        (head, metric.name)
        for head in found.heads
        for metric in found.metrics
        if metric.position
        and (head.n_repeats if metric.repeats else head.n_rows) >= MIN_ROWS
        and head.values[metric.name] >= TIMES_EVEN * head.even[metric.name]
        and head.values[metric.name] > head.shuffled[metric.name][1]
    ]


def _number(name: str) -> str:
    """The metric to compare with a uniform head's, which has no order."""
    return "largest" if name == "order" else name


def _cells(
    run: Run, found: Metrics, head: HeadMetrics, name: str, weights: Tensor, allowed: Tensor
) -> tuple[Tensor, Tensor]:
    """(N,) queries and (N,) keys of the cells that a metric is about."""
    if ALL[name].position:
        tokens = run.queries(found.stack) if found.kind == "self" else ()
        return cells_of(name, allowed, repeats_of(tokens, allowed))
    queries = choosing(allowed)
    if name == "order":
        return queries, weights[queries].argmax(dim=-1)
    return queries, torch.full_like(queries, head.most_read_key)
