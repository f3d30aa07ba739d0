"""Recipes, batches and scores of the training package."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import re
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import transformer
from transformer.plain_text import plain
from transformer.training.data import Batches, windows_of
from transformer.training.download import clean_pairs, split_pairs
from transformer.training.evaluate import longest_shared_passage, score_documents, windows
from transformer.training.recipe import Settings, load_recipe
from transformer.training.tasks import Translation

documents = st.lists(
    st.lists(st.integers(3, 50), min_size=2, max_size=70), min_size=1, max_size=30
)  # fmt: skip


def document_batches(rows, *, batch_tokens, seed, max_len=16):
    return Batches(
        lambda rng: [row for ids in rows for row in windows_of(ids, max_len, rng)],
        lambda row: len(row) - 1,
        batch_tokens=batch_tokens,
        seed=seed,
    )


@given(documents, st.integers(0, 3))
def test_an_epoch_predicts_every_token_of_every_document_once(rows, epoch):
    batches = document_batches(rows, batch_tokens=64, seed=1).epoch(epoch)
    predicted = Counter(token for batch in batches for row in batch for token in row[1:])
    assert predicted == Counter(token for row in rows for token in row[1:])
    for batch in batches:
        widest = max(map(len, batch)) - 1
        assert widest <= 16
        assert len(batch) == 1 or len(batch) * widest <= 64


def test_batches_go_on_from_any_place():
    rows = [[1, *range(3, 3 + n)] for n in range(2, 40)]
    batches = document_batches(rows, batch_tokens=48, seed=0)
    from_start = batches.starting_at(0, 0)
    everything = [next(from_start) for _ in range(60)]
    epoch, index, _ = everything[37]
    again = batches.starting_at(epoch, index)
    assert [next(again) for _ in range(20)] == everything[37:57]
    assert everything[0][0] == 0
    assert everything[-1][0] > 0


@given(st.integers(1, 500), st.integers(2, 60))
def test_windows_score_each_prediction_once_with_half_the_context_behind_it(length, max_len):
    cut = windows(length, max_len)
    scored = [place for _, first, stop in cut for place in range(first, stop)]
    assert scored == list(range(length))
    assert all(stop - start <= max_len for start, _, stop in cut)
    assert all(first - start >= max_len // 2 for start, first, _ in cut[1:])


def test_a_score_is_the_sum_over_single_predictions(tiny_model):
    texts = ["The cat sat.", "Le chat était là 😀" * 4, "x"]
    score = score_documents(tiny_model, texts)
    nats, tokens = 0.0, 0
    for text in texts:
        ids = [2, *tiny_model.tokenizer.encode(text), 2]
        for start, first, stop in windows(len(ids) - 1, tiny_model.config.max_len):
            logits = tiny_model.network(torch.tensor([ids[start:stop]]))[0]
            for place in range(first, stop):
                nats -= logits[place - start].log_softmax(-1)[ids[place + 1]].item()
                tokens += 1
    assert score.tokens == tokens
    assert score.bytes == sum(len(text.encode()) for text in texts)
    assert score.nats == pytest.approx(nats, rel=1e-5)
    assert score.bits_per_byte == pytest.approx(nats / math.log(2) / score.bytes)
    assert score.perplexity == pytest.approx(math.exp(nats / tokens))


def test_the_longest_shared_passage_is_found():
    samples = ["the dog ran far away from the old mill", "nothing in common"]
    texts = ["a dog ran far away", "she saw the dog ran far from the old mill"]
    assert longest_shared_passage(samples, texts) == (4, "dog ran far away")
    assert longest_shared_passage(["a"], ["b"]) == (0, "")


def test_the_learning_rate_warms_up_stays_and_falls_to_zero():
    settings = Settings(steps=100, learning_rate=2.0, warmup_steps=10, decay_from=0.6)
    assert settings.learning_rate_at(0) == pytest.approx(0.2)
    assert settings.learning_rate_at(30) == 2.0
    assert settings.learning_rate_at(80) == pytest.approx(1.0)
    assert settings.learning_rate_at(99) == pytest.approx(0.05)


def test_a_recipe_may_say_what_its_sources_are_written_in(tmp_path):
    path = tmp_path / "r.toml"
    head = 'task = "translation"\n[model]\npreset = "pre-norm"\n[data]\nsource_text = '
    path.write_text(f'{head}"plain English"')
    (tmp_path / "train.tsv").write_text("It’s  a cat.\tC’est un chat.\n", encoding="utf-8")
    (tmp_path / "valid.tsv").write_text("It’s  a dog.\tC’est un chien.\n", encoding="utf-8")
    task = Translation(load_recipe(str(path)), str(tmp_path))
    assert task.train == [("It's a cat.", "C’est un chat.")]
    path.write_text(f'{head}"Latin"')
    with pytest.raises(
        ValueError, match="must be one of \\['plain English', 'English stories'\\]; got 'Latin'"
    ):
        load_recipe(str(path))


def test_the_bundled_translators_phases_are_the_bundled_recipes():
    told = transformer.load("translate-en-fr").metadata
    assert [phase["recipe"] for phase in told["phases"]] == [
        "translate-en-fr-base", "translate-en-fr",
    ]  # fmt: skip
    for phase in told["phases"]:
        recipe = load_recipe(phase["recipe"])
        as_recorded = json.loads(json.dumps(dataclasses.asdict(recipe.settings)))
        assert phase["settings"] == as_recorded
        assert phase["dropout"] == recipe.model["dropout"]
        assert phase["steps"] == recipe.settings.steps
    assert told["recipe"]["settings"] == told["phases"][-1]["settings"]
    base, last = (load_recipe(phase["recipe"]) for phase in told["phases"])
    network = {name: value for name, value in base.model.items() if name != "dropout"}
    assert network == {name: value for name, value in last.model.items() if name != "dropout"}
    assert base.vocab_size == last.vocab_size == told["recipe"]["vocab_size"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("task = 1", "task must be one of"),
        ("task =", "not readable TOML"),
        ("colour = 3", r"takes \['card', 'data', .*got 'colour'"),
        ('task = "language-model"\n[model]\npreset = "gpt-9"', "preset must be one of"),
        (
            'task = "translation"\n[data]\ndownlaod = "x"\n[model]\npreset = "pre-norm"',
            r"takes \['download', 'source', 'source_text', 'target'",
        ),
        (
            'task = "language-model"\n[model]\npreset = "gpt"\n[training]\nspeed = 1',
            "\\[training\\] takes .*got 'speed'",
        ),
    ],
)
def test_a_wrong_recipe_gets_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "r.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=sentence):
        load_recipe(str(path))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("e\u0301te\u0301", "été"),
        ("l’été – “oui”…", 'l\'été - "oui"...'),
        ("Ça\u00a0va\u202f?\u2009Oui!", "Ça va ? Oui !"),
        ("Quoi ?!  Non  ; si", "Quoi ?! Non ; si"),
        ("À 10:30 : «ici»", "À 10:30 : « ici »"),
        ("Voici:\u200b rien", "Voici : rien"),
    ],
)
def test_french_is_made_plain_and_stays_as_it_then_is(text, expected):
    assert plain(text, french=True) == expected
    assert plain(expected, french=True) == expected


def test_unusable_pairs_are_dropped():
    kept = ["I am 10% here.\tJe suis ici à 10%.", "one two three\tun"]
    dropped = [
        "I am 10% here.\tJe suis ici à 10%.",  # again
        "I ♥ you.\tJe t'aime.",
        "...\tRien.",
        "\tRien.",
        "a b c d e f\tun deux",
        " ".join("a" * 26) + "\t" + " ".join("b" * 26),
        " ".join("a" * 25) + "\t" + " ".join("b" * 31),
    ]
    assert clean_pairs(kept + dropped) == [tuple(line.split("\t")) for line in kept]


numbered = st.tuples(st.integers(0, 30), st.integers(0, 30), st.booleans())


@given(st.lists(numbered, min_size=1, max_size=50))
def test_no_sentence_is_in_two_splits(numbers):
    made = [
        (f"See {i}." if i % 3 == 0 else f"We see, {i}!" if loud else f"we see {i}.", f"Vu {j} ?")
        for i, j, loud in numbers
    ]
    pairs = list(dict.fromkeys([*made, ("See it, it is here.", "Vois.")]))
    groups = connected(pairs)
    usable = sum(
        len(group) <= 4 and any(len(source.split()) > 2 for source, _ in group) for group in groups
    )
    if usable < 3 or len(groups) == 3:
        with pytest.raises(ValueError, match="3 sentences to validate and test with"):
            split_pairs(pairs, n_valid=2, n_test=1)
        return
    splits = split_pairs(pairs, n_valid=2, n_test=1)
    places = {pair: name for name, part in splits.items() for pair in part}
    for group in groups:
        names = [places[pair] for pair in group if pair in places]
        assert len(set(names)) == 1
        if names[0] != "train":
            assert len(names) == 1
            assert len(group) <= 4
        else:
            assert len(names) == len(group)
    assert all(len(source.split()) > 2 for source, _ in splits["valid"] + splits["test"])
    random.Random(0).shuffle(pairs)
    again = split_pairs(pairs, n_valid=2, n_test=1)
    assert (again["valid"], again["test"]) == (splits["valid"], splits["test"])


def key(text):
    return re.sub(r"\W+", " ", text.lower()).strip()


def connected(pairs):
    """Groups by spreading from pair to pair, the slow way."""
    left, groups = set(pairs), []
    while left:
        group, new = set(), {left.pop()}
        while new:
            group |= new
            left -= new
            new = {
                pair for pair in left for other in group if any(
                    key(a) == key(b) for a, b in zip(pair, other, strict=True)
                )
            }  # fmt: skip
        groups.append(group)
    return groups
