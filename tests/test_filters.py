"""Why a candidate could not be taken: the first filter that cut it, by those of transformers."""

import dataclasses
import math

import pytest
import torch
from kit.runs import sampled_run
from transformers import MinPLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from transformer.runs.steps import Candidate
from transformer.views.prediction.prediction import (
    EITHER,
    MIN_P,
    NOT_BEST,
    OTHER_TEXT,
    PADDING,
    TOP_K,
    TOP_P,
    candidates,
)
from transformer.views.prediction.prediction import why_cut as reasons_of


def first_cuts(
    logits: torch.Tensor, temperature: float, k: int | None, p: float | None, m: float | None
) -> dict[int, str]:
    """token -> the first filter that cuts it, by the filters of transformers."""
    scores, cut = logits[None] / temperature, {}
    filters = {TOP_K: k and TopKLogitsWarper(k), TOP_P: p and TopPLogitsWarper(p)}
    for reason, keep in (filters | {MIN_P: m and MinPLogitsWarper(m)}).items():
        after = keep(None, scores) if keep else scores
        lost = (after[0] == -math.inf) & (scores[0] > -math.inf)
        cut |= dict.fromkeys(lost.nonzero()[:, 0].tolist(), reason)
        scores = after
    return cut


@pytest.mark.parametrize("temperature", [1.0, 0.6, 2.5])
@pytest.mark.parametrize(
    ("k", "p", "m"),
    [
        (4, None, None), (None, 0.4, None), (None, None, 0.2), (9, 0.5, None), (12, None, 0.3),
        (None, 0.6, 0.25), (15, 0.8, 0.2), (30, 0.5, 0.1), (7, 1.0, None),
    ],
)  # fmt: skip
def test_the_named_filter_is_the_first_that_cuts_in_transformers(tiny_model, temperature, k, p, m):
    run = tiny_model.generate(
        "the fox", max_new_tokens=5, temperature=temperature, top_k=k, top_p=p, min_p=m, seed=1
    )
    seen = set()
    for step in run.steps:
        with torch.no_grad():
            window = torch.tensor([run.ids[slice(*step.window)]])
            logits = tiny_model.network(window)[0, -1].double()
        logits[tiny_model.tokenizer.padding_id] = -math.inf
        expected = first_cuts(logits, temperature, k, p, m)
        reasons = reasons_of(run, step)
        for candidate in step.candidates:
            if candidate.id == tiny_model.tokenizer.padding_id:
                assert reasons[candidate.id] == PADDING
            elif candidate.sampling_probability > 0:
                assert candidate.id not in reasons
            elif reasons[candidate.id] == EITHER:
                assert p is not None
                assert m is not None
                assert expected[candidate.id] in (TOP_P, MIN_P)
            else:
                assert reasons[candidate.id] == expected[candidate.id]
                seen.add(reasons[candidate.id])
    assert seen or reasons == {} or EITHER in reasons.values()


def test_greedy_beams_and_padding_have_words_of_their_own(tiny_model, tiny_encoder_decoder):
    translation = tiny_encoder_decoder.generate("the fox said", beams=2, max_new_tokens=5)
    greedy = tiny_model.generate("the fox", max_new_tokens=2)
    padding = greedy.config.padding_id
    for item, reason in ((greedy, NOT_BEST), (translation, OTHER_TEXT)):
        for step in item.steps:
            found = reasons_of(item, step)
            assert step.token not in found
            assert set(found.values()) <= {reason, PADDING}
            assert len(found) == len(step.candidates) - 1
    step = greedy.steps[0]
    assert padding is not None
    lost = Candidate(id=padding, logit=9.0, probability=0.9, sampling_probability=0.0)
    planted = dataclasses.replace(step, candidates=(lost, *step.candidates))
    assert reasons_of(greedy, planted)[padding] == PADDING


def test_a_bar_that_is_missing_says_which_filter_cut(tiny_model):
    run = sampled_run(tiny_model)
    for index, step in enumerate(run.steps):
        figure = candidates(run, index)
        reasons = reasons_of(run, step)
        for candidate, text, why in zip(
            step.candidates, figure.data[1].text, figure.layout.meta["cut"], strict=False
        ):
            assert why == reasons.get(candidate.id)
            assert (text == f"✕ {why}") == (candidate.sampling_probability == 0)
    assert TOP_K in reasons_of(run, run.steps[0]).values()
