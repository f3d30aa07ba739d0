"""What a branch needs: the tokens that a step could have taken, and which runs are still kept."""

from __future__ import annotations

from typing import Any

from transformer.figures.prediction import N_SHOWN, step_of
from transformer.ui.store import RunStore
from transformer.ui.views.answers import Answer

MAX_ASKED = 256  # runs that a page may ask about at once


def choices(store: RunStore, *, run: str, step: int) -> Answer:
    """The likeliest tokens of one step and the taken one: ids, labels, network's probabilities."""
    item = store.run(run)
    found = step_of(item, step)
    shown = list(found.candidates[:N_SHOWN])
    if found.chosen not in shown:
        shown.append(found.chosen)
    return {
        "ids": [one.id for one in shown],
        "labels": [item.candidate_labels[one.id] for one in shown],
        "probabilities": [one.probability for one in shown],
        "taken": found.token,
        "searched": item.request.beams > 1,
        "sampled": item.request.sampling is not None,
    }


def kept(store: RunStore, *, runs: Any) -> Answer:
    """Which of these runs the server still has; asking does not keep them longer."""
    if not isinstance(runs, list) or len(runs) > MAX_ASKED:
        raise ValueError(f"runs must be a list of at most {MAX_ASKED} ids")
    return {"kept": [store.has(run) for run in runs]}
