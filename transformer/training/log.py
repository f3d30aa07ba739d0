"""A training's log, a line of JSON for each step, and the loss curve drawn from it."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

FILE = "log.jsonl"
POINTS = 100  # of the curve of training losses


def append(folder: Path, entry: dict[str, Any]) -> None:
    """Add a step's line."""
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def entries(folder: Path) -> list[dict[str, Any]]:
    """The lines, in their order."""
    lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def keep_until(folder: Path, step: int) -> None:
    """Drop the lines after a step: they are made again. A kill in between leaves the old log."""
    path = folder / FILE
    kept: dict[int, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        with contextlib.suppress(ValueError):  # a line that a kill cut short
            number = json.loads(line)["step"]
            kept |= {number: f"{line}\n"} if number <= step else {}
    unfinished = path.with_name(f"{FILE}.unfinished")
    unfinished.write_text("".join(kept.values()), encoding="utf-8")
    os.replace(unfinished, path)


def write_curve(folder: Path) -> dict[str, list[list[float]]]:
    """Write folder/loss.html from folder/log.jsonl; returns the plotted points.

    "train": [step, mean nats a token] in POINTS stretches; "valid": [step, nats a token].
    """
    lines = entries(folder)
    stretch = max(1, len(lines) // POINTS)
    train = []
    for start in range(0, len(lines), stretch):
        part = lines[start : start + stretch]
        train.append([part[-1]["step"], round(sum(e["loss"] for e in part) / len(part), 4)])
    valid = [[e["step"], round(e["valid_loss"], 4)] for e in lines if "valid_loss" in e]
    figure = go.Figure(layout={"title": {"text": "Loss (nats a token)"}, "template": "none"})
    for name, points in (("training (with dropout)", train), ("validation", valid)):
        figure.add_scatter(x=[p[0] for p in points], y=[p[1] for p in points], name=name)
    figure.update_xaxes(title_text="step")
    offline = {"showSendToCloud": False, "plotlyServerURL": ""}
    figure.write_html(folder / "loss.html", include_plotlyjs="directory", config=offline)
    return {"train": train, "valid": valid}
