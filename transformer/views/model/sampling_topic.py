"""The topic of sampling: from the last logits to the token that was taken."""

from __future__ import annotations

from transformer.inference import generation
from transformer.messages import numeral, say, say_n
from transformer.runs import steps
from transformer.runs.request import Sampling
from transformer.views.model.topic import FIRST, Chosen, Code, Topic, quoted

# For each filter its condition, its function, and the name of the condition in the function.
_FILTERS = {
    "top_k": ("rank(z_i) ≤ {limit}", generation.keep_top_k, "return"),
    "top_p": ("c_i < {limit}", generation.keep_top_p, "outside"),
    "min_p": ("p_i ≥ {limit} max(p)", generation.keep_min_p, "return"),
}


def sampling(chosen: Chosen) -> Topic:
    """The step of the run that made the chosen token."""
    run, request = chosen.run, chosen.run.request
    if not run.steps:
        said = say("This text was only read: nothing was generated, so nothing was sampled.")
        return Topic([said])
    if request.beams > 1:
        said = say(
            "This text was found by a beam search with {n} beams, which draws nothing: it "
            "keeps the likeliest beginnings, and ranks the texts that it ends with.",
            n=request.beams,
        )
        return Topic([said])
    at = len(run.steps) - 1 if chosen.position is None else chosen.position - run.n_prompt
    step = run.steps[min(max(at, 0), len(run.steps) - 1)]
    settings, is_forced = request.sampling, step.index < len(request.forced_tokens)
    taken = say(
        "Step {step}: the network read {n} tokens, and {token} was taken.",
        step=step.index,
        n=numeral(step.window[1] - step.window[0]),
        token=quoted(run.candidate_labels[step.token]),
    )
    if is_forced:
        how = say("This token was not sampled: it was put there.")
    elif settings is None:
        how = say("This run takes the likeliest token each time (greedy): nothing is drawn.")
    else:
        how = say_n(
            "Only {n} of {all} tokens could be drawn.",
            "{n} of {all} tokens could be drawn.",
            step.n_kept,
            all=numeral(chosen.run.config.output_vocab_size),
        )
    best, temperature = step.candidates[:FIRST], settings.temperature if settings else 1.0
    numbers = {
        "logits": {one.id: one.logit for one in best},
        "temperature": temperature,
        "scaled": {one.id: one.logit / temperature for one in best},
        "given": {one.id: one.probability for one in best},
        "probabilities": {one.id: one.sampling_probability for one in best},
        "drawn": {step.token: step.chosen.sampling_probability},
    }
    if settings is None or is_forced:
        formula = ["p_i:given = e^{z_i:logits} / {∑_j e^{z_j}}", "i:drawn = argmax_i(z_i:logits)"]
        code: Code = [
            (steps.candidates_of, "given=probabilities"),
            (generation._take, "drawn=tokens/argmax logits=tokens:logits"),
        ]
        return Topic([taken, how], formula[: 2 - is_forced], code, numbers)
    return Topic([taken, how], *_drawn_from(settings), numbers)


def _drawn_from(settings: Sampling) -> tuple[list[str], Code]:
    """The formula and the code of temperature, filters and draw, in the order of their acting."""
    active = [
        (condition.format(limit=numeral(limit, "g")), function, f"probabilities={name}")
        for field, (condition, function, name) in _FILTERS.items()
        if (limit := getattr(settings, field)) is not None
    ]
    over = "{j ∈ A}" if active else "j"
    share = f"e^{{{{z_i:logits // T:temperature}}:scaled}} / {{∑_{over} e^{{z_j // T}}}}"
    formula = [f"p_i:probabilities = {share}"]
    if active:
        formula[0] += f' "{say("if")}" i ∈ A'
        formula.append(f'p_i = 0 "{say("otherwise")}"')
        formula.append(f"i ∈ A ⇔ {' ∧ '.join(condition for condition, *_ in active)}")
    scaled = "scaled=return logits=return:logits temperature=return:temperature"
    return [*formula, "i:drawn ∼ p:probabilities"], [
        (generation.apply_temperature, scaled),
        *((function, name) for _, function, name in active),
        (generation._take, "probabilities=filtered"),
        (generation.draw, "drawn=chosen"),
    ]
