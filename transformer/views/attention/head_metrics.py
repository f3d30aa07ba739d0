"""Metrics of every head as a table, and one metric of every head as a map."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import plotly.graph_objects as go

from transformer.analysis.head_measures import ALL, NAMES_OF_KIND, Metric
from transformer.analysis.head_metrics import (
    CELLS,
    LEAST_AGAIN,
    LEAST_ORDER,
    LEAST_SHUFFLES,
    LEAST_WEIGHT,
    MIN_ROWS,
    N_SHUFFLES,
    NEARLY_EVEN,
    TIMES_EVEN,
    TIMES_EVEN_AGAIN,
    HeadMetrics,
    Metrics,
    head_metrics,
    strongest,
)  # fmt: skip
from transformer.checks import check_choice
from transformer.messages import capital, mark, numeral, say
from transformer.network_words import attention_name
from transformer.runs.memo import memoize_on_run
from transformer.runs.run import Run
from transformer.views.declaration import Answer, View, picture
from transformer.views.drawing import style
from transformer.views.drawing.matrix import head_layout
from transformer.views.parameters import KIND, STACK, Choice, Text

DIGITS = 5


def answer_metrics(
    item: Run, *, stack: Annotated[str, STACK], kind: Annotated[str, KIND]
) -> Answer:
    """The metrics of every head, their definitions and baselines; null where there is no number."""
    labels = item.keys(stack, kind)
    metrics = metrics_of(item, stack, kind)
    return {
        "metrics": [_metric(metrics, metric) for metric in metrics.metrics],
        "heads": [_head(head, labels) for head in metrics.heads],
        "even": [
            {name: _plain(value) for name, value in even.items()} for even in _even(metrics)
        ],  # by layer
        "finding": _finding(item, metrics),
        "rule": _rule(),
    } | {
        name: getattr(metrics, name) for name in ("n_rows", "n_repeats", "n_left_out", "n_shuffles")
    }


def _rule() -> str:
    """When a head gets a label, in words."""
    return say(
        "A head gets a label only if its number is at least {least}, at least {times} times that "
        "of a uniform head and, for a place, above that of every shuffled copy of it; of several, "
        "the one that is the most times a uniform head's. Induction, duplicate and backwards ask "
        "for {again}, for {times_again} times a uniform head's and for {rows} rows, because full "
        "stops and little words come again by chance. “Reads evenly” asks for {evenly} of the "
        "uniform head's entropy; “reads in order” for an order of {order}, above every shuffled "
        "copy's, and a largest weight of {least}. With fewer than {rows} rows no head gets a "
        "label. No label only means that none of these numbers is high.",
        least=numeral(LEAST_WEIGHT, "g"),
        times=numeral(TIMES_EVEN, "g"),
        again=numeral(LEAST_AGAIN, "g"),
        times_again=numeral(TIMES_EVEN_AGAIN, "g"),
        evenly=numeral(NEARLY_EVEN, ".0%"),
        order=numeral(LEAST_ORDER, "g"),
        rows=MIN_ROWS,
    )


def measures() -> dict[str, Any]:
    """What the network in the browser needs to measure heads itself: the names of each kind's
    metrics, each metric in words, and when a head gets a label."""
    texts = ("title", "unit", "definition", "label")
    return {
        "of": NAMES_OF_KIND,
        "metrics": {
            name: {one: say(text) if (text := getattr(metric, one)) else text for one in texts}
            | {one: getattr(metric, one) for one in ("sign", "against", "position", "repeats")}
            for name, metric in ALL.items()
        },
        "rule": _rule(),
        "limits": {
            "rows": MIN_ROWS,
            "shuffles": N_SHUFFLES,
            "least_shuffles": LEAST_SHUFFLES,
            "cells": CELLS,
            "weight": LEAST_WEIGHT,
            "times": TIMES_EVEN,
            "again": LEAST_AGAIN,
            "times_again": TIMES_EVEN_AGAIN,
            "evenly": NEARLY_EVEN,
            "order": LEAST_ORDER,
        },
    }


def _head(head: HeadMetrics, labels: Sequence[str]) -> dict[str, Any]:
    """A head's numbers, and its label in words and as a sign; null without a label."""
    metric = ALL.get(head.named_after or "")
    return {
        "layer": head.layer,
        "head": head.head,
        "values": {name: _plain(value) for name, value in head.values.items()},
        "label": metric and metric.label and say(metric.label),
        "sign": metric and metric.sign,
        "key": head.most_read_key,
        "key_label": labels[head.most_read_key],
    }


def _finding(item: Run, metrics: Metrics) -> dict[str, Any] | None:
    """The strongest finding in words and numbers; query and key are rows and columns."""
    best = strongest(item, metrics)
    if best is None:
        return None
    labels = item.queries(metrics.stack)
    names = ("layer", "head", "clear", "value", "even", "n_rows", "query", "key", "weight")
    return {name: getattr(best, name) for name in names} | {
        "does": best.metric.label and say(best.metric.label),
        "title": say(best.metric.title),
        "number": say("Largest weight") if best.metric.name == "order" else capital(say("weight")),
        "query_label": labels[best.query],
        "key_label": item.keys(metrics.stack, metrics.kind)[best.key],
    }


