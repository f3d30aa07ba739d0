"""A training's log: a line of JSON for each step, each step once."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

FILE = "log.jsonl"


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
