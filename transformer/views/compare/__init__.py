"""Two kept runs side by side: their tokens, their attention, and what they found likely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
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
    found = []
    for name, both in texts.items():
        pairs = list(map(tuple, align(*both)))
        counts = dict(Counter(state for *_, state in pairs))
        one, other = map(list, both)
        found.append({"name": name, "a": one, "b": other, "pairs": pairs, "counts": counts})
    return {"texts": [text for text in found if text["a"] and text["b"]]}


def answer_drawn(figure: Callable[..., go.Figure], a: Run, b: Run, **told: Any) -> Answer:
    """A figure of two runs; {"none": why} where they have nothing in common."""
    try:
        return {"figure": figure(a, b, **told)}
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
    return {
        "figure": candidates_compared(a, b, *steps),
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
            answer=partial(answer_drawn, probability_difference),
            subject="runs",
        ),
        Picture(
            name="difference",
            title=mark("Attention of two runs"),
            help=mark(
                "The weights of a head in run B minus those in run A, on the tokens of both."
            ),
            figure=attention_difference,
            answer=partial(answer_drawn, attention_difference),
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
