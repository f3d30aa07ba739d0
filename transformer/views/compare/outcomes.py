"""Two runs side by side: how likely each took its tokens, and what each weighed at one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from transformer.messages import numeral, say
from transformer.runs.run import Run
from transformer.runs.steps import N_CANDIDATES, GenerationStep
from transformer.views.compare.compare import NothingShared, Shared, align, shared, shared_labels
from transformer.views.drawing import style
from transformer.views.drawing.bars import bars, paired_layout, percent, token_ticks
from transformer.views.prediction.candidates import step_of

N_SHOWN = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Foreseen:
    """A token as two runs saw it come.

    a, b: its probability in each; None = not among the likeliest that are kept of that step, whose
    least probable has `most` (A's, B's): it has at most that.
    """

    label: str
    a: float | None
    b: float | None
    most: tuple[float, float]


def generated_pairs(a: Run, b: Run) -> list[Shared]:
    """The tokens that both generated and that stand beside each other.

    Raises NothingShared, a ValueError, if there is none.
    """
    pairs = shared(align(a.labels, b.labels))
    pairs = [pair for pair in pairs if pair.a >= a.n_prompt and pair.b >= b.n_prompt]
    if not pairs:
        raise NothingShared(
            say(
                "the two runs generated no tokens that stand beside each other; A "
                "generated {n_a}, B {n_b}",
                n_a=len(a.steps),
                n_b=len(b.steps),
            )
        )
    return pairs


def probability_difference(a: Run, b: Run, *, dark: bool = False) -> go.Figure:
    """For each token that both generated: its probability in B minus that in A, by the network
    before temperature and filters. Bars from -1 to 1; hatched where the two tokens differ.

    customdata: (N, 2), the two probabilities. `layout.meta` has labels (plain text) and pairs
    (places in A and B). NothingShared as generated_pairs.
    """
    pairs = generated_pairs(a, b)
    found = [_probabilities(a, b, pair) for pair in pairs]
    labels = shared_labels(pairs, a.labels, b.labels)
    colours = style.theme(dark)
    layout = style.layout(
        say("Probability of each generated token: B − A"),
        say("by the network, before temperature and filters; hatched: two different tokens"),
        dark=dark,
        bargap=0.15,
        height=400,
        margin={"l": 60, "r": 16, "t": 72, "b": 110},
        xaxis=style.every_token_axis(
            say("token"), token_ticks(labels), dark=dark, range=[-0.6, len(pairs) - 0.4]
        ),
        yaxis=style.axis(
            "B − A", dark=dark, range=[-1, 1], showgrid=True, zeroline=True,
            zerolinecolor=colours.muted, dtick=0.5,
        ),
        meta={"labels": labels, "pairs": [list(pair[:2]) for pair in pairs]},
    )  # fmt: skip
    return go.Figure(data=[_differences(pairs, found, labels, colours)], layout=layout)


def _differences(
    pairs: Sequence[Shared],
    found: Sequence[tuple[float, float]],
    labels: Sequence[str],
    colours: style.Theme,
) -> go.Bar:
    return go.Bar(
        x=list(range(len(pairs))),
        y=[in_b - in_a for in_a, in_b in found],
        marker={
            "color": [colours.key if in_b > in_a else colours.accent for in_a, in_b in found],
            "pattern": {"shape": ["" if pair.same else "/" for pair in pairs]},
        },
        customdata=found,
        hovertext=[style.hover(text) for text in labels],
        hovertemplate=(
            say(
                "%{hovertext}<br>B − A: %{y:+.4f}<br>in A %{customdata[0]:.4f}, in B "
                "%{customdata[1]:.4f}<extra></extra>"
            )
        ),
    )


def _probabilities(a: Run, b: Run, pair: Shared) -> tuple[float, float]:
    return (
        a.steps[pair.a - a.n_prompt].chosen.probability,
        b.steps[pair.b - b.n_prompt].chosen.probability,
    )


def foreseen_by_both(a: Run, b: Run, step: int, other_step: int) -> list[Foreseen]:
    """What a step of A and one of B weighed: the N_SHOWN likeliest of each, by A's order.

    Tokens are the same if their labels are. Raises ValueError for a step that a run has not.
    """
    of_a, of_b = step_of(a, step), step_of(b, other_step)
    in_a, in_b = _weighed(a, of_a), _weighed(b, of_b)
    shown = dict.fromkeys([*list(in_a)[:N_SHOWN], *list(in_b)[:N_SHOWN]])
    most = (_least_kept(of_a), _least_kept(of_b))
    rows = [Foreseen(label=x, a=in_a.get(x), b=in_b.get(x), most=most) for x in shown]
    return sorted(rows, key=lambda row: (-(row.a or 0), -(row.b or 0)))


def _weighed(run: Run, step: GenerationStep) -> dict[str, float]:
    """Label -> probability by the network, the likeliest first."""
    found: dict[str, float] = {}
    for one in step.candidates:
        found.setdefault(run.candidate_labels[one.id], one.probability)
    return found


def _least_kept(step: GenerationStep) -> float:
    """No token that is left out has more: the one that was taken may stand after the likeliest."""
    return min(candidate.probability for candidate in step.candidates[:N_CANDIDATES])


def candidates_compared(
    a: Run, b: Run, step: int, other_step: int, *, dark: bool = False
) -> go.Figure:
    """What the next token could be, by a step of A and by one of B, as pairs of bars.

    Trace 0: A, trace 1: B; y is the token's place, A's likeliest on top. A bar is left out where a
    token is not among the likeliest that are kept of a step; its place says at most how probable
    it is. `layout.meta` has labels, a, b (probabilities or None). ValueError as foreseen_by_both.
    """
    rows = foreseen_by_both(a, b, step, other_step)
    in_a, in_b = [row.a for row in rows], [row.b for row in rows]
    labels = [row.label for row in rows]
    layout = paired_layout(
        say(
            "Next token: step {step} of A, step {other_step} of B", step=step, other_step=other_step
        ),
        say("probabilities by the network, before temperature and filters"),
        token_ticks(labels),
        max(p for p in (*in_a, *in_b) if p is not None),
        room=1.25,
        dark=dark,
        meta={"labels": labels, "a": in_a, "b": in_b},
    )
    colours = style.theme(dark)
    data = [
        _bars("A", in_a, rows[0].most[0], labels, colours.muted),
        _bars("B", in_b, rows[0].most[1], labels, colours.key),
    ]
    return go.Figure(data=data, layout=layout)


def _bars(
    name: str,
    values: Sequence[float | None],
    most: float,
    labels: Sequence[str],
    colour: str,
) -> go.Bar:
    told = [
        say("at most {most}", most=numeral(most, ".2g")) if value is None else numeral(value, ".4f")
        for value in values
    ]
    return bars(
        name,
        [value or 0 for value in values],
        [_at_most(most) if value is None else percent(value) for value in values],
        colour,
        hatched=name == "B",
        customdata=told,
        hovertext=[style.hover(text) for text in labels],
        hovertemplate=f"%{{hovertext}}<br>{name}: %{{customdata}}<extra></extra>",
    )


def _at_most(probability: float) -> str:
    return (
        f"&lt;{numeral(0.1, '.1f')}%" if probability < 0.001 else f"≤{numeral(probability, '.1%')}"
    )
