"""The topic of sampling: from the last logits to the token that was taken."""

from __future__ import annotations

import torch

from transformer.inference import generation
from transformer.messages import numeral, say, say_n
from transformer.runs import steps
from transformer.runs.request import Sampling
from transformer.views.model.formulas import SOFTMAX
from transformer.views.model.topic import N_NUMBERS, Code, HeadAtQuery, Topic, quoted

# For each filter its condition, its function, and the name of the condition in the function.
_FILTERS = {
    "top_k": ("rank({z}) ≤ {limit}", generation.keep_top_k, "return"),
    "top_p": ("c_i < {limit}", generation.keep_top_p, "outside"),
    "min_p": ("p_i ≥ {limit} max(p)", generation.keep_min_p, "return"),
}


def sampling(chosen: HeadAtQuery) -> Topic:
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
    penalty, text = request.repetition_penalty, run.ids[: run.n_prompt + step.index]
    taken = say_n(
        "Step {step}: the network read {n} token, and {token} was taken.",
        "Step {step}: the network read {n} tokens, and {token} was taken.",
        step.window[1] - step.window[0],
        step=step.index,
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
    best, temperature = step.candidates[:N_NUMBERS], settings.temperature if settings else 1.0
    logits = torch.tensor([[candidate.logit for candidate in best]])
    present = [[at for at, candidate in enumerate(best) if candidate.id in text]]
    left = generation.penalised(logits, present, penalty)[0].tolist()
    by_id = dict(zip((candidate.id for candidate in best), left, strict=True))
    numbers = {
        "logits": {candidate.id: candidate.logit for candidate in best},
        "temperature": temperature,
        "penalised": by_id,
        "scaled": {token: logit / temperature for token, logit in by_id.items()},
        "given": {candidate.id: candidate.probability for candidate in best},
        "probabilities": {candidate.id: candidate.sampling_probability for candidate in best},
        "drawn": {step.token: step.chosen.sampling_probability},
    }
    says, formula, z = [taken, how], [], "z_i:logits"
    code: Code = []
    if settings is None or is_forced:
        formula.append(SOFTMAX)
        code.append((steps.candidates_of, "given=probabilities"))
    if penalty != 1 and not is_forced:
        said = say(
            "The repetition penalty divides the logits of tokens that the text x already has, or "
            "multiplies them where they are negative."
        )
        says, z = [*says, said], "z′_i:penalised"
        by, condition = numeral(penalty, "g"), f'"{say("if")}" i ∈ x ∧'
        formula += [
            f"{z} = z_i:logits / {by} {condition} z_i > 0",
            f"z′_i = {by} z_i {condition} z_i < 0",
        ]
        code.append((generation.penalised, "penalised=return logits=less:logits"))
    if settings is not None and not is_forced:
        drawn, drawing = _drawn_from(settings, z)
        return Topic(says, [*formula, *drawn], [*code, *drawing], numbers)
    if not is_forced:
        part = z.split(":")[1]
        formula.append(f"i:drawn = argmax_i({z})")
        code.append((generation._take, f"drawn=tokens/argmax {part}=tokens:logits"))
    return Topic(says, formula, code, numbers)


def _drawn_from(settings: Sampling, z: str) -> tuple[list[str], Code]:
    """The formula and the code of temperature, filters and draw, in the order in which they act.

    z: the logits that they act on, with their part.
    """
    logit, part = z.split(":")
    active = [
        (condition.format(limit=numeral(limit, "g"), z=logit), function, f"probabilities={name}")
        for field, (condition, function, name) in _FILTERS.items()
        if (limit := getattr(settings, field)) is not None
    ]
    over = "{j ∈ A}" if active else "j"
    total = f"{{∑_{over} e^{{{logit.replace('_i', '_j')} // T}}}}"
    share = f"e^{{{{{z} // T:temperature}}:scaled}} / {total}"
    formula = [f"p_i:probabilities = {share}"]
    if active:
        formula[0] += f' "{say("if")}" i ∈ A'
        formula.append(f'p_i = 0 "{say("otherwise")}"')
        formula.append(f"i ∈ A ⇔ {' ∧ '.join(condition for condition, *_ in active)}")
    scaled = f"scaled=return {part}=return:logits temperature=return:temperature"
    return [*formula, "i:drawn ∼ p:probabilities"], [
        (generation.apply_temperature, scaled),
        *((function, name) for _, function, name in active),
        (generation._take, "probabilities=filtered"),
        (generation.draw, "drawn=chosen"),
    ]
