"""The loss curve of a training, from its log."""

from __future__ import annotations

from pathlib import Path

import plotly.graph_objects as go

from transformer.training import log

POINTS = 100


def write_curve(folder: Path) -> dict[str, list[list[float]]]:
    """Write folder/loss.html from folder/log.jsonl; returns the plotted points.

    "train": [step, mean nats a token] in POINTS stretches; "valid": [step, nats a token].
    """
    entries = log.entries(folder)
    stretch = max(1, len(entries) // POINTS)
    train = []
    for start in range(0, len(entries), stretch):
        part = entries[start : start + stretch]
        train.append([part[-1]["step"], round(sum(e["loss"] for e in part) / len(part), 4)])
    valid = [[e["step"], round(e["valid_loss"], 4)] for e in entries if "valid_loss" in e]
    figure = go.Figure(layout={"title": {"text": "Loss (nats a token)"}, "template": "none"})
    for name, points in (("training (with dropout)", train), ("validation", valid)):
        figure.add_scatter(x=[p[0] for p in points], y=[p[1] for p in points], name=name)
    figure.update_xaxes(title_text="step")
    offline = {"showSendToCloud": False, "plotlyServerURL": ""}
    figure.write_html(folder / "loss.html", include_plotlyjs="directory", config=offline)
    return {"train": train, "valid": valid}
