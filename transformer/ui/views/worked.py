"""One row of attention, worked out: the numbers it is made of, for the page to reckon with."""

from __future__ import annotations

import math
from typing import Any

from transformer import figures
from transformer.figures.arithmetic import TOLERANCE
from transformer.ui.store import RunStore
from transformer.ui.views.answers import Answer, as_json, binary


def worked(
    store: RunStore,
    *,
    run: str,
    site: str,
    head: int,
    query: int | None = None,
    dark: bool = False,
) -> Answer:
    """The figure of one row, and its exact float32 q (D), K and V (Tk x D), mask and what the
    network made of them; query None, or beyond the trace: the last traced token."""
    item = store.any(run)
    found = figures.row_arithmetic(item, site, head, _traced(query, item.trace[site]))
    figure = figures.worked_row(item, site, head, found.query, dark=dark)
    return {
        "figure": as_json(figure),
        "query": found.query,
        "query_label": found.query_label,
        "key_labels": list(found.key_labels),
        "root": math.sqrt(len(found.q)),
        "q": binary(found.q),
        "keys": binary(found.keys),
        "values": binary(found.values),
        "allowed": binary(found.allowed.astype("uint8")),
        "scores": binary(found.traced_scores),
        "weights": binary(found.traced_weights),
        "tolerance": TOLERANCE,
    }


def _traced(query: Any, record: Any) -> Any:
    """The query, or None for a token after those that were traced (a long translation's)."""
    beyond = isinstance(query, int) and query >= record.weights.shape[2]
    return None if beyond else query
