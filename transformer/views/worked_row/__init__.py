"""One row of attention, worked out: the numbers it is made of, for the page to reckon with."""

from __future__ import annotations

from typing import Any

from transformer.analysis.row_arithmetic import TOLERANCE, row_arithmetic
from transformer.messages import mark
from transformer.runs.head_data import stored_head
from transformer.runs.run import Batch, Run
from transformer.views.declaration import Answer, Picture, View
from transformer.views.drawing.common import HEAD, QUERY, SITE
from transformer.views.worked_row.worked import figure_of, worked_row


def answer_worked(
    item: Run | Batch,
    *,
    site: str,
    head: Any,
    query: int | None = None,
    dark: bool = False,
) -> Answer:
    """The figure of one row, and its exact float32 q (D), K and V (Tk x D), mask and what the
    network made of them; query None, or beyond the trace: the last traced token."""
    found = row_arithmetic(item, site, head, _traced(query, item, site))
    return {
        "figure": figure_of(found, dark=dark),
        "query": found.query,
        "query_label": found.query_label,
        "key_labels": list(found.key_labels),
        "score_size": found.score_size,
        "q": found.q,
        "keys": found.keys,
        "values": found.values,
        "allowed": found.allowed.astype("uint8"),
        "scores": found.traced_scores,
        "weights": found.traced_weights,
        "tolerance": TOLERANCE,
    }


def _traced(query: Any, item: Run | Batch, site: str) -> Any:
    """The query, or None for a token after those that were traced (a long translation's)."""
    part = stored_head(item.trace, item.trace.find(site), 0, 0)
    beyond = isinstance(query, int) and query >= part.allowed.shape[1]
    return None if beyond else query


VIEW = View(
    name="worked_row",
    tab=mark("Attention"),
    order=130,
    folded=True,
    title=mark("One row, worked out"),
    help=mark("From q and the keys to scores, weights and output, for one query of one head."),
    pictures=(
        Picture(
            name="worked",
            title=mark("One row, worked out"),
            help=mark(
                "From q and the keys to scores, weights and output, for one query of one head."
            ),
            figure=worked_row,
            answer=answer_worked,
            takes="run or batch",
            parameters=(SITE, HEAD, QUERY),
        ),
    ),
    script="worked",
)
