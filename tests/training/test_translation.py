"""Training and scoring translation."""

import pytest
import torch
import torch.nn.functional as F

import transformer
from transformer.training.__main__ import main
from transformer.training.data import read_pairs
from transformer.training.evaluate import (
    moses,
    score_pairs,
    score_translations,
    tokenised_bleu,
    translate,
)

pytestmark = pytest.mark.slow

RECIPE = """
task = "translation"
[data]
source_text = "plain English"
[tokenizer]
vocab_size = 300
[model]
preset = "pre-norm"
d_model = 48
n_heads = 4
n_layers = 2
d_ff = 96
max_len = 24
dropout = 0.0
tie_embeddings = true
share_embeddings = true
head_bias = false
[training]
steps = 160
batch_tokens = 200
learning_rate = 6e-3
warmup_steps = 10
label_smoothing = 0.05
validate_every = 160
sample_prompts = ["one cat"]
"""

NUMBERS = {"one": "un", "two": "deux", "three": "trois", "four": "quatre"}
THINGS = {"cat": "chat", "dog": "chien", "tree": "arbre", "bird": "oiseau"}
PAIRS = [(f"{n} {t}", f"{NUMBERS[n]} {THINGS[t]}") for n in NUMBERS for t in THINGS]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("translation")
    text = "".join(f"{source}\t{target}\n" for source, target in PAIRS)
    for name in ("train.tsv", "valid.tsv"):
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "tiny.toml").write_text(RECIPE, encoding="utf-8")
    arguments = [str(folder / "tiny.toml"), "--data", str(folder), "--out", str(folder / "o")]
    assert main([*arguments, "--cpu"]) == 0
    return folder


def test_a_translator_learns_its_pairs(trained):
    model = transformer.load(trained / "o")
    sources = [source for source, _ in PAIRS]
    expected = [target for _, target in PAIRS]
    assert translate(model, sources) == expected
    assert translate(model, sources, beams=3) == expected
    run = model.generate("two  dog\n", max_new_tokens=20)
    assert run.read_as == "two dog"
    assert run.text == "deux chien"
    assert run.trace.weights("decoder", "cross").shape[-1] == len(run.source_ids)


@pytest.mark.parametrize("beams", [1, 3])
def test_sentences_come_back_in_their_order_however_they_are_put_together(
    tiny_encoder_decoder, monkeypatch, beams
):
    # Few of them end before.
    monkeypatch.setattr("transformer.training.evaluate.MAX_EXTRA_TOKENS", 1)
    sentences = ["The fox said hello.", "A", "Le renard", "b!", "The forest was quiet", "é"]
    found = translate(tiny_encoder_decoder, sentences, beams=beams)
    assert len(set(found)) > 1
    monkeypatch.setattr("transformer.training.evaluate.ROWS_AT_ONCE", 2 * beams)
    assert translate(tiny_encoder_decoder, sentences[::-1], beams=beams) == found[::-1]


def test_scores_compare_with_the_references(trained):
    model = transformer.load(trained / "o")
    right = score_translations(model, PAIRS)
    swapped = score_translations(model, [(source, "un arbre") for source, _ in PAIRS])
    twice = score_translations(model, [(source, f"{to} {to}") for source, to in PAIRS])
    assert swapped.chrf < 60 < right.chrf == pytest.approx(100)
    assert [right.length_ratio, twice.length_ratio] == pytest.approx([1.0, 0.5])


def test_the_command_prints_bleu_of_tokenised_text_too(trained, capsys):
    arguments = ["evaluate", str(trained / "o"), "--data", str(trained / "valid.tsv")]
    assert main([*arguments, "--tokenised", "--language", "fr", "--beams", "5"]) == 0
    printed = capsys.readouterr().out
    assert "beam 5, length penalty 1: 16 sentences" in printed
    for part in ("tok:13a", "tok:none", "Moses rules for fr (sacremoses ", "length 1.0"):
        assert printed.count(part) == 2  # greedy and with beams
    assert main([*arguments, "--tokenised", "--language", "tlh"]) == 2
    assert "must be one that has Moses rules; got 'tlh'; allowed: [" in capsys.readouterr().err
    assert main([*arguments, "--tokenised"]) == 2
    assert "the recipe of o names none; give --language" in capsys.readouterr().err


def test_text_is_lower_cased_normalised_and_tokenised_by_moses_rules():
    for language, text, expected in (
        ("fr", "Le chien court dans l’herbe, d'un T", "le chien court dans l' herbe , d' un t"),
        ("fr", "«\u00a0Ça va\u202f?\u00a0»", '" ça va ? "'),
        ("en", "The dog's bone isn't here.", "the dog 's bone isn 't here ."),
        ("de", "Etwa ca. 120 cm – „schön“!", 'etwa ca. 120 cm - " schön " !'),
    ):
        assert moses([text], language) == [expected]


def test_tokenised_bleu_counts_the_tokens_of_moses():
    same, signature = tokenised_bleu(["Le chat, là-bas, DORT ."], ["le Chat , là-bas, dort."], "fr")
    assert same == pytest.approx(100)
    assert "tok:none" in signature
    # Of five tokens the last is wrong: 4/5 words, 3/4 pairs, 2/3 triples, 1/2 quadruples are right.
    score, _ = tokenised_bleu(["Un chat dort là."], ["un chat dort là !"], "fr")
    assert score == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)


def test_the_loss_of_pairs_is_that_of_each_pair_alone(tiny_encoder_decoder):
    model, tokenizer = tiny_encoder_decoder, tiny_encoder_decoder.tokenizer
    pairs = [("The cat.", "Le chat."), ("A dog ran", "Un chien a couru 😀")]
    nats = 0.0
    for source, target in pairs:
        ids = [tokenizer.start_id, *tokenizer.encode(target), tokenizer.end_id]
        logits = model.network(
            torch.tensor([[*tokenizer.encode(source), tokenizer.end_id]]), torch.tensor([ids[:-1]])
        )
        nats += F.cross_entropy(logits[0], torch.tensor(ids[1:]), reduction="sum").item()
    assert score_pairs(model, pairs).nats == pytest.approx(nats, rel=1e-4)


def test_a_line_that_is_no_pair_is_named(tmp_path):
    path = tmp_path / "train.tsv"
    for line in ("no tab", "a\tb\tc", "\tb", "a\t"):
        path.write_text(f"a\tb\n{line}\n", encoding="utf-8")
        with pytest.raises(ValueError, match="line 2: needed: a source, a tab, a target"):
            read_pairs(path)
