"""Recipes, batches and scores of the training package."""

import dataclasses
import json
import math
import re
from collections import Counter
from contextlib import nullcontext

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from kit.training import ROOT

import transformer
from transformer import Tokenizer
from transformer.analysis.corpus.__main__ import main as corpus_command
from transformer.training.__main__ import main
from transformer.training.data import (
    Batches,
    Example,
    documents_of,
    lines_of,
    load_pairs,
    load_texts,
    read_documents,
    texts_of,
    windows_of,
)  # fmt: skip
from transformer.training.evaluate import longest_shared_passage, score_documents, windows
from transformer.training.recipe import RECIPES, SETTINGS, Settings, load_recipe

documents = st.lists(
    st.lists(st.integers(3, 50), min_size=2, max_size=70), min_size=1, max_size=30
)  # fmt: skip


def document_batches(rows, *, batch_tokens, seed, max_len=16):
    return Batches(
        lambda rng: [Example(row) for ids in rows for row in windows_of(ids, max_len, rng)],
        batch_tokens=batch_tokens,
        seed=seed,
    )


@given(documents, st.integers(0, 3))
def test_an_epoch_predicts_every_token_of_every_document_once(rows, epoch):
    batches = document_batches(rows, batch_tokens=64, seed=1).epoch(epoch)
    predicted = Counter(token for batch in batches for row in batch for token in row.read[1:])
    assert predicted == Counter(token for row in rows for token in row[1:])
    for batch in batches:
        widest = max(row.width for row in batch)
        assert widest <= 16
        assert len(batch) == 1 or len(batch) * widest <= 64


@given(st.integers(1, 500), st.integers(2, 60))
def test_windows_score_each_token_once_with_half_the_context_before_it(length, max_len):
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


E = "<|endoftext|>"


@pytest.mark.parametrize(
    ("content", "documents"),
    [
        (f"a\n{E}\n{E}\n{E}\nb", ["a", "b"]),
        (f"\ufeff{E}\na\n{E} \n\t{E}\n\nb\n\nc\n{E}", ["a", "b\n\nc"]),
        (f"a\r\n{E}\r\n \r\n{E}\r\n  b {E} c\r\n", ["a", f"  b {E} c"]),
        (f"a\u2028{E}\u2028b\n{E}\nc\t\x0c\n", [f"a\u2028{E}\u2028b", "c\t\x0c"]),
        ("x\n" * 1500 + f"{E}\ny\n", ["\n".join("x" * 1500), "y"]),
    ],
)
def test_end_markers_separate_documents_for_training_and_corpora(tmp_path, content, documents):
    path = tmp_path / "text.txt"
    path.write_bytes(content.encode())
    assert read_documents(path) == list(texts_of(path)) == documents
    lines = list(lines_of(path))
    for number, document in documents_of(lines):
        assert lines[number - 1] == document.split("\n")[0]


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (f"one\na{E}b\n{E}\ntwo{E}\n", read_documents),
        (f"one\n{E}a\n\n", lambda path: list(texts_of(path))),
        (f"one\tun\na{E}\tb\n", lambda path: load_pairs([path])),
        (f"one\n{E}{E}\n", lambda path: load_pairs([path, path])),
    ],
)
def test_a_marker_within_a_line_is_said_to_end_nothing(tmp_path, capsys, content, read):
    path = tmp_path / "text.txt"
    path.write_text(content, encoding="utf-8")
    for _ in range(2):  # said once, however often the file is read
        read(path)
    first, *others = capsys.readouterr().err.splitlines()
    sentence = f"{E} within a line is read as ordinary text; needed: a line of its own"
    assert first == f"{path}, line 2: {sentence}"
    assert others == [f"{path}, line 4: {sentence}"][: content.count("two")]


def test_without_markers_each_line_is_a_corpus_text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("one\n\ntwo \n", encoding="utf-8-sig")
    assert list(texts_of(path)) == ["one", "two"]
    assert read_documents(path) == ["one\n\ntwo "]
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"cannot read the text .*codec"):
        list(texts_of(path))


def test_a_byte_order_mark_is_no_text(tmp_path):
    (tmp_path / "p.tsv").write_text("a\tb\nc\td\n", encoding="utf-8-sig")
    assert load_pairs([tmp_path / "p.tsv"]) == [("a", "b"), ("c", "d")]
    for name in ("en", "fr"):
        (tmp_path / name).write_text("a\nb\n", encoding="utf-8-sig")
    assert load_pairs([tmp_path / "en", tmp_path / "fr"]) == [("a", "a"), ("b", "b")]
    text = (RECIPES / "characters.toml").read_text(encoding="utf-8")
    (tmp_path / "r.toml").write_text(text, encoding="utf-8-sig")
    assert load_recipe(str(tmp_path / "r.toml")).tokenizer == "characters"


