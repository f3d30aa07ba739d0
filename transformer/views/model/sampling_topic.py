"""The topic of sampling: from the last logits to the token that was taken."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from transformer.analysis.step_filters import StepFilters, step_filters
from transformer.inference import beam, generation
from transformer.messages import mark, numeral, say
from transformer.runs import steps
from transformer.runs.steps import GenerationStep
from transformer.views.model.source import excerpt
from transformer.views.model.topic import FIRST, Topic, quoted

# For each filter its condition, the number that it compares, its function, its symbol, and the name
# of the condition in the function.
_FILTERS = {
    "top_k": ("rank(z_i) ≤ {limit}", mark("top-k: whether it is among the {k} likeliest"),
              generation.keep_top_k, "k", "return"),
    "top_p": ("c_i < {limit}",
              mark("top-p: the share of those likelier than it, which must be below {p}"),
              generation.keep_top_p, "c", "outside"),
    "min_p": ("r_i ≥ {limit}", mark("min-p: its part of the likeliest one's share, at least {p}"),
              generation.keep_min_p, "r", "return"),
}  # fmt: skip


def sampling(topic: Topic) -> None:
    """The step of the run that made the chosen token."""
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
    at = len(run.steps) - 1 if topic.token is None else topic.token - run.n_prompt
    step = run.steps[min(max(at, 0), len(run.steps) - 1)]
    token = quoted(run.candidate_labels.get(step.token, str(step.token)))
    if request.beams > 1:
        _beams(topic, step, token)
        return
    n_read = numeral(step.window[1] - step.window[0])
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
    best = step.candidates[:FIRST]
    name = say("logits of the likeliest tokens")
    _vocabulary(topic, "logits", "z_i", name, {one.id: one.logit for one in best})
    put_there = step.index < len(request.forced_tokens)
    if request.sampling is None or put_there:
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
            excerpt(generation._take, drawn="tokens/argmax", logits="tokens:logits"),
            excerpt(steps.candidates_of, probabilities="probabilities"),
        ]
        shares = {one.id: one.probability for one in best}
        name = say("what the network gives them")
        _vocabulary(topic, "probabilities", "p_i", name, shares, total=1.0)
    else:
        _sampled(topic, step)
    share = {step.token: step.chosen.sampling_probability}
    names = {step.token: run.candidate_labels.get(step.token, str(step.token))}
    topic.add("drawn", "i", say("the token that was taken"), "", share, tokens=names)


def _vocabulary(
    topic: Topic, part: str, symbol: str, name: str, values: dict[int, Any], **more: Any
) -> None:
    """Add numbers of some tokens, out of one for each of the vocabulary; `more` goes to `add`."""
    names = {at: topic.run.candidate_labels.get(at, str(at)) for at in values}
    topic.add(part, symbol, name, "B × V", values, tokens=names, **more)


def _sampled(topic: Topic, step: GenerationStep) -> None:
    """Temperature, the filters in the order in which they act, and what was drawn from."""
    asked = topic.run.request.sampling
    assert asked is not None
    filters = topic.models.ask(step_filters, topic.run, step=step.index)
    active = {name: getattr(asked, name) for name in _FILTERS if getattr(asked, name) is not None}
    power = "e^{{z_{0}:logits // T:temperature}}"
    over = "{j ∈ A}" if active else "j"
    share = f"{{{power.format('i')}}}:scaled / {{∑_{over} {power.format('j')}}}"
    topic.formula = [f"p_i:probabilities = {share}"]
    if active:
        conditions = (
            f"{{{_FILTERS[name][0].format(limit=numeral(value, 'g'))}}}:{name}"
            for name, value in active.items()
        )
        yes, no = say("if"), say("otherwise")
        topic.formula = [
            f'p_i:probabilities = cases{{{share} & "{yes}" i ∈ A; 0 & "{no}";}}',
            f"i ∈ A ⇔ {' ∧ '.join(conditions)}",
        ]
    names = {"scaled": "return", "logits": "return:logits", "temperature": "return:temperature"}
    topic.code = [
        excerpt(generation.apply_temperature, **names),
        *(excerpt(_FILTERS[name][2], **{name: _FILTERS[name][4]}) for name in active),
        excerpt(generation._take, probabilities="filtered"),
        excerpt(generation.draw, drawn="chosen"),
    ]
    best, temperature = step.candidates[:FIRST], asked.temperature
    topic.add("temperature", "T", say("the temperature of this run"), "", {"": temperature})
    scaled = {one.id: one.logit / temperature for one in best}
    _vocabulary(topic, "scaled", "z_i / T", say("divided by the temperature"), scaled)
    vocabulary = numeral(topic.config.output_vocab_size)
    for name, value in active.items():
        note, shown = "", {}
        if filters is not None:
            left = numeral(int(np.isfinite(filters.kept[name].numpy()).sum()))
            note = say("{n} of {total} tokens are left.", n=left, total=vocabulary)
            shown = _measured(name, filters, [one.id for one in best])
        _, says, _, symbol, _ = _FILTERS[name]
        said = say(says, k=numeral(value), p=numeral(value, "g"))
        _vocabulary(topic, name, symbol, said, shown, note=note)
    shares = {one.id: one.sampling_probability for one in best}
    drawn = say("{n} of {total} tokens could be drawn", n=numeral(step.n_kept), total=vocabulary)
    note = say("{sentence}.", sentence=drawn)
    name = say("what the token was drawn from")
    _vocabulary(topic, "probabilities", "p_i", name, shares, total=1.0, note=note)
    if filters is None and active:
        topic.says.append(
            say("What each filter left alone is no longer known of this step: its window slid on.")
        )


def _measured(name: str, filters: StepFilters, ids: list[int]) -> dict[int, Any]:
    """The number of each token that a filter compares with its limit."""
    if name == "top_k":
        return {at: math.isfinite(filters.kept[name][at]) for at in ids}
    order = list(filters.kept)
    before = filters.kept[order[order.index(name) - 1]] if order.index(name) else filters.scaled
    shares = before.double().softmax(dim=-1)
    if name == "min_p":
        return {at: float(shares[at] / shares.max()) for at in ids}
    return {at: float(shares[shares > shares[at]].sum()) for at in ids}


def _beams(topic: Topic, step: GenerationStep, token: str) -> None:
    """The best text's sum, its length, and what all texts that were found are ranked by."""
    search, request, all_steps = topic.run.search, topic.run.request, topic.run.steps
    assert search is not None
    topic.says = [
        say(
            "This text was found by a beam search with {n} beams, which draws nothing: it "
            "keeps the likeliest beginnings, and ranks the texts that it ends with.",
            n=request.beams,
        ),
        say("Step {step} took {token}.", step=step.index, token=token),
    ]
    topic.formula = [
        "s_y:score = ∑_t {log(p_t)}:gain",
        "r_y:ranked = s_y:score / {n_y:length}^{α:penalty}",
    ]
    ranked = {"score": "score", "length": "ids", "penalty": "length_penalty"}
    topic.code = [
        excerpt(beam._Search._extensions, gain="log_softmax"),
        excerpt(beam._Search._advance, score="choices:score", gain="choices:gain"),
        excerpt(
            beam._Search._finish,
            ranked="normalised",
            **{part: f"normalised:{name}" for part, name in ranked.items()},
        ),
    ]
    gains = [math.log(max(one.chosen.probability, 1e-45)) for one in all_steps]
    tokens = [topic.run.candidate_labels.get(one.token, str(one.token)) for one in all_steps]
    first = max(0, min(step.index - FIRST // 2, len(gains) - FIRST))
    shown = range(first, min(len(gains), first + FIRST))
    name = say("the logarithm of each token's probability")
    labels, total = dict(enumerate(tokens)), sum(gains)
    topic.add("gain", "log(p_t)", name, "T", gains, shown, tokens=labels, total=total)
    best = search.hypotheses[0]
    topic.add("score", "s_y", say("their sum, the score of the text"), "", {"": best.score})
    topic.add("length", "n_y", say("tokens of the text"), "", {"": len(best.ids)})
    name = say("the length penalty of this run")
    topic.add("penalty", "α", name, "", {"": request.length_penalty})
    name = say("what the texts are ranked by, the best first")
    values = [found.normalised for found in search.hypotheses]
    topic.add("ranked", "r_y", name, say("texts"), values, tokens=dict(enumerate(search.texts)))
