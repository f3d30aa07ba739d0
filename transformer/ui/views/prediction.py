"""What a step chose from, how the text and each layer fared, and what a beam search weighed."""

from __future__ import annotations

from transformer import figures
from transformer.figures.lens import what_is_done
from transformer.figures.prediction import drawable, how, step_of
from transformer.figures.surprise import in_words, summarise, why_none
from transformer.ui.store import RunStore
from transformer.ui.views.answers import Answer, as_json

LENS_COLUMNS = 48  # tokens that the page shows at once; more would be slow to draw


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


def surprise(store: RunStore, *, run: str, dark: bool = False) -> Answer:
    """How much each token surprised the network; {"none": why} where nothing could."""
    item = store.run(run)
    reason = why_none(item)
    if reason is not None:
        return {"none": reason}
    return {
        "figure": as_json(figures.surprise(item, dark=dark)),
        "says": in_words(summarise(item)),
    }


def lens(store: RunStore, *, run: str, first: int = 0, dark: bool = False) -> Answer:
    """What each layer would have said, for LENS_COLUMNS tokens from traced token `first` on."""
    item = store.run(run)
    figure = figures.logit_lens(item, first=first, count=LENS_COLUMNS, dark=dark)
    return {
        "figure": as_json(figure),
        "says": what_is_done(item),
        "tied": item.config.tie_embeddings,
        "foresees": item.config.family != "encoder",
        "columns": LENS_COLUMNS,
    }


def tree(store: RunStore, *, run: str, dark: bool = False) -> Answer:
    """Which hypotheses of a beam search lived and died at each step."""
    return {"figure": as_json(figures.beam_tree(store.run(run), dark=dark))}
