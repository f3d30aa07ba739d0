"""What a training plans and counts before its first step, and what its card says of its input."""

import dataclasses
import json
from contextlib import nullcontext
from pathlib import Path
from random import Random
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
from transformer.training.state import keep_log_until, may_go_on, write_curve
from transformer.training.tasks import FillIn, Translation, passages

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


def test_a_curve_is_the_mean_loss_of_about_a_hundred_stretches(tmp_path):
    def line(step: int) -> str:
        more = {"valid_loss": step / 8} if step % 100 == 0 else {}
        return json.dumps({"step": step, "loss": float(step)} | more)

    log, lines = tmp_path / "log.jsonl", [*map(line, range(1, 206))]
    log.write_text("\n".join(lines))
    curve = write_curve(tmp_path)
    pairs = [[step, step - 0.5] for step in range(2, 205, 2)]  # by hand: the mean of two steps
    assert curve == {"train": [*pairs, [205, 205.0]], "valid": [[100, 12.5], [200, 25.0]]}
    # after a kill: steps that are repeated, and a line cut short
    log.write_text("\n".join([*lines[:9], lines[4], lines[9][:-5]]))
    keep_log_until(tmp_path, 8)
    assert log.read_text().splitlines() == lines[:8]
    assert write_curve(tmp_path)["train"] == [[step, float(step)] for step in range(1, 9)]


def test_half_of_the_documents_stay_whole_and_no_sentence_is_lost():
    text = " ".join(f'"Is it {n}?" It is {n}. Yes!' for n in range(20))
    rng, cut = Random(0), list[list[str]]()
    for _ in range(400):
        parts = passages(text, rng)
        assert " ".join(parts) == text
        cut += [parts] if len(parts) > 1 else []
    assert len(cut) == pytest.approx(200, abs=40)
    sentences = 60 * len(cut)
    assert sentences / sum(map(len, cut)) == pytest.approx(1 / (1 - 0.6), rel=0.05)


def test_rows_of_an_encoder_hold_each_token_once_behind_an_end_token(tmp_path):
    texts = ["the cat sat on the mat " * 3, "a dog"]
    plan = recipe(tmp_path, steps=1)
    (tmp_path / "text.txt").write_text("\n<|endoftext|>\n".join([*texts, "a cat"]))
    task, tokenizer = FillIn(plan, str(tmp_path / "text.txt")), Tokenizer.train(texts, 300)
    task.train = texts
    tokenizer = tokenizer.with_mask()
    config = preset("bert", vocab_size=tokenizer.vocab_size, max_len=8)
    task.encode(tokenizer, config)
    rows = task.rows(Random(1))
    ids = [id_ for text in texts for id_ in tokenizer.encode(text)]
    read = [
        [wanted if wanted >= 0 else id_ for id_, wanted in zip(row.read, row.wanted, strict=True)]
        for row in rows
    ]
    assert [id_ for row in read for id_ in row[1:]] == ids
    assert {row.read[0] for row in rows} == {tokenizer.end_id}
    assert max(len(row.read) for row in rows) == config.max_len
