"""What a step could have taken: its candidates before and after temperature and filters."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from transformer.checks import check_whole
from transformer.messages import invalid, mark, numeral, say
from transformer.runs.request import Request, Sampling
from transformer.runs.run import Run
from transformer.runs.steps import GenerationStep
from transformer.views.drawing import style
from transformer.views.drawing.bars import Series, paired_bars, percent
from transformer.views.prediction.filters import why_cut

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
    after = [candidate.sampling_probability for candidate in shown]
    texts = [
        f"✕ {reasons[candidate.id]}" if candidate.id in reasons else percent(probability)
        for candidate, probability in zip(shown, after, strict=True)
    ]
    ids = [candidate.id for candidate in shown]
    return paired_bars(
        say("Candidates of step {step_index}", step_index=step_index),
        how_at(run, step),
        labels,
        (
            Series(say("by the network"), [one.probability for one in shown], style.LIGHT.muted),
            Series(say("after temperature and filters"), after, style.LIGHT.accent, texts=texts),
        ),
        y_title=mark("candidate token"),
        ids=ids,
        here=step.token,
        dark=dark,
        meta={
            "ids": ids, "step": step_index, "chosen": step.token,
            "cut": [reasons.get(token) for token in ids],
        },
    )  # fmt: skip


def step_of(run: Run, index: Any) -> GenerationStep:
    """A step by its index, counted from 0. Raises ValueError saying which there are."""
    if not run.steps:
        raise invalid("this run generated nothing, so it has no step; got {got}", got=repr(index))
    check_whole("step_index", index, 0, len(run.steps) - 1)
    return run.steps[index]


def how(request: Request) -> str:
    """How tokens were chosen, in words."""
    if request.beams > 1:
        return say(
            "beam search with {beams} beams: the best whole text was taken", beams=request.beams
        )
    if request.sampling is None:
        return say("greedy: the likeliest is taken")
    return _sampled(request.sampling)


def how_briefly(request: Request) -> str:
    """The same in as few words as tell two runs apart."""
    if request.beams > 1:
        return say("beam search with {beams} beams", beams=request.beams)
    if request.sampling is None:
        return say("greedy")
    return say("{words}, seed {seed}", words=_sampled(request.sampling), seed=request.seed)


def _sampled(sampling: Sampling) -> str:
    names = ("temperature", "top_k", "top_p", "min_p")
    given = [(name, getattr(sampling, name)) for name in names]
    words = {"temperature": say("temperature")}
    parts = [
        f"{words.get(name, name.replace('_', '-'))} {numeral(value, 'g')}"
        for name, value in given
        if value is not None
    ]
    return say("sampled: {settings}", settings=", ".join(parts))


def how_at(run: Run, step: GenerationStep) -> str:
    """How a step's token was chosen, and of how many, if it was drawn."""
    if run.request.sampling is None:
        return how(run.request)
    count = say(
        "{n_kept} of {n_tokens} tokens could be drawn",
        n_kept=numeral(step.n_kept),
        n_tokens=numeral(run.config.output_vocab_size),
    )
    return f"{how(run.request)}; {count}"
