"""The candidates of a step before and after temperature and filters, and the filter that cut each;
surprisal of the text, the logit lens, and the hypotheses of a beam search."""

from __future__ import annotations

import math
from typing import Annotated, Any

import plotly.graph_objects as go

from transformer.checks import InvalidRequest, check_whole
from transformer.messages import mark, numeral, say, say_n
from transformer.runs.request import Sampling, method_words
from transformer.runs.run import Run
from transformer.runs.steps import Candidate, GenerationStep
from transformer.views.declaration import Answer, View, picture
from transformer.views.drawing import style
from transformer.views.drawing.bars import Series, paired_bars, percent
from transformer.views.parameters import Int
from transformer.views.prediction.beams import beam_tree
from transformer.views.prediction.lens import logit_lens
from transformer.views.prediction.surprisal import in_words, summarise, why_none
from transformer.views.prediction.surprisal import surprisal as surprisal_figure

N_SHOWN = 10


def candidates(
    run: Run, step: Annotated[int, Int(default=0, use="selection")], *, limit: int = N_SHOWN
) -> go.Figure:
    """The `limit` likeliest tokens of one step, and the chosen one, as pairs of bars.

    Trace 0: probability by the network. Trace 1: after temperature and filters, what was drawn
    from. x is the probability itself, y the candidate's place, the likeliest on top. The chosen one
    has an arrow before its label; one that could not be drawn says why instead of a second bar.
    Raises ValueError for a step that the run does not have.
    """
    chosen_step = step_of(run, step)
    listed = tuple(chosen_step.candidates[:limit])
    if chosen_step.chosen not in listed:
        listed = (*listed, chosen_step.chosen)
    labels = [run.candidate_labels[candidate.id] for candidate in listed]
    reasons = why_cut(run, chosen_step)
    after = [candidate.sampling_probability for candidate in listed]
    texts = [
        f"✕ {reasons[candidate.id]}" if candidate.id in reasons else percent(probability)
        for candidate, probability in zip(listed, after, strict=True)
    ]
    ids = [candidate.id for candidate in listed]
    return paired_bars(
        f"Candidates of step {step}",
        how_at(run, chosen_step),
        labels,
        (
            Series(say("the network"), [c.probability for c in listed], style.LIGHT.muted),
            Series(say("after temperature and filters"), after, style.LIGHT.accent, texts=texts),
        ),
        y_title=mark("candidate token"),
        ids=ids,
        here=chosen_step.token,
        meta={
            "ids": ids, "step": step, "chosen": chosen_step.token,
            "cut": [reasons.get(token) for token in ids],
        },
    )  # fmt: skip


def step_of(run: Run, index: Any) -> GenerationStep:
    """A step by its index, counted from 0. Raises ValueError saying which there are."""
    if not run.steps:
        raise InvalidRequest("no_prediction", "the network predicted no token in this run")
    check_whole("step", index, 0, len(run.steps) - 1)
    return run.steps[index]


def how_at(run: Run, step: GenerationStep) -> str:
    """How a step's token was chosen, and from how many, if it was drawn."""
    if _is_forced(run, step):
        return say("This token was not sampled: it was put there.")
    if run.request.sampling is None:
        return method_words(run.request)
    count = say_n(
        "Only {n} of {all} tokens could be drawn.",
        "{n} of {all} tokens could be drawn.",
        step.n_kept,
        all=numeral(run.config.output_vocab_size),
    )
    return f"{method_words(run.request)}. {count}"


def _is_forced(run: Run, step: GenerationStep) -> bool:
    return step.index < len(run.request.forced_tokens)


PADDING = mark("padding is never taken")
NOT_BEST = mark("not the likeliest")
OTHER_TEXT = mark("not in the best text")
TOP_K, TOP_P, MIN_P = mark("cut by top-k"), mark("cut by top-p"), mark("cut by min-p")
CUT_BY_EITHER = mark("cut by top-p or min-p")


