"""Two kept runs side by side: their tokens, their attention, the probabilities of their tokens, and
the candidates of each at one position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import plotly.graph_objects as go

from transformer.messages import mark, numeral, say, say_error
from transformer.runs.run import Run
from transformer.runs.steps import N_CANDIDATES, GenerationStep
from transformer.views.declaration import Answer, Picture, View
from transformer.views.drawing import style
from transformer.views.drawing.bars import Series, paired_bars, percent
from transformer.views.parameters import HEAD, POSITION, SITE, HeadOrMean, Text
from transformer.views.prediction.prediction import step_of
from transformer.views.runs.attention_difference import (
    NothingShared,
    Shared,
    align,
    attention_difference,
    opposite,
    shared,
    shared_labels,
)

N_SHOWN = 8


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

    customdata: (N, 2), the two probabilities. `layout.meta` has labels (plain text) and pairs
    (positions in A and B). NothingShared as generated_pairs.
    """
    pairs = generated_pairs(a, b)
    found = [
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
        y=[in_b - in_a for in_a, in_b in found],
        marker={
            "color": [colours.key if in_b > in_a else colours.accent for in_a, in_b in found],
            "pattern": {"shape": ["" if pair.same else "/" for pair in pairs]},
        },
        customdata=found,
        hovertext=[style.hover(text) for text in labels],
        hovertemplate=say(
            "%{hovertext}<br>B − A: %{y:+.4f}<br>in A %{customdata[0]:.4f}, in B "
            "%{customdata[1]:.4f}<extra></extra>"
        ),
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
        meta={"labels": labels, "pairs": [list(pair[:2]) for pair in pairs]},
    )  # fmt: skip


def candidates_compared(a: Run, b: Run, step: int, other_step: int) -> go.Figure:
    """Candidates of a step of A and of one of B as pairs of bars: the N_SHOWN likeliest of each,
    matched by label.

    Trace 0: A, trace 1: B; y is the token's position, A's likeliest on top. A bar is left out if a
    token is not among the kept candidates of a step; its position says at most how probable it is.
    `layout.meta` has labels, a, b (probabilities or None). Raises ValueError for a step that a run
    does not have.
    """
    of_a, of_b = step_of(a, step), step_of(b, other_step)
    in_a, in_b = _weighed(a, of_a), _weighed(b, of_b)
    shown = dict.fromkeys([*list(in_a)[:N_SHOWN], *list(in_b)[:N_SHOWN]])
    labels = sorted(shown, key=lambda label: (-in_a.get(label, 0), -in_b.get(label, 0)))
    colours = style.LIGHT
    return paired_bars(
        f"Next token: step {step} of A, step {other_step} of B",
        "probabilities by the network, before temperature and filters",
        labels,
        (
            _series("A", [in_a.get(label) for label in labels], of_a, colours.muted),
            _series("B", [in_b.get(label) for label in labels], of_b, colours.key),
        ),
        meta={name: list(map(found.get, labels)) for name, found in (("a", in_a), ("b", in_b))},
    )


def _weighed(run: Run, step: GenerationStep) -> dict[str, float]:
    """Label -> probability by the network, the likeliest first."""
    found: dict[str, float] = {}
    for one in step.candidates:
        found.setdefault(run.candidate_labels[one.id], one.probability)
    return found


def _series(name: str, values: Sequence[float | None], step: GenerationStep, colour: str) -> Series:
    """None: not among the kept candidates, so no likelier than the last of them; the taken token
    may follow them, however unlikely."""
    least = min(candidate.probability for candidate in step.candidates[:N_CANDIDATES])
    most = say("at most {most}", most=numeral(least, ".2g"))
    return Series(
        name,
        [value or 0 for value in values],
        colour,
        hatched=name == "B",
        texts=[percent(least, "≤") if value is None else percent(value) for value in values],
        told=[most if value is None else numeral(value, ".4f") for value in values],
    )


def answer_compare(a: Run, b: Run) -> Answer:
    """The aligned tokens of both, for each stack that both have."""
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
        return {"none": say_error(error)}


def answer_weighed(a: Run, b: Run, *, position: int) -> Answer:
    """The candidates of both runs at `position` of the first run's text; {"none": why} if one of
    them did not generate it."""
    aligned = opposite(align(a.labels, b.labels), position)
    for name, item, at in (("A", a, position), ("B", b, aligned)):
        if at is None or not item.n_prompt <= at < item.n_prompt + len(item.steps):
            return {"none": say("{name} generated no token there", name=name)}
    assert aligned is not None
    steps = position - a.n_prompt, aligned - b.n_prompt
    return {
        "figure": candidates_compared(a, b, *steps),
        "labels": [a.labels[position], b.labels[aligned]],
        "positions": [position, aligned],
    }


_HEAD = HeadOrMean(name="other_head", title="B's head", default=0, use="request")
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
            title="Probabilities of two runs",
            help="How much likelier run B found each generated token than run A did.",
            figure=probability_difference,
            answer=partial(answer_drawn, probability_difference),
            subject="runs",
        ),
        Picture(
            name="difference",
            title="Attention of two runs",
            help="The weights of a head in run B minus those in run A, on the tokens of both.",
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
            title="Candidates of two runs",
            help="What the next token could be, by a step of run A and by one of run B.",
            figure=candidates_compared,
            answer=answer_weighed,
            subject="runs",
            parameters=(POSITION,),
        ),
    ),
)
