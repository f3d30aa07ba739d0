"""The one temperature that makes a language model as sure as it should be."""

import pytest
import torch
import torch.nn.functional as F
from builders import model_of, save_model

import transformer
from transformer.training.__main__ import main
from transformer.training.calibrate import fit_temperature, fold_temperature
from transformer.training.evaluate import score_documents

DOCUMENTS = ["The fox said hello.", "One day the forest was quiet.", "The bird sang."]


def test_the_temperature_is_where_a_grid_finds_the_fewest_nats(tiny_model):
    found = fit_temperature(tiny_model, DOCUMENTS)
    end = tiny_model.tokenizer.end_id
    logits, targets = [], []
    for text in DOCUMENTS:  # each alone and unpadded
        ids = [end, *tiny_model.tokenizer.encode(text), end]
        with torch.inference_mode():
            logits.append(tiny_model.network(torch.tensor([ids[:-1]]))[0])
        targets.append(torch.tensor(ids[1:]))
    flat, wanted = torch.cat(logits), torch.cat(targets)
    grid = torch.linspace(0.5, 2.0, 301).tolist()
    best = min(grid, key=lambda t: float(F.cross_entropy(flat / t, wanted)))
    assert found == pytest.approx(best, abs=0.01)


def test_folding_it_in_divides_all_logits(tiny_model):
    for bias in (False, True):
        config = tiny_model.config.replace(head_bias=bias)
        model, ids = model_of("copy", config, tiny_model.tokenizer), torch.tensor([[3, 7, 9, 20]])
        before = model.network(ids)
        fold_temperature(model, 1.25)
        torch.testing.assert_close(model.network(ids), before / 1.25, atol=1e-5, rtol=1e-5)


def test_the_command_writes_a_checkpoint_that_costs_fewer_bits(tiny_model, tmp_path, capsys):
    save_model(tiny_model, tmp_path / "sure", dtype="float32", card="# A card")
    text = "".join(f"{line}\n<|endoftext|>\n" for line in DOCUMENTS)
    (tmp_path / "valid.txt").write_text(text, encoding="utf-8")
    command = ["calibrate", str(tmp_path / "sure"), "--data", str(tmp_path / "valid.txt")]
    assert main([*command, "--documents", "2", "--out", str(tmp_path / "calm")]) == 0
    assert "from 2 documents" in capsys.readouterr().out
    sure, calm = transformer.load(tmp_path / "sure"), transformer.load(tmp_path / "calm")
    used = DOCUMENTS[:2]
    assert score_documents(calm, used).nats < score_documents(sure, used).nats
    assert calm.metadata["calibration"]["documents"] == 2
    assert calm.card.startswith("# A card")
    assert "fitted on 2 held-out documents" in calm.card


def test_what_cannot_be_calibrated_is_said(tiny_encoder_decoder, tiny_encoder):
    with pytest.raises(ValueError, match="only a decoder-only model is calibrated; tiny-tr"):
        fit_temperature(tiny_encoder_decoder, DOCUMENTS)
    with pytest.raises(ValueError, match="tiny-encoder has no last norm"):
        fold_temperature(tiny_encoder, 1.1)
