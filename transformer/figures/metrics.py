"""What each head does, in numbers: how widely it reads, how far, and whether at a fixed place.

Every number comes with a baseline of the same run and the same mask, because a causal mask alone
makes early keys likely: see `Metrics`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
import torch
from torch import Tensor

from transformer.figures import style
from transformer.figures.data import check_choice, records_of
from transformer.figures.measures import ALL, Metric, measure, names_of
from transformer.inference.run import Run
from transformer.model.trace import AttentionRecord

MIN_ROWS = 5  # with fewer rows a label would be chance
N_SHUFFLES, LEAST_SHUFFLES = 20, 5
CELLS = 150_000_000  # of all shuffled copies together: a few seconds on two cores

NUMBERS_UP_TO = 8  # heads of a layer: with more, numbers would not fit on the cells

LEAST_WEIGHT, TIMES_EVEN, NEARLY_EVEN, LEAST_ORDER = 0.4, 3.0, 0.95, 0.8
RULE = (
    f"A head gets a label only if its number is at least {LEAST_WEIGHT:g}, at least "
    f"{TIMES_EVEN:g} times that of an even head and, for a place, above that of every shuffled "
    f"copy of it. “Reads evenly” asks for {NEARLY_EVEN:.0%} of the even head's entropy; “reads in "
    f"order” for an order of {LEAST_ORDER:g}, above every shuffled copy's, and a largest weight of "
    f"{LEAST_WEIGHT:g}. With fewer than {MIN_ROWS} rows no head gets a label. No label only means "
    "that none of these numbers is high."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadMetrics:
    """One head's numbers by metric. NaN: no row, or nothing varies.

    shuffled: (mean, largest) over the shuffled copies, for the metrics that are held against them.
    most_read_key: the place of the key that the metric `most_read` is about.
    """

    layer: int
    head: int
    values: Mapping[str, float]
    shuffled: Mapping[str, tuple[float, float]]
    most_read_key: int
    label: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Metrics:
    """All heads of one kind of attention of a run, layer by layer, and what they are held against.

    Rows with a single allowed key cannot choose and are left out of every mean.

    Two baselines, because neither fits all metrics:
    - even: a head that gives every allowed key of a row the same weight. It says what the mask and
      the length alone make of a metric. It is also, exactly, what shuffling a row's weights among
      its allowed keys gives on average for a weight at a fixed place; entropy and the largest
      weight are not changed by such a shuffle at all, and so have this baseline only.
    - shuffled: `n_shuffles` copies of each head in which every key vector stands at another place:
      one seeded permutation of the columns of the scores, then the same mask and softmax. A head
      that looks for content, wherever it stands, keeps that content but loses the place; so a
      number about a place that no copy reaches is about the place.
    """

    stack: str
    kind: str
    metrics: tuple[Metric, ...]
    heads: tuple[HeadMetrics, ...]
    even: Mapping[str, float]
    n_rows: int
    n_left_out: int
    n_shuffles: int


def head_metrics(run: Run, stack: str, kind: str) -> Metrics:
    """The metrics of every head. Raises ValueError listing the kinds that were recorded."""
    records = records_of(run, stack, kind)
    allowed = records[0].allowed[0].cpu()
    choosing = allowed.sum(dim=1) >= 2
    names = names_of(kind, allowed)
    even = measure(allowed[None] / allowed.sum(dim=1, keepdim=True), allowed, names)
    orders = _permutations(records, allowed.shape[1])
    base = {name: float(values[0]) for name, values in even.items()}
    n_rows = int(choosing.sum())
    heads = [
        head
        for layer, record in enumerate(records)
        for head in _of_layer(layer, record, allowed, names, base, orders)
    ]
    return Metrics(
        stack=stack,
        kind=kind,
        metrics=tuple(ALL[name] for name in names),
        heads=tuple(heads),
        even=base,
        n_rows=n_rows,
        n_left_out=len(choosing) - n_rows,
        n_shuffles=len(orders),
    )


def _permutations(records: list[AttentionRecord], n_keys: int) -> list[Tensor]:
    """The same ones for every head; fewer for a large run."""
    cells = max(1, sum(record.scores[0].numel() for record in records))
    count = max(LEAST_SHUFFLES, min(N_SHUFFLES, CELLS // cells))
    generator = torch.Generator().manual_seed(0)
    return [_moved(n_keys, generator) for _ in range(count)]


def _moved(n_keys: int, generator: torch.Generator) -> Tensor:
    """A permutation that leaves no key in its place (of a single key there is none)."""
    places = torch.arange(n_keys)
    while True:  # one in three permutations is such a one
        order = torch.randperm(n_keys, generator=generator)
        if n_keys < 2 or not (order == places).any():
            return order


def _of_layer(
    layer: int, record: AttentionRecord, allowed: Tensor, names: tuple[str, ...],
    even: Mapping[str, float], orders: list[Tensor],
) -> list[HeadMetrics]:  # fmt: skip
    weights, scores = record.weights[0].cpu(), record.scores[0].cpu()
    values = measure(weights, allowed, names)
    placed = tuple(name for name in names if ALL[name].against == "shuffled")
    hidden = torch.finfo(scores.dtype).min
    copies = [
        measure(scores[..., o].masked_fill(~allowed, hidden).softmax(-1), allowed, placed)
        for o in orders
    ]
    most = weights[:, allowed.sum(dim=1) >= 2].sum(dim=1).argmax(dim=-1)
    heads = []
    for head in range(len(weights)):
        own = {name: float(values[name][head]) for name in names}
        others = {name: torch.stack([copy[name][head] for copy in copies]) for name in placed}
        shuffled = {name: (float(x.mean()), float(x.max())) for name, x in others.items()}
        n_rows = int((allowed.sum(dim=1) >= 2).sum())
        heads.append(
            HeadMetrics(
                layer=layer, head=head, values=own, shuffled=shuffled,
                most_read_key=int(most[head]),
                label=label_of(own, even, shuffled) if n_rows >= MIN_ROWS else None,
            )
        )  # fmt: skip
    return heads


def label_of(
    values: Mapping[str, float],
    even: Mapping[str, float],
    shuffled: Mapping[str, tuple[float, float]],
) -> str | None:
    """What the head does, if its numbers say so clearly (see RULE): the place with most weight,
    else one token, else order, else evenly, else None."""

    def clear(name: str) -> bool:
        return values[name] >= LEAST_WEIGHT and values[name] >= TIMES_EVEN * even[name]

    places = [name for name in ("previous", "next", "itself", "first", "last") if name in values]
    found = [name for name in places if clear(name) and values[name] > shuffled[name][1]]
    if found:
        return ALL[max(found, key=lambda name: values[name])].label
    if clear("most_read"):
        return ALL["most_read"].label
    sharp = "order" in values and values["largest"] >= LEAST_WEIGHT
    if sharp and values["order"] >= LEAST_ORDER and values["order"] > shuffled["order"][1]:
        return ALL["order"].label
    return "reads evenly" if values["entropy"] >= NEARLY_EVEN * even["entropy"] else None


def metrics_figure(
    run: Run, stack: str, kind: str, metric: str = "entropy", *, dark: bool = False
) -> go.Figure:
    """One metric of every head: layers down, heads across, the baselines in the subtitle.

    Weights are coloured from 0 to 1, an order from -1 to 1, the others from 0 to the largest.
    `layout.meta` carries row_labels, column_labels and the metric's name, title and definition.
    Raises ValueError, listing what there is, for an unknown stack, kind or metric.
    """
    return draw_metric(head_metrics(run, stack, kind), metric, dark=dark)


def draw_metric(found: Metrics, metric: str, *, dark: bool = False) -> go.Figure:
    """`metrics_figure` of metrics that are there already."""
    check_choice("metric", metric, tuple(one.name for one in found.metrics))
    chosen = ALL[metric]
    values = np.array([head.values[metric] for head in found.heads], dtype=np.float32)
    n_layers = found.heads[-1].layer + 1
    cells = values.reshape(n_layers, -1)
    unit = f" ({chosen.unit})" if chosen.unit else ""
    trace = go.Heatmap(
        z=cells,
        texttemplate="%{z:.2f}" if cells.shape[1] <= NUMBERS_UP_TO else None,
        textfont={"size": style.FONT_SIZE},
        hovertemplate="layer %{y}, head %{x}: %{z:.4f}<extra></extra>",
        colorbar=style.colorbar(chosen.title + unit),
        **_range_of(chosen, cells, dark),
    )
    meta = {
        "row_labels": [f"layer {place}" for place in range(n_layers)],
        "column_labels": [f"head {place}" for place in range(cells.shape[1])],
        "metric": metric,
        "definition": chosen.definition,
    }
    axes = {
        f"{name}axis": style.axis(
            title, dark=dark, range=span, constrain="domain",
            tickmode="linear", tick0=0, dtick=max(1, -(-count // style.MAX_TICKS)),
        )
        for name, title, count, span in (
            ("x", "head", cells.shape[1], [-0.5, cells.shape[1] - 0.5]),
            ("y", "layer", n_layers, [n_layers - 0.5, -0.5]),
        )
    }  # fmt: skip
    title = f"{chosen.title}{unit} of every head, {found.stack} {found.kind}-attention"
    layout = style.layout(title, _baselines(found, metric), dark=dark, meta=meta, **axes)
    return go.Figure(data=[trace], layout=layout)


def _range_of(metric: Metric, cells: Any, dark: bool) -> dict[str, Any]:
    if metric.name == "order":
        return {"colorscale": style.diverging(dark), "zmin": -1, "zmax": 1}
    largest = float(np.nan_to_num(cells).max(initial=0.0)) or 1.0
    return {"colorscale": style.cividis(), "zmin": 0, "zmax": largest if metric.unit else 1}


def _baselines(found: Metrics, metric: str) -> str:
    parts = [] if math.isnan(found.even[metric]) else [f"an even head: {found.even[metric]:.2f}"]
    if ALL[metric].against == "shuffled":
        largest = [head.shuffled[metric][1] for head in found.heads]
        parts.append(f"keys shuffled: at most {max(largest):.2f}")
    return ", ".join(parts) or "no baseline: an even head's does not vary"
