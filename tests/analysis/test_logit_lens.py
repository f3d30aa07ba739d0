"""The logit lens, and the surprisal of each token."""

import dataclasses
import gc
import weakref

import pytest
import torch
from kit.models import tiny

import transformer
from transformer import Break, with_lens
from transformer.analysis.logit_lens import logit_lens
from transformer.inference.deadline import Deadline, until


def test_the_lens_of_an_encoder_names_the_token_at_the_position(tiny_encoder):
    run = with_lens(tiny_encoder, tiny_encoder.trace("the fox said"))
    assert set(run.surprisal) == {None}
    assert run.lens.ids.shape[:2] == (tiny_encoder.config.n_layers + 1, len(run.ids))


def test_the_lens_of_a_network_with_a_break_is_that_networks_own(tiny_model):
    options = {"max_new_tokens": 3, "interventions": [Break("no-final-norm")]}
    run = tiny_model.generate("the fox said", **options)
    lens = logit_lens(tiny_model, run)
    for step in run.steps:
        found = float(lens.probabilities[-1, run.n_prompt + step.index - 1, 0])
        assert found == pytest.approx(step.candidates[0].probability, rel=1e-3)


def test_the_lens_needs_the_runs_model_and_ends_at_the_deadline(tiny_model, tiny_encoder):
    run = tiny_model.trace("the fox")
    assert run.lens is run.surprisal is None
    with pytest.raises(ValueError, match=r"needed: the run that transformer.with_lens\(model"):
        run.draw("lens")
    with pytest.raises(ValueError, match="need the model that made it, tiny; got tiny-encoder"):
        with_lens(tiny_encoder, run)
    with until(Deadline(0)), pytest.raises(ValueError, match="takes longer than one request may"):
        with_lens(tiny_model, run)


def test_a_run_read_from_a_file_has_the_same_lens(tiny_model, tmp_path):
    run = tiny_model.generate("the fox said", max_new_tokens=3)
    run.to_npz(tmp_path / "run.npz")
    again = logit_lens(tiny_model, transformer.read_npz(tmp_path / "run.npz"))
    torch.testing.assert_close(again.probabilities, logit_lens(tiny_model, run).probabilities)
    bare = dataclasses.replace(run, trace=transformer.from_json(run.to_json()).trace)
    with pytest.raises(ValueError, match="without residual streams"):
        with_lens(tiny_model, bare)


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.0, "seed": 2}])
def test_a_run_holds_no_network(tokenizer, settings):
    model = tiny("short-lived", "decoder", tokenizer)
    network = weakref.ref(model.network)
    run = with_lens(model, model.generate("the fox said", max_new_tokens=4, **settings))
    pending = model.generate("the fox said", max_new_tokens=4, **settings)
    del model
    gc.collect()
    assert network() is None
    assert run.trace.weights("decoder").shape[0] == 2
    assert len(pending.steps[0].candidates) >= 20
    assert pending.candidate_labels[run.ids[-1]] == run.labels[-1]
