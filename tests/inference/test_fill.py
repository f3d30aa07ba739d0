"""Filling in hidden words, against transformers' BERT and by hand."""

import itertools
import re
from pathlib import Path
from random import Random

import pytest
import torch
from kit.hf_folders import word_piece, write
from kit.models import tiny
from kit.training import recipe, written

import transformer
from transformer import Ablate, EditMask, Model, Tokenizer
from transformer.analysis.corpus import summary_of
from transformer.analysis.masked_token import masked_token
from transformer.inference.fill import MAX_CANDIDATES
from transformer.interventions.hooks import hooks_of
from transformer.model.network import IGNORED
from transformer.tokenizer import MASK, hidden_ids
from transformer.training.__main__ import main
from transformer.training.mlm import Hiding, Words, hidden_places, score_hidden
from transformer.training.tasks import passages

ROOT = Path(__file__).resolve().parents[2]
STORY = 'Tom had a dog. "Run!" said Tom. The dog ran up the hill and Tom ran after the dog.'


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train([STORY] * 3, 300).with_mask()


@pytest.fixture(scope="module")
def model(tokenizer) -> Model:
    return tiny("tiny", "encoder", tokenizer, n_layers=1, max_len=64, norm="post")


@pytest.fixture(scope="module")
def decoder() -> Model:
    return tiny("left", "decoder", Tokenizer.train([STORY] * 3, 300), max_len=64)


def test_the_mask_is_one_more_id_and_no_text_of_a_visitor(tokenizer, tmp_path):
    plain = Tokenizer.train([STORY] * 3, 300)
    assert plain.mask_id is None
    assert tokenizer.mask_id == plain.vocab_size == tokenizer.vocab_size - 1
    assert tokenizer.with_mask() is tokenizer
    assert tokenizer.label(tokenizer.mask_id) == MASK
    assert tokenizer.encode(f"a {MASK}") == plain.encode(f"a {MASK}")
    tokenizer.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert again.mask_id == tokenizer.mask_id
    assert again.labels(range(again.vocab_size)) == tokenizer.labels(range(again.vocab_size))


def test_a_hidden_word_includes_the_space_before_it(tokenizer):
    ids = hidden_ids(tokenizer, "The [MASK] ran up [MASK].")
    pieces = ["The", " ran up", "."]
    wanted = [tokenizer.end_id]
    for piece, mask in zip(pieces, (True, True, False), strict=True):
        wanted += [*tokenizer.encode(piece), *([tokenizer.mask_id] if mask else [])]
    assert ids == wanted
    assert hidden_ids(tokenizer, "The [mask] ran up 【 Mask 】.") == wanted  # as phones type it
    assert hidden_ids(tokenizer, "The dog") == tokenizer.encode("The dog", special=True)
    plain = Tokenizer.train([STORY] * 3, 300)  # one that hides nothing reads what is written
    assert hidden_ids(plain, "The [MASK]") == plain.encode("The [MASK]", special=True)


def test_a_bert_fills_in_the_same_as_transformers(tmp_path):
    import transformers

    folder = tmp_path / "bert"
    theirs = write(folder, "bert", tokenizer=word_piece)
    reader = transformers.AutoTokenizer.from_pretrained(folder)
    text = "the [MASK] ran to the [MASK] ."
    read = reader(text, return_tensors="pt")
    with torch.inference_mode():
        logits = theirs(**read).logits[0]
    places = (read.input_ids[0] == reader.mask_token_id).nonzero()[:, 0].tolist()
    found = transformer.load(folder).fill(text, n_best=3)
    assert list(found.ids) == read.input_ids[0].tolist()
    assert list(found.positions) == places
    for place, guesses in zip(places, found.guesses, strict=True):
        best = logits[place].softmax(dim=-1).topk(3)
        assert [one.id for one in guesses] == best.indices.tolist()
        assert [one.probability for one in guesses] == pytest.approx(best.values.tolist(), abs=1e-5)


@pytest.mark.parametrize(
    ("text", "n_best", "sentence"),
    [
        ("The dog", 5, r"must hold \[MASK\]; got 'The dog'"),
        ("[MASK]" * 70, 5, "71 tokens long; tiny reads at most 64"),
        ("The [MASK]", 0, f"n_best must be a whole number from 1 to {MAX_CANDIDATES}; got 0"),
        ("The [MASK]", True, "n_best must be a whole number"),
    ],
)
def test_mistakes_get_a_sentence(model, decoder, text, n_best, sentence):
    with pytest.raises(ValueError, match=sentence):
        model.fill(text, n_best=n_best)
    unmasked = tiny("bare", "encoder", decoder.tokenizer, n_layers=1, max_len=64)
    for other, family in ((decoder, "left is decoder"), (unmasked, "bare is encoder")):
        with pytest.raises(ValueError, match=f"only an encoder alone .* {family}"):
            other.fill("The [MASK]")


def test_the_text_contains_the_likeliest_token_of_each_mask(model):
    found = model.fill("The [MASK] ran up [MASK].", n_best=4)
    first, second = (place[0] for place in found.guesses)
    assert found.text == f"The{first.text} ran up{second.text}."


