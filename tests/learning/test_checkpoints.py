"""The checkpoints of a training: what the command records is what their networks say."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from builders import tiny

import transformer
from transformer import Model, Tokenizer
from transformer.learning import checkpoints as reading
from transformer.learning import record_checkpoints
from transformer.learning.checkpoints import CheckpointedTraining, story_training
from transformer.learning.record_checkpoints import SENTENCES, recorded_checkpoints
from transformer.learning.words import told_at
from transformer.training.state import append_log
from transformer.ui.learning import recorded_checkpoint

STEPS = (0, 3, 12)
TEXTS = ("Tom and Mia saw the dog. The dog saw Tom and Mia.", "The red ball and the red bird.")


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the trainer leaves it: networks after 0, 3 and 12 steps, and the log."""
    folder = tmp_path_factory.mktemp("out") / "training"
    folder.mkdir()
    tokenizer = Tokenizer.train([*SENTENCES, *TEXTS] * 3, 420)
    model = tiny("tiny", "decoder", tokenizer, max_len=96, positions="learned")
    for step in range(1, STEPS[-1] + 1):
        append_log(folder, {"step": step, "loss": 6 - step / 10})
    for step in STEPS:
        scores = {"loss": 6.0 - step / 10, "bits_per_byte": 3.0 - step / 20}
        about = {
            "recipe": {"name": "tiny", "settings": {"steps": STEPS[-1]}},
            "validation": {"step": step, "examples": 7, **scores},
        }
        dataclasses.replace(model, metadata=about).save(folder / "checkpoints" / f"{step:06}")
        with torch.no_grad():
            for weights in model.generator_network.parameters():
                weights.mul_(1.1)
    return folder


@pytest.fixture(scope="module")
def kept(training: Path) -> CheckpointedTraining:
    """What the command writes, read back."""
    with pytest.MonkeyPatch.context() as patch:
        out = training / "checkpoints.npz"
        patch.setattr(record_checkpoints, "_sample", lambda: list(TEXTS))
        patch.setattr(sys, "argv", ["", str(training / "checkpoints"), "--out", str(out)])
        record_checkpoints.main()
    return CheckpointedTraining.of_bytes(out.read_bytes())


@pytest.fixture(scope="module")
def models(training: Path) -> list[Model]:
    return [transformer.load(training / "checkpoints" / f"{step:06}") for step in STEPS]


def test_what_is_kept_is_what_the_networks_say(kept, models):
    assert (kept.steps, kept.shape) == (list(STEPS), (2, 2))
    assert (kept.total, kept.examples, kept.recipe) == (12, 7, "tiny")
    assert [one.text for one in kept.sentences] == list(SENTENCES)
    for place, model in enumerate(models):
        for sentence in kept.sentences:
            run = model.trace(sentence.text)
            assert sentence.labels == run.labels
            weights = run.trace.weights("decoder", "self")[:, 0]
            for layer in range(2):
                for head in range(2):
                    kept_weights = sentence.weights(place, layer, head)
                    np.testing.assert_allclose(kept_weights, weights[layer, head], atol=0.004)
            ids = torch.tensor([run.ids])
            with torch.inference_mode():
                logits = model.generator_network(ids[:, :-1])
            nats = F.cross_entropy(logits[0], ids[0, 1:], reduction="none")
            assert np.isnan(sentence.surprisal[place, 0])
            np.testing.assert_allclose(sentence.surprisal[place, 1:], nats, atol=1e-4)
        wrote = model.generate(
            "Once upon a time", max_new_tokens=60, temperature=0.7, seed=kept.seed
        )
        assert kept.standings[place].wrote == wrote.text
    assert [one.loss for one in kept.standings] == [6.0, 5.7, 4.8]


def test_the_best_head_is_the_best_over_all_rows_of_all_texts(kept, models):
    for standing, model in zip(kept.standings, models, strict=True):
        rows = []
        for text in TEXTS:
            weights = model.trace(text).trace.weights("decoder", "self")[:, 0]
            rows.append(weights.diagonal(offset=-1, dim1=-2, dim2=-1))
        means = torch.cat(rows, dim=-1).mean(dim=-1)
        best = standing.best_by("previous")
        assert best.value == pytest.approx(means.max().item(), abs=1e-4)
        assert means[best.layer, best.head] == means.max()
        assert 0 <= standing.n_even <= 4
    assert {one.metric for one in kept.standings[0].best} >= {"previous", "induction", "first"}


def test_the_checkpoints_that_are_shipped_are_of_the_story_model():
    found, config = story_training(), transformer.load("stories").config
    assert (found.recipe, found.shape) == ("stories", (config.n_layers, config.n_heads))
    assert (found.steps[0], found.steps[-1]) == (0, found.total)
    for sentence in found.sentences:
        assert "".join(sentence.labels[1:]).replace("␣", " ") == sentence.text
        assert np.nanmean(sentence.surprisal[-1]) < np.nanmean(sentence.surprisal[0]) - 3


def test_it_says_when_which_kind_of_head_formed():
    training = story_training()
    told = {step: told_at(training, place) for place, step in enumerate(training.steps)}
    assert told[0][0].startswith("Before the first step: 7.64 nats a token, 3.061 bits per byte")
    assert told[0][1:] == ["48 of 48 heads read uniformly."]
    _, _, new, *_, old = told[1254]
    assert new.startswith("New since step 629: layer 4, head 7 reads the previous token (0.21; a ")
    assert old.startswith("Layer 5, head 4 reads what followed the last time (0.09; a uniform he")
    assert told[2500][2] == "Since step 1,254 no new kind of head has formed."


def test_the_page_is_told_of_a_checkpoint():
    training, last = story_training(), recorded_checkpoint({})
    best = training.standings[-1].best_by("induction")
    assert (last["step"], last["layer"], last["head"]) == (training.total, best.layer, best.head)
    early = recorded_checkpoint({"step": 40, "sentence": 1, "layer": 2, "head": 5})
    place, sentence = training.steps.index(40), training.sentences[1]
    assert early["labels"] == sentence.labels
    assert (early["picture"]["pixels"] == sentence.pixels[place]).all()
    assert early["mean"] == pytest.approx(np.nanmean(sentence.surprisal[place]))
    assert early["start"] + early["wrote"] == training.standings[place].wrote
    (cells,) = early["large"].data
    np.testing.assert_allclose(cells.customdata, sentence.weights(place, 2, 5))
    _, held_out, *_ = early["curves"].data
    assert list(held_out.x) == [0.5, *training.steps[1:]]
    assert list(held_out.y) == [one.loss for one in training.standings]


def test_what_was_not_kept_is_told(training, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="holds no checkpoint of a training"):
        recorded_checkpoints(tmp_path / "none")
    with pytest.raises(ValueError, match="a sentence may have 64 tokens; got"):
        recorded_checkpoints(training / "checkpoints", sentences=["q x z " * 40], texts=TEXTS)
    for given, sentence in (
        ({"step": 4}, r"step must be one of \[0, .*\]; got 4"),
        ({"sentence": 99}, "sentence must be a whole number from 0 to"),
        ({"layer": 8}, "layer must be a whole number from 0 to .; got 8"),
        ({"head": "x"}, "head must be a whole number"),
    ):
        with pytest.raises(ValueError, match=sentence):
            recorded_checkpoint(given)
    monkeypatch.setattr(reading, "FILE", tmp_path / "none.npz")
    with pytest.raises(ValueError, match="no checkpoints of a training come with this page"):
        recorded_checkpoint({})
