"""What a step chose from, and what a beam search weighed."""

from __future__ import annotations

from transformer import figures
from transformer.figures.prediction import drawable, how, step_of
from transformer.ui.store import RunStore
from transformer.ui.views.answers import Answer, as_json


def candidates(store: RunStore, *, run: str, step: int, dark: bool = False) -> Answer:
    """What one step chose from, and the window of tokens that it saw."""
    item = store.run(run)
    found = step_of(item, step)
    start, stop = found.window
    return {
        "figure": as_json(figures.candidates(item, step, dark=dark)),
        "chosen": item.labels[stop],
        "probability": found.chosen.probability,
        "how": how(item.request) + drawable(item, found),
        "window": [start, stop],
        "seen": list(item.labels[start:stop]),
        "slid": start > 0,
    }


def tree(store: RunStore, *, run: str, dark: bool = False) -> Answer:
    """Which hypotheses of a beam search lived and died at each step."""
    return {"figure": as_json(figures.beam_tree(store.run(run), dark=dark))}