def test_a_token_is_predicted_with_and_without_its_right_context(model):
    run = model.trace("The dog ran up the hill")
    place = 2
    found = masked_token(model, run, place)
    mask = model.tokenizer.mask_id
    whole = [*run.ids[:place], mask, *run.ids[place + 1 :]]
    with torch.inference_mode():
        both = model.network(torch.tensor([whole]))[0, place].softmax(dim=-1)
        left = model.network(torch.tensor([whole[: place + 1]]))[0, place].softmax(dim=-1)
    assert found.probabilities == pytest.approx(both[list(found.ids)].tolist(), abs=1e-6)
    assert found.from_left == pytest.approx(left[list(found.ids)].tolist(), abs=1e-6)
    assert run.ids[place] in found.ids
    assert found.ids[:8] == tuple(both.topk(8).indices.tolist())
    assert set(left.topk(3).indices.tolist()) <= set(found.ids)
    assert len(set(found.ids)) == len(found.ids)


def test_a_hidden_token_is_predicted_by_the_network_as_the_run_altered_it(model):
    for alteration in (Ablate("encoder", 0), EditMask("encoder", forbid=[(2, 5), (5, 2)])):
        run = model.trace("The [MASK] ran up the hill", interventions=[alteration])
        place = run.ids.index(model.tokenizer.mask_id)
        found = masked_token(model, run, place)
        last = run.trace.residuals["encoder"][-1]
        said = model.network.project(model.network.encoder.end(last))[0, place].softmax(dim=-1)
        assert found.probabilities == pytest.approx(said[list(found.ids)].tolist(), abs=1e-5)


def test_what_ends_every_text_of_a_bert_ends_its_left_side_too(tmp_path):
    write(tmp_path / "bert", "bert", tokenizer=word_piece)
    bert = transformer.load(tmp_path / "bert")
    run = bert.trace("the dog ran to the hill")
    found = masked_token(bert, run, 2)
    left = [*run.ids[:2], bert.tokenizer.mask_id, run.ids[-1]]
    with torch.inference_mode():
        chances = bert.network(torch.tensor([left]))[0, 2].softmax(dim=-1)
    assert found.from_left == pytest.approx(chances[list(found.ids)].tolist(), abs=1e-6)


def test_what_silence_costs_is_the_rise_of_the_loss(model, decoder):
    """Of a decoder at every token, of an encoder at every seventh, which is hidden."""
    for one, places in ((decoder, slice(1, None)), (model, slice(3, None, 7))):
        ids, stack = torch.tensor([one.trace(STORY).ids]), one.config.family
        read = ids.clone() if one is model else ids[:, :-1]
        if one is model:
            read[:, places] = model.tokenizer.mask_id

        def loss(*silenced, one=one, ids=ids, read=read, places=places):
            with torch.inference_mode():
                logits = one.network(read, hooks=hooks_of(silenced, one.config))[0]
            logits = logits[places] if one is model else logits
            return float(torch.nn.functional.cross_entropy(logits, ids[0, places]))

        found = summary_of(one, STORY, 2, ablate=True).kinds[f"{stack}.self"]
        for layer, head in itertools.product(range(one.config.n_layers), range(2)):
            rise = loss(Ablate(stack, layer, heads=[head])) - loss()
            assert abs(rise) > 1e-5
            assert found.cost[layer, head] / 1e6 == pytest.approx(rise, abs=3e-6)
        assert int(found.n_costs) == 1
        assert int(summary_of(one, STORY, 2).kinds[f"{stack}.self"].n_costs) == 0


def test_words_are_whole(tokenizer):
    ids = tokenizer.encode("Don't run, unbelievable Tom! 3pm é", special=True)
    texts = [tokenizer.decode([ids[place] for place in word]) for word in Words(tokenizer).of(ids)]
    assert "".join(texts) == "Don't run, unbelievable Tom! 3pm é"
    assert [text.strip() for text in texts] == [
        "Don", "'", "t", "run", ",", "unbelievable", "Tom", "!", "3pm", "é",
    ]  # fmt: skip


def test_words_are_hidden_eighty_ten_ten(tokenizer):
    hiding, ids = Hiding(tokenizer, 0.25), tokenizer.encode(STORY, special=True)
    words, rng = Words(tokenizer).of(ids), Random(0)
    masked = kept = changed = total = 0
    for _ in range(2000):
        read, wanted, _ = hiding.hide(ids, rng)
        hidden = {place for place, target in enumerate(wanted) if target != IGNORED}
        assert all(wanted[place] == ids[place] for place in hidden)
        assert all(read[place] == ids[place] for place in range(len(ids)) if place not in hidden)
        assert all(hidden.issuperset(word) or hidden.isdisjoint(word) for word in words)
        total += len(hidden)
        masked += sum(read[place] == tokenizer.mask_id for place in hidden)
        kept += sum(read[place] == ids[place] for place in hidden)
        changed += sum(read[place] not in (ids[place], tokenizer.mask_id) for place in hidden)
        assert len(hidden) >= 0.25 * (len(ids) - 1) - 1
    assert masked / total == pytest.approx(0.8, abs=0.02)
    assert kept / total == pytest.approx(0.1, abs=0.02)
    assert changed / total == pytest.approx(0.1, abs=0.02)


