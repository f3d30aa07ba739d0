"""What a checkpoint's metadata says of its training: only what was counted."""

from __future__ import annotations

from typing import Any

from transformer.inference.model import Model
from transformer.model.config import ModelConfig
from transformer.training.recipe import Recipe

Progress = dict[str, Any]  # step, tokens, seconds, sessions, ...: what a state file keeps


def begin_session(progress: Progress, steps: int, hardware: str, precision: str) -> None:
    """Note what the training is now to be run on, and to how many steps, where that is new."""
    session = {"steps": steps, "hardware": hardware, "precision": precision}
    sessions: list[dict[str, Any]] = progress.setdefault("sessions", [])
    if not sessions or {**sessions[-1], "from_step": 0} != session | {"from_step": 0}:
        sessions.append({"from_step": progress["step"], **session})


def metadata_of(
    recipe: Recipe, config: ModelConfig, progress: Progress, counts: dict[str, Any], before: Any
) -> dict[str, Any]:
    """A checkpoint's metadata, without its scores.

    counts: `Task.counts`. before: the phases that its first weights had behind them.
    """
    told = recipe.to_dict()
    phase = {
        "recipe": recipe.name,
        "settings": told["settings"],
        "dropout": config.dropout,
        "steps": progress["step"],
        "tokens": progress["tokens"],
        "seconds": round(progress["seconds"]),
        "sessions": progress["sessions"],
        "data": counts,
    }
    return {
        "recipe": told,
        "source_text": recipe.data.get("source_text"),
        "seconds": phase["seconds"],
        "tokens": phase["tokens"],
        "hardware": progress["sessions"][-1]["hardware"],
        "phases": [*before, phase],
        "validation": progress.get("validation"),
    }


def phases_of(model: Model | None) -> list[dict[str, Any]]:
    """What a model that begins a training has behind it; of an older one, its name alone."""
    if model is None:
        return []
    found: list[dict[str, Any]] = (model.metadata or {}).get("phases", [])
    return found or [{"checkpoint": model.name}]


def is_whole(metadata: dict[str, Any]) -> bool:
    """Whether its last phase came to its end."""
    last = metadata["phases"][-1]
    return bool(last["steps"] == last["settings"]["steps"])