@pytest.mark.parametrize("content", ["", "\n \n\r\n", f"{E}\n\n{E}", "\ufeff", "\ufeff\n"])
def test_a_file_without_text_is_called_empty_by_every_command(tmp_path, content, capsys):
    path, folder = tmp_path / "text.txt", tmp_path / "data"
    path.write_bytes(content.encode())
    folder.mkdir()
    for name in ("train.txt", "valid.txt", "train.tsv", "valid.tsv"):
        (folder / name).write_bytes(content.encode() if E not in content else b"")
    out = ["--out", str(tmp_path / "o")]
    for words in (
        ["stories", "--data", str(folder), *out],
        ["stories", "--data", str(path), *out],
        ["translate-en-fr", "--data", str(folder), *out],
        ["evaluate", "stories", "--data", str(path)],
        ["memorised", "stories", "--data", str(path)],
    ):
        assert main(words) == 2
        assert re.fullmatch(r"error: \S+ is empty; needed: .*\n", capsys.readouterr().err), words
    with pytest.raises(SystemExit, match=r"text\.txt is empty; needed: texts"):
        corpus_command(["stories", "--data", str(path), *out])


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


def test_a_wrong_recipe_gets_one_sentence(tmp_path):
    path, gpt = tmp_path / "r.toml", 'task = "language-model"\n[model]\npreset = "gpt"\n'
    pairs = 'task = "translation"\n[model]\npreset = "pre-norm"\n[data]\n'
    fill = 'task = "fill-in"\n[model]\npreset = "bert"\n[training]\n'
    for text, sentence in (
        ("task = 1", "task must be one of"),
        ("task =", "not readable TOML"),
        ("colour = 3", r"takes \['card', 'data', .*got 'colour'"),
        (gpt.replace("gpt", "gpt-9"), "preset must be one of"),
        (f"{gpt}[training]\nspeed = 1", "\\[training\\] takes .*got 'speed'"),
        (f'{pairs}downlaod = "x"', r"takes \['source', 'source_text', 'target'"),
        ("", "is empty; needed: a recipe"),
        (f"model = 3\n{gpt[:24]}", r"\[model\] must be a table; got 3"),
        (f"{gpt}vocab_size = 300", r"\[model\] vocab_size is set by the tok"),
        (f"{gpt}padding_id = 5", r"\[model\] padding_id must be 0"),
        (f"{gpt}dropout = 1.0", r"\[model\] dropout must be at least 0 and below 1; got 1.0"),
        (f"{gpt}[tokenizer]\nvocab_size = 100", r"vocab_size must be a whole number from 259 to"),
        (f'{gpt}[tokenizer]\nvocab_size = "big"', r"vocab_size must be .*; got 'big'"),
        (f'{gpt}[tokenizer]\nkind = "characters"\nvocab_size = 300', "vocab_size is for bpe"),
        (f"{gpt}[card]\ntitle = 3", r"\[card\] title must be a text that is not empty; got 3"),
        (f'{pairs}source = "en"', "needs source and target, or neither"),
        (
            fill + 'sample_prompts = ["A cat."]',
            r"sample_prompts of fill-in must hold \[MASK\]; got",
        ),
        (f'{pairs}source_text = "Latin"', r"must be one of \['plain English', .*; got 'Latin'"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=sentence):
            load_recipe(str(path))


INF, NAN = math.inf, math.nan
WRONG: dict[str, list[object]] = {
    "seed": ["x", -1, 1.5, True, 2**32],
    "steps": [0, "10", 10.0, True, 10**10],
    "batch_tokens": [0, "all"],
    "learning_rate": [0, -1e-3, INF, NAN, "fast", True, [1e-3], 11],
    "optimizer": ["sgd", 1, ["adamw"]],
    "betas": [[0.9], [0.9, 1.0], [0.9, -0.1], [0.9, NAN], 0.9, "0.9", [0.9, "x"], [True, 0.9]],
    "weight_decay": [-0.1, NAN, INF, "no", False],
    "warmup_steps": [-1, 0.5, "few", True],
    "decay_from": [-0.1, 1.1, NAN, "half", True],
    "clip_norm": [0, -1, -INF, NAN, "off", True],
    "label_smoothing": [-0.1, 1.0, 2.0, NAN, "some", True],
    "precision": ["float8", 16],
    "validate_every": [0, "never"],
    "validation_examples": [0, -1, True],
    "save_every": [0, 1.0],
    "sample_prompts": ["Once", [""], [1], {"a": "b"}, True],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_training_setting_that_cannot_be_meant_is_refused_by_name(tmp_path, name):
    path, gpt = tmp_path / "r.toml", 'task = "language-model"\n[model]\npreset = "gpt"\n'
    for got in WRONG[name]:
        said = f"{name} must be {SETTINGS[name].words}; got {got!r}"
        with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
            Settings(**{name: got})
        with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
            load_recipe("stories", **{name: got})
        if not isinstance(got, dict):
            path.write_text(
                f"{gpt}[training]\n{name} = {json.dumps(got)}".replace("NaN", "nan").replace(
                    "Infinity", "inf"
                )
            )
            with pytest.raises(ValueError, match=re.escape(f"{path}: [training] {said}")):
                load_recipe(str(path))
    assert WRONG.keys() == SETTINGS.keys() == {field.name for field in dataclasses.fields(Settings)}


NUMBERS = re.compile(r"(?P<kind>whole number|number)s? (?P<low>from|above) (?P<least>[\d.,]+)"
                     r"(?: (?P<high>to below|to) (?P<most>[\d.,]+))?")  # fmt: skip


@pytest.mark.parametrize(
    "name", [name for name in SETTINGS if NUMBERS.search(SETTINGS[name].words)]
)
def test_a_training_setting_is_allowed_just_where_its_words_say(name):
    """The words are those of the documents' table."""
    words = NUMBERS.search(SETTINGS[name].words)
    least, most = (float((words[end] or "inf").replace(",", "")) for end in ("least", "most"))
    whole = words["kind"] == "whole number"
    wrap = (lambda value: [value, 0]) if name == "betas" else (lambda value: value)

    def steps(value: float) -> list[float]:
        if whole:
            return [int(value) - 1, int(value), int(value) + 1]
        return [math.nextafter(value, -math.inf), value, math.nextafter(value, math.inf)]

    is_allowed = [words["low"] == "from", True]
    assert [SETTINGS[name].fits(wrap(value)) for value in steps(least)] == [False, *is_allowed]
    if most < math.inf:
        is_allowed = [True, words["high"] == "to", False]
        assert [SETTINGS[name].fits(wrap(value)) for value in steps(most)] == is_allowed
    for wrong in (True, "1", None, math.nan, *([2.5] if whole else [])):
        assert not SETTINGS[name].fits(wrap(wrong))


def test_a_recipes_vocabulary_holds_at_least_every_byte_and_special_token(tmp_path):
    """As the tokenizer itself does."""
    path = tmp_path / "r.toml"
    text = 'task = "language-model"\n[model]\npreset = "gpt"\n[tokenizer]\nvocab_size = '
    for size, is_allowed in ((258, False), (259, True), (1_000_000, True), (1_000_001, False)):
        path.write_text(f"{text}{size}")
        says = rf"must be a whole number from 259 to 1,000,000; got {size}"
        with nullcontext() if is_allowed else pytest.raises(ValueError, match=says):
            assert load_recipe(str(path)).vocab_size == size
    assert Tokenizer.train(["a"], 259).vocab_size == 259
    with pytest.raises(ValueError, match="vocab_size must be at least 259; got 258"):
        Tokenizer.train(["a"], 258)


def test_the_table_of_settings_in_the_documents_is_the_one_that_is_checked():
    text = (ROOT / "docs" / "training" / "settings.md").read_text(encoding="utf-8")
    for field in dataclasses.fields(Settings):
        default = json.dumps(field.default)
        assert f"| `{field.name}` | {default} | {SETTINGS[field.name].words} |" in text


def test_the_bundled_translator_was_trained_by_the_bundled_recipes():
    for phase in transformer.load("translate-en-fr").metadata["phases"]:
        recipe = load_recipe(phase["recipe"])
        assert phase["settings"] == json.loads(json.dumps(dataclasses.asdict(recipe.settings)))
        assert phase["dropout"] == recipe.model["dropout"]


def test_a_single_file_is_cut_into_text_to_train_and_to_validate(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"line {n}\n" for n in range(100)), encoding="utf-8")
    (train,), (valid,) = load_texts(str(path))
    assert f"{train}\n{valid}\n" == path.read_text()
    assert len(train) == pytest.approx(0.9 * len(path.read_text()), abs=10)
    path.write_text("".join(f"line {n}\n<|endoftext|>\n" for n in range(20)), encoding="utf-8")
    assert [len(part) for part in load_texts(str(path))] == [18, 2]
    path.write_text("a single line", encoding="utf-8")
    with pytest.raises(ValueError, match="too short to train and to validate with; needed: more"):
        load_texts(str(path))
