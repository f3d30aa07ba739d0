"""A view of somebody's own, as a folder that the package does not know."""

from __future__ import annotations

from pathlib import Path

SOURCE = '''
"""How long each token's label is."""

import plotly.graph_objects as go

from transformer.views.declaration import Picture, View
from transformer.views.parameters import Choice, Whole


def label_lengths(run, *, least, unit, dark=False):
    sizes = [len(label) if unit == "characters" else len(label.encode()) for label in run.labels]
    shown = [(at, size) for at, size in enumerate(sizes) if size >= least]
    return go.Figure(
        [go.Bar(x=[at for at, _ in shown], y=[size for _, size in shown])],
        {
            "xaxis": {"title": {"text": "token"}},
            "yaxis": {"title": {"text": unit}},
            "height": 240,
        },
    )


VIEW = View(
    name="label_lengths",
    tab="Prediction",
    title="Length of labels",
    help="How many characters each token's label has.",
    script=False,
    pictures=(
        Picture(
            name="label_lengths",
            title="Length of labels",
            help="How many characters each token's label has.",
            figure=label_lengths,
            parameters=(
                Whole(name="least", title="Longer than", default=0, most=20),
                Choice(
                    name="unit",
                    title="Counted in",
                    options={"characters": "characters", "bytes": "bytes"},
                    default="characters",
                ),
            ),
        ),
    ),
)
'''


def write(folder: Path) -> Path:
    """The view's package in a folder; returns the folder, which is for `add_views` or --views."""
    (folder / "label_lengths").mkdir()
    (folder / "label_lengths" / "__init__.py").write_text(SOURCE, encoding="utf-8")
    return folder
