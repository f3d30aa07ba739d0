"""Training and scoring translation; the tutorials' networks learn what shapes cannot show."""

from __future__ import annotations

import random

import pytest
import torch
import torch.nn.functional as F

import transformer
from transformer.inference.beam import beam_search
from transformer.inference.generation import pad
from transformer.model.config import PRESETS
from transformer.model.transformer import EncoderDecoder, build_transformer
from transformer.training.__main__ import main
from transformer.training.data import read_pairs
from transformer.training.evaluate import score_pairs
from transformer.training.translate import score_translations, translate

RECIPE = """
task = "translation"
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
    run = model.generate("two dog", max_new_tokens=20)
    assert run.text == "deux chien"
    assert run.trace.weights("decoder", "cross").shape[-1] == len(run.source_ids)


def test_the_command_prints_bleu_with_its_signature(trained, capsys):
    assert main(["evaluate", str(trained / "o"), "--data", str(trained / "valid.tsv")]) == 0
    printed = capsys.readouterr().out
    assert "BLEU" in printed
    assert "tok:13a" in printed
    assert "chrF 100.00" in printed
    assert "beam 4: 16 sentences" in printed


def test_scores_compare_with_the_references(trained):
    model = transformer.load(trained / "o")
    right = score_translations(model, PAIRS)
    swapped = score_translations(model, [(source, "un arbre") for source, _ in PAIRS])
    assert right.chrf == pytest.approx(100)
    assert swapped.chrf < 60


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


@pytest.mark.parametrize("line", ["no tab", "a\tb\tc", "\tb", "a\t"])
def test_a_line_that_is_no_pair_is_named(tmp_path, line):
    path = tmp_path / "train.tsv"
    path.write_text(f"a\tb\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2: needed: a source, a tab, a target"):
        read_pairs(path)


ENCODER_DECODERS = [n for n, p in PRESETS.items() if p["family"] == "encoder-decoder"]
START, END, FIRST, SYMBOLS, LONGEST = 1, 2, 3, 8, 7


def sequences(rng, count):
    return [
        [rng.randrange(FIRST, FIRST + SYMBOLS) for _ in range(rng.randint(2, LONGEST))]
        for _ in range(count)
    ]


def fit(network, change, *, steps, rate):
    """Teach network to map a sequence to change(sequence)."""
    rng = random.Random(0)
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, betas=(0.9, 0.98))
    network.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1, (step + 1) / 50) * min(1, 2 * (1 - step / steps))
        rows = sequences(rng, 64)
        source = pad([[*row, END] for row in rows], 0)
        target = pad([[START, *change(row), END] for row in rows], 0)
        logits = network(source, target[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    network.eval()


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODER_DECODERS)
@pytest.mark.parametrize("change", [list, lambda row: row[::-1]], ids=["copy", "reverse"])
def test_every_tutorial_network_learns_to_copy_and_to_reverse(name, change):
    torch.manual_seed(0)
    network = build_transformer(
        name, vocab_size=FIRST + SYMBOLS, d_model=48, n_heads=4, n_layers=2, d_ff=96, max_len=16,
        dropout=0.0,
    )  # fmt: skip
    assert isinstance(network, EncoderDecoder)
    fit(network, change, steps=400, rate=3e-3)
    rows = sequences(random.Random(1), 300)  # as good as never seen: 8 symbols, up to 7 places
    found = beam_search(
        network, [[*row, END] for row in rows], start_id=START, end_id=END, beams=1,
        max_new_tokens=LONGEST + 1,
    )  # fmt: skip
    right = sum(
        list(result.hypotheses[0].ids) == [*change(row), END]
        for row, result in zip(rows, found, strict=True)
    )
    assert right > 0.99 * len(rows)
