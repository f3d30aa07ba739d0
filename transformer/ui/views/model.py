"""The network's architecture."""

from __future__ import annotations

from transformer import figures
from transformer.ui.store import RunStore
from transformer.ui.views.answers import Answer, as_json

# Where a kind of block is looked into: the name of a tab.
LEADS = {
    "tokens": "Positions",
    "positions": "Positions",
    "self": "Attention",
    "cross": "Attention",
    "head": "Prediction",
    "softmax": "Prediction",
}


def architecture(store: RunStore, *, run: str, dark: bool = False) -> Answer:
    """The blocks of the network of a run, and which tab each kind of block leads to."""
    figure = figures.architecture(store.run(run), dark=dark)
    return {"figure": as_json(figure), "leads": LEADS}
