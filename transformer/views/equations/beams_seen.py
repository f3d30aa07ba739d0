"""A text that a beam search found: the sum of its log-probabilities, and what it is ranked by."""

from __future__ import annotations

import math

import numpy as np

from transformer.messages import say
from transformer.runs.steps import GenerationStep
from transformer.views.equations.mathml import Node, equal, frac, mi, of, row, sub, sup, total
from transformer.views.equations.shown import (
    FIRST,
    RenderContext,
    Topic,
    cells_of,
    label_of,
    number,
    one,
    tensor,
)
from transformer.views.equations.source import Code

_SEARCH = "inference.beam._Search"


def found_by_beams(look: RenderContext, step: GenerationStep) -> Topic:
    """The best text's sum, its length, and what all texts that were found are ranked by."""
    run = look.run
    assert run.search is not None
    best = run.search.hypotheses[0]
    length = sub(mi("n"), mi("y"), "length")
    ranked = frac(sub(mi("s"), mi("y"), "score"), sup(length, mi("α", "penalty")))
    gain = row(of(mi("log"), sub(mi("p"), mi("t"))), part="gain")
    return Topic(
        says=[
            say(
                "This text was found by a beam search with {n} beams, which draws nothing: it "
                "keeps the likeliest beginnings, and ranks the texts that it ends with.",
                n=run.request.beams,
            ),
            say(
                "Step {step} took {token}.", step=step.index, token=label_of(look, step.token)
            ),
        ],
        formula=[
            equal(sub(mi("s"), mi("y"), "score"), total(mi("t")), gain),
            equal(sub(mi("r"), mi("y"), "ranked"), ranked),
        ],
        code=[
            Code(
                f"{_SEARCH}._extensions",
                ("gain", "= «decoded[:, -1].float().log_softmax(dim=-1)»"),
            ),
            Code(
                f"{_SEARCH}._advance",
                ("score", "(«live.score + gain», parent"),
                ("gain", "live.score + «gain»,"),
            ),
            Code(
                f"{_SEARCH}._finish",
                ("ranked", "= «score / max(1, len(ids)) ** self.length_penalty»"),
                ("score", "= «score» /"),
                ("length", "«max(1, len(ids))»"),
                ("penalty", "«self.length_penalty»"),
            ),
        ],
        tensors=[
            _gains(look, step, gain),
            tensor("score", sub(mi("s"), mi("y")), say("their sum, the score of the text"), [],
                   **one(best.score)),
            tensor("length", sub(mi("n"), mi("y")), say("tokens of the text"), [],
                   **one(len(best.ids))),
            tensor("penalty", mi("α"), say("the length penalty of this run"), [],
                   **one(run.request.length_penalty)),
            _ranks(look),
        ],
    )  # fmt: skip


def _gains(look: RenderContext, step: GenerationStep, symbol: Node) -> dict[str, object]:
    """The log-probabilities of the best text's tokens, those around the chosen step."""
    steps = look.run.steps
    gains = np.array([math.log(max(one.chosen.probability, 1e-45)) for one in steps])
    start = max(0, min(step.index - FIRST // 2, len(steps) - FIRST))
    shown = range(start, min(len(steps), start + FIRST))
    tokens = [steps[at].token for at in shown]
    cells = [
        cell | {"label": str(at)}
        for at, cell in zip(shown, cells_of(look, tokens, gains[start : shown.stop]), strict=True)
    ]
    left = len(gains) - len(cells)
    rest = float(gains.sum() - gains[start : shown.stop].sum()) if left else None
    return tensor(
        "gain", symbol, say("the logarithm of each token's probability"), [("T", len(gains))],
        cells, more=left, rest=rest, adds_up=float(gains.sum()),
    )  # fmt: skip


def _ranks(look: RenderContext) -> dict[str, object]:
    """What the texts that were found are ranked by."""
    assert look.run.search is not None
    found = look.run.search
    cells = [
        {"label": str(at), "token": text, "value": number(one.normalised)}
        for at, (one, text) in enumerate(zip(found.hypotheses, found.texts, strict=True))
    ]
    name = say("what the texts are ranked by, the best first")
    axes = [(say("texts"), len(cells))]
    return tensor("ranked", sub(mi("r"), mi("y")), name, axes, cells[:FIRST],
                  more=max(0, len(cells) - FIRST))  # fmt: skip
