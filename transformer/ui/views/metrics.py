"""What each head does, in numbers."""

from __future__ import annotations

import functools
import math
from typing import Any

from transformer import figures
from transformer.figures.metrics import RULE, Metrics, draw_metric
from transformer.ui.store import RunStore
from transformer.ui.views.answers import Answer, as_json

DIGITS = 5
KEPT = 64  # metrics of so many kinds of attention; they do not change and take a second


def metrics(store: RunStore, *, run: str, stack: str, kind: str) -> Answer:
    """The metrics of every head, their definitions and baselines; null where there is no number."""
    labels = store.run(run).keys(stack, kind)
    found = _metrics(store, run, stack, kind)
    return {
        "metrics": [_metric(found, metric.name) for metric in found.metrics],
        "heads": [
            {
                "layer": head.layer,
                "head": head.head,
                "values": {name: _plain(value) for name, value in head.values.items()},
                "key": head.most_read_key,
                "key_label": labels[head.most_read_key],
                "label": head.label,
            }
            for head in found.heads
        ],
        "rule": RULE,
        "n_rows": found.n_rows,
        "n_left_out": found.n_left_out,
        "n_shuffles": found.n_shuffles,
    }


def metric_map(
    store: RunStore, *, run: str, stack: str, kind: str, metric: str, dark: bool = False
) -> Answer:
    """One metric of every head as a picture: layers down, heads across."""
    store.run(run)
    return {"figure": as_json(draw_metric(_metrics(store, run, stack, kind), metric, dark=dark))}


@functools.lru_cache(maxsize=KEPT)
def _metrics(store: RunStore, run: str, stack: str, kind: str) -> Metrics:
    return figures.head_metrics(store.run(run), stack, kind)


def _metric(found: Metrics, name: str) -> dict[str, Any]:
    """A metric's words, and its baselines: of an even head, and of the shuffled copies (their mean
    over all heads, and the largest of all)."""
    metric = next(one for one in found.metrics if one.name == name)
    shuffled = [head.shuffled[name] for head in found.heads if name in head.shuffled]
    average = sum(mean for mean, _ in shuffled) / len(shuffled) if shuffled else math.nan
    return {
        "name": name,
        "title": metric.title,
        "unit": metric.unit,
        "definition": metric.definition,
        "even": _plain(found.even[name]),
        "shuffled": _plain(average),
        "shuffled_most": _plain(max((most for _, most in shuffled), default=math.nan)),
    }


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else round(value, DIGITS)
