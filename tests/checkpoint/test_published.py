"""Models as they are published, with their special tokens and odd keys."""

import json
import math
import shutil

import pytest
import torch
from kit.hf_folders import PUBLISHED, change, publish

import transformer
from transformer.analysis.logit_lens import text_cost
from transformer.model.network import IGNORED
from transformer.training.evaluate import score_documents, score_pairs, scored
from transformer.training.mlm import hidden_places, score_hidden

pytestmark = pytest.mark.filterwarnings("ignore")
TEXTS = ["The black cat is sleeping on the bed", "The cat"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return publish(tmp_path_factory.mktemp("published"))


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_is_read_in_a_batch_as_transformers_reads_it_alone(name, folders):
    folder, theirs = folders[name]
    model = transformer.load(folder)
    theirs.set_attn_implementation("eager")
    batch, two = model.trace(TEXTS), model.config.family == "encoder-decoder"
    lengths = batch.padding.sum(dim=1).tolist()
    assert lengths[0] != lengths[1]
    stack = "encoder" if two else model.config.family
    for row, length in enumerate(lengths):
        assert all("pad" in label.lower() for label in batch.labels[row][length:])
        read = batch.ids[[row], :length]
        target_ids = {"decoder_input_ids": read[:, :1]} if two else {}
        with torch.no_grad():
            said = theirs(read, output_attentions=True, **target_ids)
        wanted = torch.stack(said.encoder_attentions if two else said.attentions)
        found = batch.trace.weights(stack)[:, [row]]
        torch.testing.assert_close(found[..., :length, :length], wanted, atol=1e-5, rtol=1e-4)
        assert (found[..., :length, length:] == 0).all()
    if two:
        run = model.generate(TEXTS[1], max_new_tokens=5, beams=2)
        assert (run.source_labels[-1], run.labels[0]) == ("</s>", "<pad>")
        assert not run.text.startswith(" ")
        assert model.translate_batch(TEXTS, max_new_tokens=5).target_padding[:, 0].all()
    elif model.config.family != "encoder":
        assert 1 <= len(model.generate(TEXTS[1], max_new_tokens=5).steps) <= 5
    else:
        assert len(model.fill("The [MASK] is sleeping", 3).guesses[0]) == 3


ENCODERS = ("bert", "distilbert", "roberta", "modernbert")


@pytest.mark.parametrize("name", ENCODERS)
def test_special_tokens_are_those_of_the_tokenizer_under_any_name(name, folders):
    """Those that transformers' tokenizer of the folder calls special; a mask is looked at first."""
    from transformers import AutoTokenizer

    folder, _ = folders[name]
    model, theirs = transformer.load(folder), AutoTokenizer.from_pretrained(folder)
    hidden = model.trace("The [MASK] is on the bed.")
    assert hidden.ids[2] == theirs.mask_token_id == model.tokenizer.mask_id
    assert model.last_read(hidden) == 2
    assert model.trace(f"The {theirs.mask_token} is on the bed.").ids == hidden.ids
    plain = model.trace("The cat is on the bed.")
    assert model.last_read(plain) == 1
    for run in (hidden, plain):
        special = [at for at, index in enumerate(run.ids) if index in theirs.all_special_ids]
        assert run.special_positions() == {"special": special, "source_special": []}
        assert transformer.from_json(run.to_json()).special_ids == run.special_ids


@pytest.mark.parametrize("place", ["tokenizer_config.json", "special_tokens_map.json"])
def test_a_mask_is_the_token_that_the_folder_names(place, folders, tmp_path):
    folder = shutil.copytree(folders["bert"][0], tmp_path / "bert")
    (folder / "special_tokens_map.json").unlink(missing_ok=True)
    text = (folder / "tokenizer.json").read_text(encoding="utf-8")
    (folder / "tokenizer.json").write_text(text.replace("[MASK]", "<blank>"), encoding="utf-8")
    change(folder / "tokenizer_config.json", mask_token=None)
    assert transformer.load(folder).tokenizer.mask_id is None
    content = {"mask_token": "<blank>" if place.startswith("special") else {"content": "<blank>"}}
    (folder / place).write_text(json.dumps(content), encoding="utf-8")
    model = transformer.load(folder)
    run = model.trace("The [MASK] is sleeping")
    assert (run.labels[2], run.ids[2]) == ("<blank>", model.tokenizer.mask_id)
    model.save(tmp_path / "saved")
    assert transformer.load(tmp_path / "saved").trace("The <blank> is sleeping").ids == run.ids


@pytest.mark.parametrize(
    ("name", "typed", "warning"),
    [
        ("bert", "The cat [SEP] <|im_start|>user", "not as a special token: [SEP] <|im_start|>."),
        ("bert", "The [MASK] is", None),
        ("roberta", "The <mask> is </s>", "not as a special token: </s>."),
        ("gpt2", "a [MASK] of <|endoftext|>", "not as a special token: [MASK] <|endoftext|>."),
        ("qwen2", "<|im_start|>user", "not as a special token: <|im_start|>."),
        ("llama-2", "a < b and [1] </s>", "not as a special token: </s>."),
        ("marian", "The </s> cat", "not as a special token: </s>."),
        ("gpt2", "a < b, [x] and <b>", None),
    ],
)
def test_a_special_tokens_name_in_a_text_gets_a_warning(name, typed, warning, folders):
    model = transformer.load(folders[name][0])
    read = model.trace if model.config.family == "encoder" else model.generate
    run = read(typed, **{"max_new_tokens": 1} if read == model.generate else {})
    assert run.warnings == (() if warning is None else (f"Read as ordinary text, {warning}",))
    names = (warning or ":").partition(":")[2].removesuffix(".").split()
    assert not {*names} & {*run.labels[1:-1]}  # no token of that name was put in


def test_an_added_token_in_a_text_gets_a_warning(folders, tmp_path):
    folder = shutil.copytree(folders["qwen2"][0], tmp_path / "qwen2")
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    for one in content["added_tokens"]:
        one["special"] = one["content"] != "<|im_start|>"
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    run = transformer.load(folder).generate("<|im_start|>user", max_new_tokens=1)
    assert "<|im_start|>" in run.labels[: run.n_prompt]
    assert run.warnings == ("Read as a token of the model, not as ordinary text: <|im_start|>.",)


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_is_scored_in_the_frame_and_to_the_loss_of_transformers(name, folders):
    import transformers

    folder, theirs = folders[name]
    model = transformer.load(folder)
    if name == "marian":
        files = [str(folder / file) for file in ("source.spm", "target.spm", "vocab.json")]
        fast = transformers.MarianTokenizer(*files)
    else:
        fast = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    for text in TEXTS:
        if name == "marian":
            target = "Le chat noir dort"
            read = dict(fast(text, text_target=target, return_tensors="pt"))
            found = score_pairs(model, [(text, target)])
        elif name == "t5":
            target = "Le chat noir dort"
            read = dict(
                fast(text, return_tensors="pt"), labels=fast(target, return_tensors="pt").input_ids
            )
            found = score_pairs(model, [(text, target)])
        elif model.config.family == "encoder":
            (row,) = hidden_places(model.tokenizer, [text], model.config.max_len)
            ids, labels = torch.tensor([row.read]), torch.tensor([row.wanted])
            whole = torch.where(labels == IGNORED, ids, labels)
            assert whole.tolist() == [fast(text)["input_ids"]]
            assert not set(labels.unique().tolist()) & set(fast.all_special_ids)
            read = {"input_ids": ids, "labels": labels}
            found = score_hidden(model, model.tokenizer, [text], model.config.max_len)
        else:
            ids = fast(text, return_tensors="pt")["input_ids"]
            read = {"input_ids": ids, "labels": ids}
            found = score_documents(model, [text])
            free = fast.decode(ids[0, :1], skip_special_tokens=True)
            assert found.bytes == len(text) - len(free)
        with torch.no_grad():
            loss = theirs(input_ids=read["input_ids"], labels=read["labels"]).loss.item()
        assert found.loss == pytest.approx(loss, abs=1e-4)
    if model.config.family == "encoder":  # which would read padding, were it not hidden
        rows = hidden_places(model.tokenizer, TEXTS, model.config.max_len)
        alone = sum(scored(model, [row], TEXTS).nats for row in rows)
        assert scored(model, rows, TEXTS).nats == pytest.approx(alone, rel=1e-5)
    if name == "gpt2":
        with pytest.raises(ValueError, match="the text is too short"):
            score_documents(model, ["a"])


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_text_costs_the_bits_of_what_is_predicted_over_its_bytes(name, folders):
    model = transformer.load(folders[name][0])
    if model.config.family == "encoder":
        with pytest.raises(ValueError, match="is an encoder: it reads text but"):
            text_cost(model, model.trace("The cat"), "The cat")
        return
    if model.config.family == "encoder-decoder":
        (ids,) = model.tokenizer.encode_targets(["Le chat"])
        forced = [*ids, model.tokenizer.end_id]
        run = model.generate("The cat", max_new_tokens=len(forced), forced_tokens=forced)
        found = text_cost(model, run, "Le chat")
        assert found.total_bits == pytest.approx(
            score_pairs(model, [("The cat", "Le chat")]).nats / math.log(2), rel=1e-4
        )
        assert found.n_bytes == len("Le chat")
        return
    found = text_cost(model, model.trace("The cat"), "The cat")
    wanted = score_documents(model, ["The cat"])
    assert found.total_bits == pytest.approx(wanted.nats / math.log(2), rel=1e-4)
    assert (found.n_bytes, found.bits_per_byte) == (
        wanted.bytes, pytest.approx(wanted.bits_per_byte, rel=1e-4),
    )  # fmt: skip
    assert found.perplexity == pytest.approx(wanted.perplexity, rel=1e-3)
    if model.tokenizer.encode("a", special=True) == model.tokenizer.encode(
        "a"
    ):  # nothing comes before a text
        assert found.n_bytes < len("The cat")
        with pytest.raises(ValueError, match="the text is too short"):
            text_cost(model, model.trace("a"), "a")
    else:
        assert text_cost(model, model.trace("a"), "a").n_bytes == 1