def test_measuring_hides_the_same_places_for_both_directions(model, decoder, tokenizer):
    documents, right = [STORY, "The dog ran. " * 40], {"tiny": 0, "left": 0}
    rows = hidden_places(tokenizer, documents, 64)
    assert rows == hidden_places(tokenizer, documents, 64)
    places = sum(target != IGNORED for _, wanted, _ in rows for target in wanted)
    tokens = sum(len(ids) - 1 for ids, *_ in rows)
    assert places / tokens == pytest.approx(0.15, abs=0.05)
    for ids, wanted, _ in rows:
        text = [true if true != IGNORED else read for read, true in zip(ids, wanted, strict=True)]
        for place, true in enumerate(wanted):
            if true == IGNORED:
                continue
            assert ids[place] == tokenizer.mask_id
            with torch.inference_mode():
                both = model.network(torch.tensor([ids]))[0, place]
                left = decoder.network(torch.tensor([text[:place]]))[0, -1]
            right["tiny"] += int(both.argmax()) == true
            right["left"] += int(left.argmax()) == true
    for one in (model, decoder):
        found = score_hidden(one, tokenizer, documents, 64)
        assert (found.right, found.tokens, found.documents) == (right[one.name], places, 2)


def test_passages_are_the_document_cut_between_sentences():
    cut = [passages(STORY, Random(seed)) for seed in range(40)]
    assert any(one == [STORY] for one in cut)
    assert any(len(one) > 2 for one in cut)
    assert all(" ".join(one) == STORY for one in cut)


@pytest.mark.slow
def test_an_encoder_learns_to_fill_in_by_the_lines_of_the_document(tmp_path, capsys):
    """It begins with a decoder's weights, finds what it was shown often, and its card says so."""
    root, left, both = tmp_path, tmp_path / "left.toml", tmp_path / "both.toml"
    written(root, [STORY] * 8, [STORY] * 8)
    recipe(root, steps=20, dropout=0.0, rate=1e-2, every=50)
    text = (root / "tiny.toml").read_text(encoding="utf-8").replace("max_len = 24", "max_len = 64")
    left.write_text(text)
    text = (
        text.replace("language-model", "fill-in")
        .replace('"The"', '"The [MASK]"')
        .replace("[tokenizer]\nvocab_size = 300\n", "")
    )
    both.write_text(text.replace('preset = "gpt"', 'preset = "gpt"\nfamily = "encoder"'))
    command = [str(left), "--data", str(root), "--out", str(root / "left")]
    assert main([*command, "--cpu"]) == 0
    own = {
        "fill-in": str(both), "FOLDER": str(root), "FOLDER/valid.txt": str(root / "valid.txt"),
        "stories": str(root / "left"), "checkpoints/filling": str(root / "both"),
    }  # fmt: skip
    document = (ROOT / "docs" / "training" / "encoder.md").read_text(encoding="utf-8")
    lines = re.findall(r"(?m)^python -m transformer.training (.*checkpoints/filling.*)$", document)
    training, evaluating = ([own.get(word, word) for word in line.split()] for line in lines)
    assert main([*training, "--steps", "150", "--checkpoints", "4", "--cpu"]) == 0
    start, learned = transformer.load(root / "left"), transformer.load(root / "both")
    assert learned.tokenizer.vocab_size == start.tokenizer.vocab_size + 1
    scores = learned.metadata["scores"]["valid"]
    assert scores["top_1"] > 0.8
    assert f"| valid | {scores['top_1']:.2%} |" in (root / "both" / "README.md").read_text()
    kept = sorted((root / "both" / "training" / "checkpoints").iterdir())
    assert [one.name for one in kept] == ["000000", "000010", "000039", "000150"]
    first, last = transformer.load(kept[0]), transformer.load(kept[-1])
    assert first.metadata["validation"]["loss"] > last.metadata["validation"]["loss"] + 2
    for name, weight in start.network.state_dict().items():
        given = first.network.state_dict()[name.replace("decoder.", "encoder.")]
        assert torch.equal(given[: len(weight)], weight), name
    assert learned.fill(STORY.replace(" dog ran", " [MASK] ran")).text == STORY
    capsys.readouterr()
    assert main(evaluating) == 0
    _, *printed = capsys.readouterr().out.splitlines()
    texts = [STORY] * 8
    for line, one, sides in zip(printed, (learned, start), ("both sides", "the left"), strict=True):
        found = score_hidden(one, learned.tokenizer, texts, 64)
        assert line.startswith(f"{one.name}, from {sides}")
        numbers = f"{found.top_1:.2%} found, {found.loss:.4f} nats a masked token"
        assert line.endswith(f": {numbers}")
