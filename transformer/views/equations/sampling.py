"""The topic of sampling: from the last logits to the token that was taken."""

from __future__ import annotations

from transformer.analysis.step_filters import step_filters
from transformer.messages import numeral, say
from transformer.runs.steps import GenerationStep
from transformer.views.equations.beams_seen import found_by_beams
from transformer.views.equations.filters_seen import sampled
from transformer.views.equations.mathml import equal, frac, mi, of, row, sub, sup, total
from transformer.views.equations.shown import (
    FIRST,
    RenderContext,
    Topic,
    cells_of,
    chance,
    label_of,
    logit,
    no_such,
    of_vocabulary,
    taken_of,
    tensor,
)
from transformer.views.equations.source import Code


def sampling(look: RenderContext, place: int | None) -> Topic:
    """One step of the run. place: the chosen token's, in the run's ids; None = the last."""
    run = look.run
    if run.config.family == "encoder":
        return no_such(
            say(
                "An encoder alone writes no text, so nothing is sampled: it says what stands at "
                "each place, not what comes next."
            )
        )
    if not run.steps:
        return no_such(
            say("This text was only read: nothing was generated, so nothing was sampled.")
        )
    step, given = _step_of(look, place)
    if run.request.beams > 1:
        return found_by_beams(look, step)
    chosen = [
        say(
            "Step {step}: the network read {n} tokens, and {token} was taken.",
            step=step.index,
            n=numeral(step.window[1] - step.window[0]),
            token=label_of(look, step.token),
        )
    ]
    if given:
        chosen.append(say("(The chosen token was given, so the first generated one is shown.)"))
    if run.request.sampling is None or step.index < len(run.request.forced_tokens):
        return _greedy(look, step, chosen)
    filters = look.models.ask(step_filters, run, step=step.index)
    return sampled(look, step, filters, chosen)


def _step_of(look: RenderContext, place: int | None) -> tuple[GenerationStep, bool]:
    """The step that made the token at a place, and whether there is another in its stead."""
    steps, first = look.run.steps, look.run.n_prompt
    at = len(steps) - 1 if place is None else place - first
    return steps[min(max(at, 0), len(steps) - 1)], at < 0


def _greedy(look: RenderContext, step: GenerationStep, says: list[str]) -> Topic:
    """The likeliest token, or one that a visitor put there."""
    ids = [one.id for one in step.candidates[:FIRST]]
    z = [one.logit for one in step.candidates[:FIRST]]
    size = ("V", look.config.output_vocab_size)
    if step.index < len(look.run.request.forced_tokens):
        why = say("This token was not sampled: it was put there.")
    else:
        why = say("This run takes the likeliest token each time (greedy): nothing is drawn.")
    other = sup(mi("e"), sub(mi("z"), mi("j")))
    shares = [one.probability for one in step.candidates[:FIRST]]
    return Topic(
        says=[*says, why],
        formula=[
            equal(mi("i", "drawn"), of(sub(mi("argmax"), mi("i")), logit())),
            equal(chance(), frac(sup(mi("e"), logit()), row(total(mi("j")), other))),
        ],
        code=[
            Code(
                "inference.generation._take",
                ("drawn", "tokens = «logits.argmax(dim=-1)».tolist()"),
                ("logits", "tokens = «logits».argmax"),
            ),
            Code("runs.steps.describe", ("probabilities", "«logits.softmax(dim=-1)».gather")),
        ],
        tensors=[
            of_vocabulary(
                look, "logits", logit(), say("logits of the likeliest tokens"), ids, z, size
            ),
            tensor(
                "probabilities", chance(), say("what the network gives them"), [("B", 1), size],
                cells=cells_of(look, ids, shares), more=size[1] - len(ids),
                rest=max(0.0, 1 - sum(shares)), adds_up=1.0,
            ),
            taken_of(look, step),
        ],
    )  # fmt: skip
