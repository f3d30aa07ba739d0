"""The topic of sampling: from the last logits to the token that was taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from transformer.inference import generation
from transformer.messages import numeral, say, say_n
from transformer.runs import steps
from transformer.views.model.formulas import SOFTMAX
from transformer.views.model.topic import (
    N_NUMBERS,
    Code,
    HeadAtQuery,
    Topic,
    outline_of,
    quoted,
)

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
        sentence = say("This text was only read: nothing was generated, so nothing was sampled.")
        return Topic(then=[sentence], is_placed=False)
    if request.beams > 1:
        sentence = say(
            "This text was found by a beam search with {n} beams, which draws nothing: it "
            "keeps the likeliest beginnings, and ranks the texts that it ends with.",
            n=request.beams,
        )
        return Topic(then=[sentence], is_placed=False)
    at = len(run.steps) - 1 if chosen.position is None else chosen.position - run.n_prompt
    step = run.steps[min(max(at, 0), len(run.steps) - 1)]
    settings, is_forced = request.sampling, step.index < len(request.forced_tokens)
    penalty, text = request.repetition_penalty, run.ids[: run.n_prompt + step.index]
    outcome = say_n(
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
    then, by = [outcome, how], "" if penalty == 1 or is_forced else numeral(penalty, "g")
    if by:
        sentence = say(
            "The repetition penalty divides the logits of tokens that the text x already has, or "
            "multiplies them where they are negative."
        )
        then.append(sentence)
    limits = {
        name: numeral(limit, "g")
        for name in _FILTERS
        if (limit := getattr(settings, name, None)) is not None
    }
    formula, code = _made_by(None if settings is None else limits, by, is_forced)
    return Topic((), formula, code, numbers, then=then, is_placed=False)


def sampling_outlines() -> dict[str, Any]:
    """The outline of a step by how its token was taken: forced, greedy, or drawn with filters,
    whose limits are there by their names in braces."""
    filters = [(), ("top_k",), ("top_p",), ("top_k", "top_p")]
    outlines = {"forced": _made_by(None, "", True), "greedy": _made_by(None, "", False)} | {
        " ".join(("sample", *names)): _made_by({name: f"{{{name}}}" for name in names}, "", False)
        for names in filters
    }
    return {
        name: outline_of(Topic((), formula, code, is_placed=False))
        for name, (formula, code) in outlines.items()
    }


def _made_by(
    limits: Mapping[str, str] | None, penalty: str, is_forced: bool
) -> tuple[list[str], Code]:
    """The formula and the code of a step. limits: of the filters, as text; None: nothing is drawn.
    penalty: of repetition, as text; "" for none."""
    formula, z = [], "z_i:logits"
    code: Code = []
    if limits is None or is_forced:
        formula.append(SOFTMAX)
        code.append((steps.candidates_of, "given=probabilities"))
    if is_forced:
        return formula, code
    if penalty:
        z, condition = "z′_i:penalised", f'"{say("if")}" i ∈ x ∧'
        formula += [
            f"{z} = z_i:logits / {penalty} {condition} z_i > 0",
            f"z′_i = {penalty} z_i {condition} z_i < 0",
        ]
        code.append((generation.penalised, "penalised=return logits=less:logits"))
    if limits is not None:
        drawn, drawing = _drawn_from(limits, z)
        return [*formula, *drawn], [*code, *drawing]
    part = z.split(":")[1]
    formula.append(f"i:drawn = argmax_i({z})")
    code.append((generation._take, f"drawn=tokens/argmax {part}=tokens:logits"))
    return formula, code


def _drawn_from(limits: Mapping[str, str], z: str) -> tuple[list[str], Code]:
    """The formula and the code of temperature, filters and draw, in the order in which they act.

    z: the logits that they act on, with their part.
    """
    logit, part = z.split(":")
    active = [
        (condition.format(limit=limits[name], z=logit), function, f"probabilities={condition_name}")
        for name, (condition, function, condition_name) in _FILTERS.items()
        if name in limits
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
