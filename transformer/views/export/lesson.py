"""A lesson as one HTML file: its steps, and the runs that they are about as the page of a run has
them. What the steps say and how they are graded is given; see `ui/lessons.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformer.runs.run import Run
from transformer.views.export import html
from transformer.views.export.packing import Pack

SCRIPT = "views/export/static/lesson.js"
STYLES = (*html.STYLES, "ui/static/card.css", "views/export/static/lesson.css")
TABS = ("attention", "prediction", "masks", "positions")  # of the page, that the file shows too


def page(title: str, steps: Sequence[dict[str, Any]], runs: Sequence[Run]) -> str:
    """The whole page as text. A step's "run" is the place of one of the runs, or None."""
    pack = Pack()
    content = {
        "title": title, "steps": list(steps), "runs": [html.content(run, pack) for run in runs],
    }  # fmt: skip
    return html.whole(SCRIPT, STYLES, pack.text(content))
