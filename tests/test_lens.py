"""What each layer would have said, and how much each token surprised the network."""

from __future__ import annotations

import pytest


def test_surprise_is_minus_log2_of_what_each_token_was_given(tiny_model):
    run = tiny_model.generate("the fox said", max_new_tokens=5)
    assert run.surprise[0] is None
    assert len(run.surprise) == len(run.ids)
    for step in run.steps:
        place = run.n_prompt + step.index
        assert 2 ** -run.surprise[place] == pytest.approx(step.chosen.probability, rel=1e-3)


def test_the_lens_ends_with_the_models_own_prediction(tiny_model):
    run = tiny_model.generate("the fox said", max_new_tokens=5)
    n_layers = tiny_model.config.n_layers
    assert run.lens.ids.shape == run.lens.probabilities.shape == (n_layers + 1, len(run.ids), 5)
    for step in run.steps:
        place = run.n_prompt + step.index - 1
        assert int(run.lens.ids[-1, place, 0]) == step.candidates[0].id
        found = float(run.lens.probabilities[-1, place, 0])
        assert found == pytest.approx(step.candidates[0].probability, rel=1e-3)
    assert set(run.lens.ids.unique().tolist()) <= set(run.candidate_labels)


def test_a_translations_surprise_is_that_of_its_own_tokens(tiny_encoder_decoder):
    run = tiny_encoder_decoder.generate("the fox said", beams=2, max_new_tokens=5)
    shown = [2**-bits for bits in run.surprise[1:]]
    assert shown == pytest.approx([step.chosen.probability for step in run.steps], rel=1e-3)


def test_an_encoder_foresees_nothing_and_its_lens_tells_what_stands_there(tiny_encoder):
    run = tiny_encoder.trace("the fox said")
    assert set(run.surprise) == {None}
    assert run.lens.ids.shape[:2] == (tiny_encoder.config.n_layers + 1, len(run.ids))