def why_cut(run: Run, step: GenerationStep) -> dict[int, str]:
    """The reason for each candidate that could not be taken, by its id.

    The filters act in the order top-k, top-p, min-p; a reason names the first that cut. Top-p and
    min-p together can be distinguished only if the mass of the likelier tokens is known, which
    needs every token that top-k left, or the network's own probabilities (temperature 1, no top-k);
    else the reason is CUT_BY_EITHER. A candidate whose probability was rounded to 0 has none.
    """
    cut = [c for c in step.candidates if c.sampling_probability == 0]
    padding, sampling = run.config.output_padding_id, run.request.sampling
    reasons = {c.id: PADDING for c in cut if c.id == padding}
    rest = [c for c in cut if c.id != padding]
    # a penalty changes the order, and a forced token is taken whatever the order
    if run.request.repetition_penalty != 1 or (sampling is None and _is_forced(run, step)):
        return {token: say(why) for token, why in reasons.items()}
    if sampling is None:
        reason = OTHER_TEXT if run.request.beams > 1 else NOT_BEST
        return {token: say(why) for token, why in (reasons | {c.id: reason for c in rest}).items()}
    allowed = [c for c in step.candidates if c.id != padding]
    others = {c.id: _filter_of(c, allowed, step, sampling, padding) for c in rest}
    return {token: say(why) for token, why in (reasons | others).items() if why is not None}


def _filter_of(
    candidate: Candidate,
    allowed: list[Candidate],
    step: GenerationStep,
    sampling: Sampling,
    padding: int | None,
) -> str | None:
    """The first filter that cut a candidate which could not be drawn."""
    k, top_p, min_p = sampling.top_k, sampling.top_p, sampling.min_p
    if k is not None and k <= len(allowed) and candidate.logit < allowed[k - 1].logit:
        return TOP_K
    by_top_p = top_p is not None and top_p < 1
    if not by_top_p or not min_p:
        return TOP_P if by_top_p else MIN_P if min_p else None
    assert top_p is not None
    # after the temperature, as parts of the likeliest one's probability
    shares = [math.exp((c.logit - allowed[0].logit) / sampling.temperature) for c in allowed]
    place = allowed.index(candidate)
    if shares[place] >= min_p:
        return TOP_P
    # bounds of the probability, among what top-k left, of all likelier tokens
    if k is not None and k <= len(allowed):
        kept = [c.logit >= allowed[k - 1].logit for c in allowed]
        left = sum(share for share, is_kept in zip(shares, kept, strict=True) if is_kept)
        lowest = highest = sum(shares[:place]) / left
    elif k is not None or sampling.temperature != 1:
        return CUT_BY_EITHER
    else:  # padding's own, which does not count, is known to be below that of every candidate
        padded = [c.probability for c in step.candidates if c.id == padding]
        least, most = 0.0, min(c.probability for c in allowed) if padding is not None else 0.0
        least, most = (padded[0], padded[0]) if padded else (least, most)
        mass = sum(c.probability for c in allowed[:place])
        lowest, highest = mass / (1 - least), mass / (1 - most)
    if lowest < top_p <= highest:
        return CUT_BY_EITHER
    return TOP_P if lowest >= top_p else MIN_P


LENS_COLUMNS = 48  # tokens that the page shows at once; more would be slow to draw


def answer_surprisal(item: Run) -> Answer:
    """The surprisal of each token; {"none": why} if no token has one."""
    reason = why_none(item)
    if reason is not None:
        return {"none": reason}
    return {"figure": surprisal_figure(item), "says": in_words(summarise(item))}


def answer_lens(item: Run, *, first: Annotated[int, Int(use="request")] = 0) -> Answer:
    """The logit lens of LENS_COLUMNS tokens from traced token `first` on."""
    figure = logit_lens(item, first=first, count=LENS_COLUMNS)
    return {
        "figure": figure,
        "tied": item.config.tie_embeddings,
        "predicts": item.config.family != "encoder",
        "columns": LENS_COLUMNS,
    }


VIEW = View(
    name="prediction",
    tab=mark("Prediction"),
    order=420,
    predicts=True,
    title=mark("Prediction"),
    help=(
        "What each step could have chosen, what surprised the network, and what each layer said."
    ),
    parameters=(Int(name="lens", title="First token of the lens", default=0, link="lens"),),
    pictures=(
        picture(
            candidates,
            title="Candidates",
            help="The likeliest next tokens of a step, before and after temperature and filters.",
        ),
        picture(
            answer_surprisal,
            figure=surprisal_figure,
            title=mark("Surprisal"),
            help="How many bits each token of the text surprised the network by, −log₂ p.",
            lens=True,
        ),
        picture(
            answer_lens,
            figure=logit_lens,
            title=mark("Logit lens"),
            help="What each layer would have said comes next, had the network ended there.",
            lens=True,
        ),
        picture(
            beam_tree,
            name="beams",
            title="beam search",
            help="Which hypotheses went on, ended or were cut at each step, likeliest on top.",
        ),
    ),
)
