"""Two kept runs side by side: their tokens with their probabilities, and their attention."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import plotly.graph_objects as go

from transformer.messages import mark, say, say_error
from transformer.runs.head_data import Head
from transformer.runs.run import Run
from transformer.views.declaration import Answer, View, picture
from transformer.views.drawing import style
from transformer.views.parameters import HEAD, SITE, HeadOrMean, Text
from transformer.views.runs.attention_difference import (
    NothingShared,
    Shared,
    align,
    attention_difference,
    shared,
    shared_labels,
)


def generated_pairs(a: Run, b: Run) -> list[Shared]:
    """The aligned tokens that both generated.

    Raises NothingShared, a ValueError, if there is none.
    """
    pairs = shared(align(a.labels, b.labels))
    pairs = [pair for pair in pairs if pair.a >= a.n_prompt and pair.b >= b.n_prompt]
    if not pairs:
        raise NothingShared(
            "nothing_shared",
            "the two runs generated no tokens at the same position; A generated {n_a}, B {n_b}",
            n_a=len(a.steps),
            n_b=len(b.steps),
        )
    return pairs


def probability_difference(a: Run, b: Run) -> go.Figure:
    """For each token that both generated: its probability in B minus that in A, by the network
    before temperature and filters. Bars from -1 to 1; hatched where the two tokens differ.

    customdata: (N, 2), the two probabilities. `layout.meta` has labels (plain text), pairs
    (positions in A and B) and colours. NothingShared as generated_pairs.
    """
    pairs = generated_pairs(a, b)
    probabilities = [
        (
            a.steps[pair.a - a.n_prompt].chosen.probability,
            b.steps[pair.b - b.n_prompt].chosen.probability,
        )
        for pair in pairs
    ]
    labels = shared_labels(pairs, a.labels, b.labels)
    colours = style.LIGHT
    bars = go.Bar(
        x=list(range(len(pairs))),
        y=[in_b - in_a for in_a, in_b in probabilities],
        marker={
            "color": [
                colours.key if in_b > in_a else colours.accent for in_a, in_b in probabilities
            ],
            "pattern": {"shape": ["" if pair.same else "/" for pair in pairs]},
        },
        customdata=probabilities,
        hovertext=[style.hover(text) for text in labels],
        hovertemplate="%{hovertext}<br>B − A: %{y:+.4f}<br>A: %{customdata[0]:.4f}, "
        "B: %{customdata[1]:.4f}<extra></extra>",
    )
    return style.figure(
        bars,
        "Probability of each generated token: B − A",
        "by the network, before temperature and filters; hatched: two different tokens",
        bargap=0.15,
        width=80 + style.COLUMN_PX * len(labels),
        height=400,
        margin={"l": 60, "r": 16, "t": 80, "b": 110},
        dragmode=False,
        xaxis=style.named_axis(
            say("token"), list(map(style.label, labels)), tickangle=-90,
            range=[-0.6, len(pairs) - 0.4],
        ),
        yaxis=style.axis(
            "B − A", range=[-1, 1], showgrid=True, zeroline=True,
            zerolinecolor=colours.muted, dtick=0.5,
        ),
        meta={
            "labels": labels,
            "pairs": [list(pair[:2]) for pair in pairs],
            "colours": {"likelier": colours.key, "rarer": colours.accent},
        },
    )  # fmt: skip


def answer_compare(a: Run, b: Run) -> Answer:
    """The aligned tokens of both, for each stack that both have."""
    texts = {"source": (a.source_labels, b.source_labels), "text": (a.labels, b.labels)}
    compared = []
    for name, both in texts.items():
        pairs = list(map(tuple, align(*both)))
        counts = dict(Counter(state for *_, state in pairs))
        first, other = map(list, both)
        compared.append({"name": name, "a": first, "b": other, "pairs": pairs, "counts": counts})
    return {"texts": [text for text in compared if text["a"] and text["b"]]}


def answer_outcomes(a: Run, b: Run) -> Answer:
    """`probability_difference`; {"none": why} where they have nothing in common."""
    try:
        return {"figure": probability_difference(a, b)}
    except NothingShared as error:
        return {"none": say_error(error)}


def answer_difference(
    a: Run,
    b: Run,
    *,
    site: Annotated[str, SITE],
    head: Annotated[Head, HEAD],
    other_site: Annotated[str, Text(default="decoder.0.self", use="request")],
    other_head: Annotated[Head, HeadOrMean(title="B's head", use="request")],
) -> Answer:
    """`attention_difference`; {"none": why} where they have nothing in common."""
    try:
        figure = attention_difference(
            a, b, site, head, other_site=other_site, other_head=other_head
        )
        return {"figure": figure}
    except NothingShared as error:
        return {"none": say_error(error)}


VIEW = View(
    name="compare",
    tab=mark("What if?"),
    order=560,
    folded=True,
    title=mark("How do two runs differ?"),
    help="What two runs share and where they differ: tokens, probabilities, attention.",
    pictures=(
        picture(answer_compare),
        picture(
            answer_outcomes,
            figure=probability_difference,
            title="Probabilities of two runs",
            help="How much likelier run B found each generated token than run A did.",
        ),
        picture(
            answer_difference,
            figure=attention_difference,
            title="Attention of two runs",
            help="The weights of a head in run B minus those in run A, on the tokens of both.",
        ),
    ),
)
