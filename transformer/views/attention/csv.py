"""One head's attention as comma-separated values, for a spreadsheet or a data frame."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np

from transformer.checks import check_choice
from transformer.runs.head_data import Head, SiteLike, head_view
from transformer.runs.run import Batch, Run
from transformer.views.attention.heatmap import STAGES


def head_csv(
    run: Run | Batch, site: SiteLike, head: Head, *, stage: str = "weights", row: int = 0
) -> str:
    """A line a query, a column a key; the first line and the first column name the tokens.

    stage: "weights", "masked" (scores) or "scores"; cells that the mask hides are empty, but for
    "scores". Numbers are the trace's float32, with as many digits as tell them apart.
    A token is written `[place] label`: so every name is one of a kind, and none begins with =, +,
    - or @, which a spreadsheet would take for a formula and run.
    Raises ValueError, listing what is allowed, for an unknown site, head, stage or row.
    """
    check_choice("stage", stage, STAGES)
    view = head_view(run, site, head, row)
    values = view.weights if stage == "weights" else view.scores
    shown = np.ones_like(view.allowed) if stage == "scores" else view.allowed
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["query \\ key", *_names(view.key_labels)])
    for name, numbers, drawn in zip(_names(view.query_labels), values, shown, strict=True):
        cells = [str(number) if may else "" for number, may in zip(numbers, drawn, strict=True)]
        writer.writerow([name, *cells])
    return text.getvalue()


def _names(labels: Sequence[str]) -> list[str]:
    return [f"[{place}] {label}" for place, label in enumerate(labels)]
