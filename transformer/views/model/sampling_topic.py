"""The topic of sampling: from the last logits to the token that was taken."""

from __future__ import annotations

from typing import Any

from transformer.inference import generation
from transformer.messages import numeral, say, say_n
from transformer.runs import steps
from transformer.runs.steps import GenerationStep
from transformer.views.model.source import excerpt
from transformer.views.model.topic import FIRST, Topic, quoted

# For each filter its condition, its function, and the name of the condition in the function.
_FILTERS = {
    "top_k": ("rank(z_i) ≤ {limit}", generation.keep_top_k, "return"),
    "top_p": ("c_i < {limit}", generation.keep_top_p, "outside"),
    "min_p": ("p_i ≥ {limit} max(p)", generation.keep_min_p, "return"),
}


def sampling(topic: Topic) -> None:
    """The step of the run that made the chosen token."""
    run, request = topic.run, topic.run.request
    if not run.steps:
        topic.says = [
            say("This text was only read: nothing was generated, so nothing was sampled.")
        ]
        return
    at = len(run.steps) - 1 if topic.token is None else topic.token - run.n_prompt
    step = run.steps[min(max(at, 0), len(run.steps) - 1)]
    token = quoted(run.candidate_labels.get(step.token, str(step.token)))
    if request.beams > 1:
        topic.says = [
            say(
                "This text was found by a beam search with {n} beams, which draws nothing: it "
                "keeps the likeliest beginnings, and ranks the texts that it ends with.",
                n=request.beams,
            )
        ]
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
        _vocabulary(topic, "probabilities", "p_i", name, shares)
    else:
        _sampled(topic, step)
    share = {step.token: step.chosen.sampling_probability}
    names = {step.token: run.candidate_labels.get(step.token, str(step.token))}
    topic.add("drawn", "i", say("the token that was taken"), "", share, tokens=names)


def _vocabulary(topic: Topic, part: str, symbol: str, name: str, values: dict[int, Any]) -> None:
    """Add numbers of some tokens, out of one for each of the vocabulary."""
    names = {at: topic.run.candidate_labels.get(at, str(at)) for at in values}
    topic.add(part, symbol, name, "B × V", values, tokens=names)


def _sampled(topic: Topic, step: GenerationStep) -> None:
    """Temperature, the filters in the order in which they act, and what was drawn from."""
    sampling = topic.run.request.sampling
    assert sampling is not None
    limits = {name: getattr(sampling, name) for name in _FILTERS}
    active = {name: limit for name, limit in limits.items() if limit is not None}
    power = "e^{{z_{0}:logits // T:temperature}}"
    over = "{j ∈ A}" if active else "j"
    share = f"{{{power.format('i')}}}:scaled / {{∑_{over} {power.format('j')}}}"
    topic.formula = [f"p_i:probabilities = {share}"]
    if active:
        conditions = (
            f"{{{_FILTERS[name][0].format(limit=numeral(limit, 'g'))}}}"
            for name, limit in active.items()
        )
        yes, no = say("if"), say("otherwise")
        topic.formula = [
            f'p_i:probabilities = cases{{{share} & "{yes}" i ∈ A; 0 & "{no}";}}',
            f"i ∈ A ⇔ {' ∧ '.join(conditions)}",
        ]
    names = {"scaled": "return", "logits": "return:logits", "temperature": "return:temperature"}
    topic.code = [
        excerpt(generation.apply_temperature, **names),
        *(excerpt(_FILTERS[name][1], probabilities=_FILTERS[name][2]) for name in active),
        excerpt(generation._take, probabilities="filtered"),
        excerpt(generation.draw, drawn="chosen"),
    ]
    best, temperature = step.candidates[:FIRST], sampling.temperature
    topic.add("temperature", "T", say("the temperature of this run"), "", {"": temperature})
    scaled = {one.id: one.logit / temperature for one in best}
    _vocabulary(topic, "scaled", "z_i / T", say("divided by the temperature"), scaled)
    shares = {one.id: one.sampling_probability for one in best}
    _vocabulary(topic, "probabilities", "p_i", say("what the token was drawn from"), shares)
    topic.says.append(
        say_n(
            "Only {n} of {all} tokens could be drawn.",
            "{n} of {all} tokens could be drawn.",
            step.n_kept,
            all=numeral(topic.config.output_vocab_size),
        )
    )
