"""Two kept runs side by side: their tokens, their attention, and what they found likely."""

from __future__ import annotations

from collections import Counter
from typing import Any

from transformer import figures
from transformer.figures.compare import NothingShared, Pair, align, opposite
from transformer.inference.run import Run
from transformer.ui.store import RunStore
from transformer.ui.views.answers import Answer, as_json


def compare(store: RunStore, *, run: str, other: str) -> Answer:
    """The tokens of both, beside each other, for each stack that both have."""
    a, b = store.run(run), store.run(other)
    return {"texts": [_aligned(name, *texts) for name, texts in _texts(a, b).items()]}


def outcomes(store: RunStore, *, run: str, other: str, dark: bool = False) -> Answer:
    """How much likelier each token that both generated was in one; {"none": why} without any."""
    a, b = store.run(run), store.run(other)
    try:
        figure = figures.probability_difference(a, b, dark=dark)
    except NothingShared as error:
        return {"none": str(error)}
    return {"figure": as_json(figure)}


def difference(
    store: RunStore,
    *,
    run: str,
    other: str,
    site: str,
    head: int | str,
    other_site: str,
    other_head: int | str,
    dark: bool = False,
) -> Answer:
    """The weights of a head of the other run minus those of a head of this one; {"none": why} for
    texts without a common token."""
    a, b = store.run(run), store.run(other)
    try:
        figure = figures.attention_difference(
            a, b, site, head, other_site=other_site, other_head=other_head, dark=dark
        )
    except NothingShared as error:
        return {"none": str(error)}
    return {"figure": as_json(figure)}


def weighed(store: RunStore, *, run: str, other: str, place: int, dark: bool = False) -> Answer:
    """What could stand at `place` of the first run's text, by each; {"none": why} if one of them
    did not generate it."""
    a, b = store.run(run), store.run(other)
    beside = opposite(align(a.labels, b.labels), place)
    for name, item, at in (("A", a, place), ("B", b, beside)):
        if at is None or not item.n_prompt <= at < item.n_prompt + len(item.steps):
            return {"none": f"{name} generated no token there"}
    assert beside is not None
    steps = place - a.n_prompt, beside - b.n_prompt
    figure = figures.candidates_compared(a, b, *steps, dark=dark)
    return {
        "figure": as_json(figure),
        "labels": [a.labels[place], b.labels[beside]],
        "places": [place, beside],
    }


def _texts(a: Run, b: Run) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    texts = {"source": (a.source_labels, b.source_labels)} if _both_translate(a, b) else {}
    return texts | {"text": (a.labels, b.labels)}


def _both_translate(a: Run, b: Run) -> bool:
    return bool(a.source_labels and b.source_labels)


def _aligned(name: str, a: tuple[str, ...], b: tuple[str, ...]) -> dict[str, Any]:
    pairs = align(a, b)
    return {
        "name": name,
        "a": list(a),
        "b": list(b),
        "pairs": [_plain(pair) for pair in pairs],
        "counts": dict(Counter(pair.state for pair in pairs)),
    }


def _plain(pair: Pair) -> list[Any]:
    return [pair.a, pair.b, pair.state]
