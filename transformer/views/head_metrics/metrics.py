"""One metric of every head as a map, layers down and heads across."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer.analysis.head_measures import ALL, Metric
from transformer.analysis.head_metrics import Metrics, head_metrics
from transformer.checks import check_choice
from transformer.messages import numeral, say
from transformer.network_words import attention_name
from transformer.runs.run import Run
from transformer.views.drawing import style
from transformer.views.drawing.head_map import head_axes, head_labels

__all__ = ["draw_metric", "head_metrics", "metrics_figure"]  # the function, not this folder's name

NUMBERS_UP_TO = 8  # heads of a layer: with more, numbers would not fit on the cells


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
    unit = f" ({say(chosen.unit)})" if chosen.unit else ""
    trace = go.Heatmap(
        z=cells,
        texttemplate="%{z:.2f}" if cells.shape[1] <= NUMBERS_UP_TO else None,
        textfont={"size": style.FONT_SIZE},
        hovertemplate=say("layer %{y}, head %{x}: %{z:.4f}<extra></extra>"),
        colorbar=style.colorbar(say(chosen.title) + unit),
        **_range_of(chosen, cells),
    )
    labels = head_labels(cells.shape)
    meta = labels | {"metric": metric, "definition": chosen.definition}
    title = say(
        "{title}{unit} of every head, {attention}",
        title=say(chosen.title),
        unit=unit,
        attention=attention_name(found.stack, found.kind),
    )
    subtitle, axes = _baselines(found, metric), head_axes(cells.shape)
    return style.figure(trace, title, subtitle, dark=dark, meta=meta, **axes)


def _range_of(metric: Metric, cells: Any) -> dict[str, Any]:
    if metric.name == "order":
        return {"colorscale": style.DIVERGING, "zmin": -1, "zmax": 1}
    largest = float(np.nan_to_num(cells).max(initial=0.0)) or 1.0
    return {"colorscale": style.WEIGHTS, "zmin": 0, "zmax": largest if metric.unit else 1}


def _baselines(found: Metrics, metric: str) -> str:
    if ALL[metric].repeats and not found.n_repeats:
        return say("this text repeats no token with another between")
    parts = (
        []
        if math.isnan(found.even[metric])
        else [say("a uniform head: {even}", even=numeral(found.even[metric], ".2f"))]
    )
    if ALL[metric].against == "shuffled":
        largest = [head.shuffled[metric][1] for head in found.heads]
        parts.append(say("keys shuffled: at most {largest}", largest=numeral(max(largest), ".2f")))
    return ", ".join(parts) or say("no baseline: a uniform head's does not vary")
