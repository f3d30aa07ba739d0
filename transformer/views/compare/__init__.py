"""Two kept runs side by side: their tokens, their attention, and what they found likely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import plotly.graph_objects as go

from transformer.messages import mark, say, translated
from transformer.runs.run import Run
from transformer.views.compare.compare import (
    NothingShared,
    align,
    attention_difference,
    opposite,
)
from transformer.views.compare.outcomes import candidates_compared, probability_difference
from transformer.views.declaration import Answer, Picture, View
from transformer.views.drawing.common import HEAD, POSITION, SITE
from transformer.views.parameters import HeadOrMean, Text


def answer_compare(a: Run, b: Run) -> Answer:
    """The tokens of both, beside each other, for each stack that both have."""
    texts = {"source": (a.source_labels, b.source_labels), "text": (a.labels, b.labels)}
    return {"texts": [_aligned(name, *both) for name, both in texts.items() if all(both)]}


def _aligned(name: str, a: Sequence[str], b: Sequence[str]) -> Answer:
    pairs = [(pair.a, pair.b, pair.state) for pair in align(a, b)]
    counts = Counter(state for *_, state in pairs)
    return {"name": name, "a": list(a), "b": list(b), "pairs": pairs, "counts": dict(counts)}


def answer_outcomes(a: Run, b: Run) -> Answer:
    """How much likelier each token that both generated was in one; {"none": why} without any."""
    return _drawn(probability_difference, a, b)


def answer_difference(a: Run, b: Run, *, site: str, head: int | str, **other: Any) -> Answer:
    """The weights of a head of the other run minus those of a head of this one; {"none": why} for
    texts without a common token."""
    return _drawn(attention_difference, a, b, site, head, **other)


def _drawn(figure: Callable[..., go.Figure], *of: Any, **look: Any) -> Answer:
    try:
        return {"figure": figure(*of, **look)}
    except NothingShared as error:
        return {"none": translated(error)}


def answer_weighed(a: Run, b: Run, *, position: int) -> Answer:
    """What could stand at `position` of the first run's text, by each; {"none": why} if one of them
    did not generate it."""
    beside = opposite(align(a.labels, b.labels), position)
    for name, item, at in (("A", a, position), ("B", b, beside)):
        if at is None or not item.n_prompt <= at < item.n_prompt + len(item.steps):
            return {"none": say("{name} generated no token there", name=name)}
    assert beside is not None
    steps = position - a.n_prompt, beside - b.n_prompt
    figure = candidates_compared(a, b, *steps)
    return {
        "figure": figure,
        "labels": [a.labels[position], b.labels[beside]],
        "positions": [position, beside],
    }


_HEAD = HeadOrMean(name="other_head", title=mark("B's head"), default=0, use="request")
VIEW = View(
    name="compare",
    tab=mark("What if?"),
    order=560,
    folded=True,
    title=mark("How do two runs differ?"),
    help=mark("What two runs share and where they differ: tokens, probabilities, attention."),
    pictures=(
        Picture(name="compare", answer=answer_compare, subject="runs"),
        Picture(
            name="outcomes",
            title=mark("Probabilities of two runs"),
            help=mark("How much likelier run B found each generated token than run A did."),
            figure=probability_difference,
            answer=answer_outcomes,
            subject="runs",
        ),
        Picture(
            name="difference",
            title=mark("Attention of two runs"),
            help=mark(
                "The weights of a head in run B minus those in run A, on the tokens of both."
            ),
            figure=attention_difference,
            answer=answer_difference,
            subject="runs",
            parameters=(
                SITE,
                HEAD,
                Text(name="other_site", default="decoder.0.self", use="request"),
                _HEAD,
            ),
        ),
        Picture(
            name="weighed",
            title=mark("Candidates of two runs"),
            help=mark("What the next token could be, by a step of run A and by one of run B."),
            figure=candidates_compared,
            answer=answer_weighed,
            subject="runs",
            parameters=(POSITION,),
        ),
    ),
)
