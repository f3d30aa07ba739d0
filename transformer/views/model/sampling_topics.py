"""The topic of sampling: from the last logits to the token that was taken."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from transformer.analysis.step_filters import StepFilters, step_filters
from transformer.inference import beam, generation
from transformer.inference.sampling import (
    apply_temperature,
    draw,
    keep_min_p,
    keep_top_k,
    keep_top_p,
)
from transformer.messages import mark, numeral, say
from transformer.runs import steps
from transformer.runs.steps import GenerationStep
from transformer.views.model.source import excerpt
from transformer.views.model.topic import FIRST, Topic, plain

# Of each filter: its symbol, its condition, what is shown of a token, its function, and the name of
# the condition there.
_FILTERS = {
    "top_k": ("k", "rank(z_i) ≤ {limit}", mark("top-k: whether it is among the {k} likeliest"),
              keep_top_k, "return"),
    "top_p": ("c", "c_i < {limit}",
              mark("top-p: the share of those likelier than it, which must be below {p}"),
              keep_top_p, "outside"),
    "min_p": ("r", "r_i ≥ {limit}",
              mark("min-p: its part of the likeliest one's share, at least {p}"), keep_min_p,
              "return"),
}  # fmt: skip


def sampling(topic: Topic, position: int | None) -> None:
    """One step of the run. position: the chosen token's, in the run's ids; None = the last."""
    run, request = topic.run, topic.run.request
    if run.config.family == "encoder":
        topic.says = [
            say(
                "An encoder alone writes no text, so nothing is sampled: it says what stands at "
                "each place, not what comes next."
            )
        ]
        return
    if not run.steps:
        topic.says = [
            say("This text was only read: nothing was generated, so nothing was sampled.")
        ]
        return
    at = len(run.steps) - 1 if position is None else position - run.n_prompt
    step = run.steps[min(max(at, 0), len(run.steps) - 1)]
    if request.beams > 1:
        _found_by_beams(topic, step)
        return
    n_read, token = numeral(step.window[1] - step.window[0]), topic.label_of(step.token)
    topic.says = [
        say(
            "Step {step}: the network read {n} tokens, and {token} was taken.",
            step=step.index,
            n=n_read,
            token=token,
        )
    ]
    if at < 0:
        topic.says.append(say("(The chosen token was given, so the first generated one is shown.)"))
    put_there = step.index < len(request.forced_tokens)
    if request.sampling is None or put_there:
        _greedy(topic, step, put_there)
    else:
        _sampled(topic, step, topic.models.ask(step_filters, run, step=step.index))
    chosen = step.chosen
    cells = topic.cells_of([chosen.id], [chosen.sampling_probability])
    topic.add("drawn", "i", say("the token that was taken"), "", cells)


def _greedy(topic: Topic, step: GenerationStep, put_there: bool) -> None:
    """The likeliest token, or one that a visitor put there."""
    topic.says.append(
        say("This token was not sampled: it was put there.")
        if put_there
        else say("This run takes the likeliest token each time (greedy): nothing is drawn.")
    )
    topic.formula = [
        "i:drawn = argmax_i(z_i:logits)",
        "p_i:probabilities = e^{z_i:logits} / {∑_j e^{z_j}}",
    ]
    topic.code = [
        excerpt(generation, drawn="tokens/argmax", logits="tokens:logits"),
        excerpt(steps, probabilities="probabilities"),
    ]
    ids = _add_logits(topic, step)
    shares = [one.probability for one in step.candidates[:FIRST]]
    topic.vocabulary(
        "probabilities", "p_i:probabilities", say("what the network gives them"), ids, shares,
        rest=max(0.0, 1 - sum(shares)), adds_up=1.0,
    )  # fmt: skip


def _add_logits(topic: Topic, step: GenerationStep) -> list[int]:
    ids = [one.id for one in step.candidates[:FIRST]]
    name = say("logits of the likeliest tokens")
    logits = [one.logit for one in step.candidates[:FIRST]]
    topic.vocabulary("logits", "z_i:logits", name, ids, logits)
    return ids


# --- temperature and filters ----------------------------------------------------------------------


def _sampled(topic: Topic, step: GenerationStep, filters: StepFilters | None) -> None:
    """Temperature, the filters in the order in which they act, and what was drawn from."""
    asked = topic.run.request.sampling
    assert asked is not None
    found = {name: getattr(asked, name) for name in _FILTERS}
    active = {name: value for name, value in found.items() if value is not None}
    topic.formula = _formula_of_sampling(active)
    topic.code = [
        excerpt(
            apply_temperature,
            scaled="return",
            logits="return:logits",
            temperature="return:temperature",
        ),
        *(excerpt(_FILTERS[name][3], **{name: _FILTERS[name][4]}) for name in active),
        excerpt(generation, probabilities="filtered"),
        excerpt(draw, drawn="chosen"),
    ]
    ids = _add_logits(topic, step)
    name, temperature = say("the temperature of this run"), asked.temperature
    topic.add("temperature", "T", name, "", [{"label": "", "value": temperature}])
    name = say("divided by the temperature")
    scaled = [one.logit / temperature for one in step.candidates[:FIRST]]
    topic.vocabulary("scaled", "z_i:logits / T", name, ids, scaled)
    for filter_name, value in active.items():
        _add_filter(topic, filter_name, value, filters, ids)
    taken = [one.sampling_probability for one in step.candidates[:FIRST]]
    sums = {}
    if filters is not None:
        total = float(filters.probabilities.double().sum())
        sums = {"rest": total - sum(taken), "adds_up": total}
    note = say(
        "{n} of {total} tokens could be drawn.",
        n=numeral(step.n_kept),
        total=numeral(topic.config.output_vocab_size),
    )
    name = say("what the token was drawn from")
    topic.vocabulary("probabilities", "p_i:probabilities", name, ids, taken, **sums, note=note)
    if filters is None and active:
        topic.says.append(
            say("What each filter left alone is no longer known of this step: its window slid on.")
        )


def _add_filter(
    topic: Topic, name: str, value: float, filters: StepFilters | None, ids: list[int]
) -> None:
    """What one filter does to the likeliest tokens."""
    symbol, _, says, *_ = _FILTERS[name]
    note, shown, measured = "", [], []
    if filters is not None:
        left = int(np.isfinite(filters.kept[name].numpy()).sum())
        total = numeral(topic.config.output_vocab_size)
        note = say("{n} of {total} tokens are left.", n=numeral(left), total=total)
        shown, measured = ids, _measured(name, filters, ids)
    said = say(says, k=numeral(value), p=numeral(value, "g"))
    topic.vocabulary(name, symbol, said, shown, measured, axes="V", note=note)


def _measured(name: str, filters: StepFilters, ids: list[int]) -> list[Any]:
    """What a filter looks at, of these tokens."""
    if name == "top_k":
        return [bool(np.isfinite(float(filters.kept[name][at]))) for at in ids]
    order = list(filters.kept)
    before = filters.kept[order[order.index(name) - 1]] if order.index(name) else filters.scaled
    shares = before.double().softmax(dim=-1)
    if name == "min_p":
        return [float(shares[at] / shares.max()) for at in ids]
    return [float(shares[shares > shares[at]].sum()) for at in ids]


def _formula_of_sampling(active: dict[str, float]) -> list[str]:
    power = "e^{{z_{}:logits // T:temperature}}"
    over = "{j ∈ A}" if active else "j"
    share = f"{{{power.format('i')}}}:scaled / {{∑_{over} {power.format('j')}}}"
    if not active:
        return [f"p_i:probabilities = {share}"]
    conditions = (
        f"{{{_FILTERS[name][1].format(limit=numeral(value, 'g'))}}}:{name}"
        for name, value in active.items()
    )
    return [
        f'p_i:probabilities = cases{{{share} & "if" i ∈ A; 0 & "otherwise";}}',
        f"i ∈ A ⇔ {' ∧ '.join(conditions)}",
    ]


# --- beam search ----------------------------------------------------------------------------------


def _found_by_beams(topic: Topic, step: GenerationStep) -> None:
    """The best text's sum, its length, and what all texts that were found are ranked by."""
    search, request = topic.run.search, topic.run.request
    assert search is not None
    topic.says = [
        say(
            "This text was found by a beam search with {n} beams, which draws nothing: it "
            "keeps the likeliest beginnings, and ranks the texts that it ends with.",
            n=request.beams,
        ),
        say("Step {step} took {token}.", step=step.index, token=topic.label_of(step.token)),
    ]
    topic.formula = [
        "s_y:score = ∑_t {log(p_t)}:gain",
        "r_y:ranked = s_y:score / {n_y:length}^{α:penalty}",
    ]
    topic.code = [
        excerpt(beam, gain="log_probabilities/log_softmax"),
        excerpt(beam, score="choices:score", gain="choices:gain"),
        excerpt(
            beam,
            ranked="normalised",
            score="normalised:score",
            length="normalised:ids",
            penalty="normalised:length_penalty",
        ),
    ]
    _add_gains(topic, step)
    best = search.hypotheses[0]
    topic.number("score", "s_y", say("their sum, the score of the text"), best.score)
    topic.number("length", "n_y", say("tokens of the text"), len(best.ids))
    name = say("the length penalty of this run")
    topic.number("penalty", "α", name, request.length_penalty)
    cells = [
        {"label": str(at), "token": text, "value": plain(one.normalised)}
        for at, (one, text) in enumerate(zip(search.hypotheses, search.texts, strict=True))
    ]
    name = say("what the texts are ranked by, the best first")
    topic.add("ranked", "r_y", name, say("texts"), cells[:FIRST], count=len(cells))


def _add_gains(topic: Topic, step: GenerationStep) -> None:
    """The log-probabilities of the best text's tokens, those around the chosen step."""
    steps = topic.run.steps
    gains = [math.log(max(one.chosen.probability, 1e-45)) for one in steps]
    start = max(0, min(step.index - FIRST // 2, len(steps) - FIRST))
    shown = range(start, min(len(steps), start + FIRST))
    found = topic.cells_of([steps[at].token for at in shown], [gains[at] for at in shown])
    cells = [cell | {"label": str(at)} for at, cell in zip(shown, found, strict=True)]
    rest = sum(gains) - sum(gains[at] for at in shown) if len(gains) > len(cells) else None
    name = say("the logarithm of each token's probability")
    topic.add(
        "gain", "{log(p_t)}:gain", name, "T", cells,
        count=len(gains), rest=rest, adds_up=sum(gains),
    )  # fmt: skip
