"""What a step could have taken: its candidates before and after temperature and filters."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from transformer.figures import style
from transformer.figures.filters import why_cut
from transformer.inference.candidates import Candidate
from transformer.inference.generation import GenerationStep
from transformer.inference.request import Request
from transformer.inference.run import Run

N_SHOWN = 10


def candidates(run: Run, step_index: int, *, dark: bool = False, limit: int = N_SHOWN) -> go.Figure:
    """The `limit` likeliest tokens of one step, and the chosen one, as pairs of bars.

    Trace 0: probability by the network. Trace 1: after temperature and filters, what was drawn
    from. x is the probability itself, y the candidate's place, the likeliest on top. The chosen one
    has an arrow before its label; one that could not be drawn says why instead of a second bar.
    Raises ValueError for a step that the run does not have.
    """
    step = step_of(run, step_index)
    shown = tuple(step.candidates[:limit])
    if step.chosen not in shown:
        shown = (*shown, step.chosen)
    labels = [run.candidate_labels[candidate.id] for candidate in shown]
    reasons = why_cut(run, step)
    layout = style.layout(
        f"Candidates of step {step_index}",
        how(run.request) + drawable(run, step),
        dark=dark,
        barmode="group",
        bargap=0.25,
        bargroupgap=0.05,
        xaxis=_probability_axis(shown, dark),
        yaxis=style.axis(
            "candidate token", dark=dark, range=[len(shown) - 0.4, -0.6], tickmode="array",
            tickvals=list(range(len(shown))), ticktext=_ticks(step, shown, labels),
        ),
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
        margin={"l": 60, "r": 16, "t": 72, "b": 100},
        height=172 + 44 * max(len(shown), 3),
        meta={
            "labels": labels, "ids": [candidate.id for candidate in shown],
            "step": step_index, "chosen": step.token,
            "cut": [reasons.get(candidate.id) for candidate in shown],
        },
    )  # fmt: skip
    return go.Figure(data=_bars(shown, labels, reasons, dark), layout=layout)


def _probability_axis(shown: tuple[Candidate, ...], dark: bool) -> dict[str, Any]:
    """From 0, as far as the longest bar and its number reach."""
    longest = max(max(c.probability, c.sampling_probability) for c in shown)
    return style.axis(
        "probability", dark=dark, range=[0, max(longest, 0.02) * 1.18], showgrid=True,
        tickformat=".0%" if longest > 0.1 else ".1%", nticks=6,
    )  # fmt: skip


def step_of(run: Run, index: Any) -> GenerationStep:
    """A step by its index, counted from 0. Raises ValueError saying which there are."""
    if not run.steps:
        raise ValueError(f"this run generated nothing, so it has no step; got {index!r}")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(run.steps):
        raise ValueError(
            f"step_index must be a whole number from 0 to {len(run.steps) - 1}; got {index!r}"
        )
    return run.steps[index]


def how(request: Request) -> str:
    """How tokens were chosen, in words."""
    if request.beams > 1:
        return f"beam search with {request.beams} beams: the best whole text was taken"
    if request.sampling is None:
        return "greedy: the likeliest is taken"
    names = ("temperature", "top_k", "top_p", "min_p")
    given = [(name, getattr(request.sampling, name)) for name in names]
    parts = [f"{name.replace('_', '-')} {value:g}" for name, value in given if value is not None]
    return "sampled: " + ", ".join(parts)


def drawable(run: Run, step: GenerationStep) -> str:
    """How many tokens could be drawn, if any were drawn."""
    if run.request.sampling is None:
        return ""
    return f"; {step.n_kept:,} of {run.config.output_vocab_size:,} tokens could be drawn"


def _bars(
    shown: tuple[Candidate, ...], labels: list[str], reasons: dict[int, str], dark: bool
) -> list[go.Bar]:
    colours = style.theme(dark)
    before = [candidate.probability for candidate in shown]
    after = [candidate.sampling_probability for candidate in shown]
    names = [style.label(text, style.HOVER_CHARACTERS) for text in labels]
    places = list(range(len(shown)))
    common: dict[str, Any] = {
        "orientation": "h",
        "y": places,
        "textposition": "outside",
        "textfont": {"size": style.FONT_SIZE},
        "constraintext": "none",
        "cliponaxis": False,
        "customdata": names,
    }
    ending = " %{x:.4f}<extra></extra>"
    return [
        go.Bar(
            x=before, name="by the network", text=[_percent(p) for p in before],
            hovertemplate="%{customdata}<br>by the network" + ending,
            marker={"color": colours.muted}, **common,
        ),
        go.Bar(
            x=after, name="after temperature and filters",
            text=[f"✕ {reasons[c.id]}" if c.id in reasons else _percent(p)
                  for c, p in zip(shown, after, strict=True)],
            hovertemplate="%{customdata}<br>after temperature and filters" + ending,
            marker={"color": colours.accent}, **common,
        ),
    ]  # fmt: skip


def _ticks(step: GenerationStep, shown: tuple[Candidate, ...], labels: list[str]) -> list[str]:
    """Labels with the chosen one pointed at; a tick a candidate, since all are wanted."""
    return [
        f"<b>▶ {style.label(text)}</b>" if candidate.id == step.token else style.label(text)
        for candidate, text in zip(shown, labels, strict=True)
    ]


def _percent(probability: float) -> str:
    return "&lt;0.1%" if 0 < probability < 0.001 else f"{probability:.1%}"