def metrics_of(item: Run, stack: str, kind: str) -> Metrics:
    return memoize_on_run(item, ("metrics", stack, kind), lambda: head_metrics(item, stack, kind))


def _metric(metrics: Metrics, metric: Metric) -> dict[str, Any]:
    """A metric's words, and its baseline of the shuffled copies: their mean over all heads, and the
    largest of all."""
    name = metric.name
    shuffled = [head.shuffled[name][0] for head in metrics.heads if name in head.shuffled]
    means = [mean for mean in shuffled if not math.isnan(mean)]
    return {
        "name": name,
        "title": say(metric.title),
        "unit": say(metric.unit) if metric.unit else "",
        "definition": say(metric.definition),
        "shuffled": _plain(sum(means) / len(means) if means else math.nan),
        "shuffled_most": _plain(_largest_shuffled(metrics, name)),
    }


def _even(metrics: Metrics) -> list[Mapping[str, float]]:
    """A uniform head's numbers in each layer."""
    return list({head.layer: head.even for head in metrics.heads}.values())


def _largest_shuffled(metrics: Metrics, metric: str) -> float:
    """The largest number of all shuffled copies; NaN if there is none."""
    most = (head.shuffled[metric][1] for head in metrics.heads if metric in head.shuffled)
    return max((number for number in most if not math.isnan(number)), default=math.nan)


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else round(value, DIGITS)


NUMBERS_UP_TO = 8  # layers: with more, numbers would not fit on the cells


def metrics_figure(
    run: Run,
    stack: Annotated[str, STACK],
    kind: Annotated[str, KIND],
    metric: Annotated[str, Text(use="request")] = "entropy",
) -> go.Figure:
    """One metric of every head: layers across, heads down, the baselines in the subtitle.

    Weights are coloured from 0 to 1, an order from -1 to 1, the others from 0 to the largest.
    `layout.meta` carries row_labels, column_labels and the metric's name, title and definition.
    Raises ValueError, listing what there is, for an unknown stack, kind or metric.
    """
    return draw_metric(metrics_of(run, stack, kind), metric)


def draw_metric(metrics: Metrics, metric: str) -> go.Figure:
    """`metrics_figure` of metrics that are already computed."""
    check_choice("metric", metric, tuple(each.name for each in metrics.metrics))
    chosen = ALL[metric]
    values = np.array([head.values[metric] for head in metrics.heads], dtype=np.float32)
    n_layers = metrics.heads[-1].layer + 1
    cells = values.reshape(n_layers, -1).T  # heads down, layers across
    unit = f" ({say(chosen.unit)})" if chosen.unit else ""
    largest = float(np.nan_to_num(cells).max(initial=0.0)) or 1.0
    colours = {"colorscale": style.WEIGHTS, "zmin": 0, "zmax": largest if chosen.unit else 1}
    trace = go.Heatmap(
        z=cells,
        texttemplate="%{z:.2f}" if cells.shape[1] <= NUMBERS_UP_TO else None,
        textfont={"size": style.FONT_SIZE},
        hovertemplate=style.cell_hover(say("head"), say("layer"), say(chosen.title)),
        colorbar=style.colorbar(say(chosen.title) + unit),
        **(style.signed(1) if metric == "order" else colours),
    )
    meta = {"metric": metric, "definition": chosen.definition}
    title = (
        f"{say(chosen.title)}{unit} of every head, {attention_name(metrics.stack, metrics.kind)}"
    )
    layout = head_layout(cells.shape, meta)
    return style.figure(trace, title, _baselines(metrics, metric), **layout)


def _baselines(metrics: Metrics, metric: str) -> str:
    if ALL[metric].repeats and not metrics.n_repeats:
        return "this text repeats no token with another between"
    even = [f"{values[metric]:.2f}" for values in _even(metrics) if not math.isnan(values[metric])]
    parts = [f"a uniform head: {', '.join(dict.fromkeys(even))}"] if even else []
    if ALL[metric].against == "shuffled":
        most = numeral(_largest_shuffled(metrics, metric), ".2f")
        parts.append(f"keys shuffled: at most {most}")
    return ", ".join(parts) or "no baseline: a uniform head's does not vary"


VIEW = View(
    name="head_metrics",
    tab=mark("Attention"),
    order=120,
    folded=True,
    title=mark("What each head does, in numbers"),
    help=("One number for every head, such as its entropy, with a uniform head as the baseline."),
    parameters=(
        Choice(
            name="sort",
            title="Sorted by",
            options={"head": "Head", "label": "Label"}
            | {name: metric.title for name, metric in ALL.items()},
            default="head",
            link="sort",
        ),
        Choice(
            name="order",
            title="Which stand first",
            options={"down": "largest first", "up": "smallest first"},
            default="up",
            link="order",
        ),
    ),
    pictures=(
        picture(
            answer_metrics,
            figure=metrics_figure,
            title=mark("Head metrics"),
            help="One number for every head, such as its entropy, with a uniform head as baseline.",
            idle=True,
        ),
        picture(
            metrics_figure,
            name="metric_map",
            title="One metric of every head",
            help="One metric of every head as a picture: layers across, heads down.",
            idle=True,
        ),
    ),
)
