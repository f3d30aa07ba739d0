"""What a training plans and counts before its first step, and what its card says of its input."""

import dataclasses
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kit.training import recipe

from transformer import Tokenizer
from transformer.model.config import preset
from transformer.plain_text import ENGLISH_STORIES, PLAIN_ENGLISH
from transformer.training import card
from transformer.training.loop import checkpoint_steps
from transformer.training.recipe import load_recipe
from transformer.training.state import may_go_on
from transformer.training.tasks import Translation

TRANSLATION = """
task = "translation"
[tokenizer]
vocab_size = 300
[model]
preset = "pre-norm"
d_model = 16
n_heads = 2
n_layers = 1
d_ff = 16
max_len = 8
[training]
steps = 1
batch_tokens = 200
learning_rate = 6e-3
"""


@pytest.mark.parametrize(
    ("n_steps", "n_checkpoints", "steps"),
    [
        (1000, 4, [0, 10, 100, 1000]),  # by hand: each later ten times
        (160, 6, [0, 10, 20, 40, 80, 160]),
        (5, 4, [0, 5]),
        (1000, 1, [0]),
        (1000, 0, []),
    ],
)
def test_checkpoints_are_kept_later_by_the_same_factor(n_steps, n_checkpoints, steps):
    assert checkpoint_steps(n_steps, n_checkpoints) == steps


@pytest.fixture
def translation(tmp_path: Path) -> Translation:
    """Three pairs to train, of which one is longer than 8 tokens, and two of four to validate."""
    long = "a very long sentence indeed, which no small network reads\tb\n"
    (tmp_path / "train.tsv").write_text(f"a\tb\nc\td\n{long}", encoding="utf-8")
    (tmp_path / "valid.tsv").write_text(f"a\tb\nc\td\n{long}{long}", encoding="utf-8")
    (tmp_path / "tiny.toml").write_text(TRANSLATION, encoding="utf-8")
    return Translation(load_recipe(str(tmp_path / "tiny.toml")), str(tmp_path))


def test_pairs_that_are_too_long_are_counted_and_left_out(translation):
    tokenizer = Tokenizer.train(["a b c d"], 300)
    translation.encode(tokenizer, preset("pre-norm", vocab_size=300, max_len=8))
    counts = translation.counts()
    assert (counts["too_long"], counts["valid_too_long"]) == (1, 2)
    assert (len(translation.examples), len(translation.valid)) == (2, 2)


def test_a_character_without_an_id_is_named_in_the_file_of_its_pair(translation):
    letters = [*map(chr, range(97, 123)), *" ,"]
    known = Tokenizer.of_characters(["".join(letters)])
    translation.check(known)
    path = translation.held_out[0]
    path.write_text("a\tb\nc\tß\n", encoding="utf-8")
    translation.valid.append(("c", "ß"))
    with pytest.raises(ValueError, match=rf"{path.name}, line 2: the text holds 'ß'"):
        translation.check(known)


@pytest.mark.parametrize(
    ("family", "masks", "is_allowed"),
    [
        ("encoder", False, True),
        ("decoder", True, True),
        ("decoder", False, False),
        ("encoder-decoder", True, False),
    ],
)
def test_a_decoder_may_begin_an_encoder_that_fills_gaps(tmp_path, family, masks, is_allowed):
    plan = recipe(tmp_path, steps=1)
    hiding = dataclasses.replace(plan, model={**plan.model, "preset": "bert"})
    values = hiding.model_config(300).to_dict() | {"family": family}
    config = SimpleNamespace(vocab_size=300, to_dict=lambda: values)
    start: Any = SimpleNamespace(name="start", config=config)
    says = f"start cannot start this recipe: family is '{family}'"
    with nullcontext() if is_allowed else pytest.raises(ValueError, match=says):
        assert may_go_on(hiding, "", tmp_path / "out", start, masks=masks) is False


@pytest.mark.parametrize("source_text", [PLAIN_ENGLISH, ENGLISH_STORIES, None])
def test_a_card_explains_plain_input_where_the_network_reads_it(monkeypatch, source_text):
    for name in ("_origin", "_counted", "_shape", "_training", "_scores"):
        monkeypatch.setattr(card, name, lambda *_: "...")
    metadata = {
        "recipe": {"name": "tiny", "card": {}},
        "phases": [{"data": {}}],
        "source_text": source_text,
    }
    text = card.card_text(metadata, preset("gpt", vocab_size=9), "characters")
    assert ("## Input" in text) == (source_text == PLAIN_ENGLISH)
