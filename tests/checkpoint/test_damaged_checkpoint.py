"""What a checkpoint folder gets that is no good: one sentence, and nothing is unpickled."""

import json
import os
import pickle
import re
import struct

import pytest
import torch
from builders import ONE_FILE, save_model
from safetensors.torch import load_file, save_file

import transformer
from transformer import CheckpointError
from transformer.checkpoint import writing


@pytest.fixture
def folder(tiny_model, tmp_path):
    """A good checkpoint in one float32 file, for a test to damage."""
    save_model(tiny_model, tmp_path / "good", dtype="float32")
    return tmp_path / "good"


def message(path):
    """The one sentence that loading ends in."""
    with pytest.raises(CheckpointError) as caught:
        transformer.load(path)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert isinstance(caught.value, ValueError)
    return sentence


def edit_config(folder, edit):
    path = folder / "config.json"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def edit_weights(folder, edit):
    weights = load_file(folder / ONE_FILE)
    edit(weights)
    save_file(weights, folder / ONE_FILE)


@pytest.mark.parametrize("name", ["nothing", "", "a" * 5_000, "nul\0byte", "../checkpoints/none"])
def test_an_unknown_name_lists_the_known_ones(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sentence = message(name)
    assert "'stories'" in sentence or "holds no config.json" in sentence


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json", ONE_FILE])
def test_a_missing_file_is_named(folder, missing):
    (folder / missing).unlink()
    wanted = "model-*.safetensors" if missing == ONE_FILE else missing
    assert f"holds no {wanted}; a checkpoint needs" in message(folder)


def test_a_card_is_not_needed(folder):
    assert transformer.load(folder).card == ""
    (folder / "README.md").write_bytes(b"caf\xe9")
    assert transformer.load(folder).card == "caf\ufffd"


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "is not readable JSON"),
        (b"{", "is not readable JSON"),
        (b"\xff\xfe", "is not readable JSON"),
        (b"[" * 100_000, "is not readable JSON"),
        (b"[]", "has format 'list'; this version reads format 1"),
        (
            b'{"model_type": "gpt2", "n_layer": 12}',
            "config.json has no vocab_size; needed: a number",
        ),
        (b'{"format": 2, "model": {}}', "has format 2; this version reads format 1"),
        (b'{"format": 1}', "describes no usable model"),
        (b'{"format": 1, "model": {}}', "needs vocab_size"),
        (b'{"format": 1, "model": 5}', "describes no usable model"),
        (
            b'{"format": 1, "model": {"vocab_size": 320, "heads": 2}}',
            "unknown model setting 'heads'",
        ),
        (b'{"format": 1, "model": {"vocab_size": 320, "n_heads": 7}}', "must divide d_model"),
        (
            b'{"format": 1, "model": {"vocab_size": 320, "d_ff": NaN}}',
            "d_ff must be a whole number",
        ),
        (b'{"format": 1, "model": {"vocab_size": 320, "padding_id": "0"}}', "padding_id must be"),
    ],
)
def test_a_foreign_configuration_gets_a_sentence(folder, content, part):
    (folder / "config.json").write_bytes(content)
    assert part in message(folder)


@pytest.mark.parametrize("name", ["d_model", "d_ff", "max_len", "n_layers"])
@pytest.mark.parametrize("size", [2**20, 2**40, 2**70])
def test_a_configuration_that_asks_for_endless_memory_gets_a_sentence(folder, name, size):
    edit_config(folder, lambda c: c["model"].update({name: size}))
    assert "does not fit its config.json" in message(folder)


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "README.md", "sample.json", "heads.json", ONE_FILE]
)
def test_a_file_that_no_memory_holds_gets_a_sentence_before_it_is_read(folder, name):
    (folder / name).touch()
    size = 100 * 10**9  # sparse: it takes no room on the disk
    if name == ONE_FILE:
        about = {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}
        header = json.dumps({"embedding.tokens.weight": about}).encode()
        (folder / name).write_bytes(len(header).to_bytes(8, "little") + header)
        size += 8 + len(header)
    os.truncate(folder / name, size)
    told = "GB of memory|its config.json describes" if name == ONE_FILE else "it takes 100,000 MB"
    assert re.search(told, message(folder))


@pytest.mark.parametrize("content", [b"", b"{}", b"\x80\x04."])
def test_a_foreign_tokenizer_gets_a_sentence(folder, content):
    (folder / "tokenizer.json").write_bytes(content)
    assert "is not a readable tokenizer file" in message(folder)


def test_a_vocabulary_of_another_size_gets_both_sizes(folder):
    edit_config(folder, lambda c: c["model"].update(vocab_size=321))
    assert "has 320 tokens, config.json says 321; they must be equal" in message(folder)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_a_truncated_file_gets_a_sentence(folder, share):
    content = (folder / ONE_FILE).read_bytes()
    (folder / ONE_FILE).write_bytes(content[: int(share * len(content))])
    assert f"{ONE_FILE} is not a readable safetensors file" in message(folder)


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 10**9, 50])
def test_a_header_of_a_wrong_length_gets_a_sentence(folder, length):
    content = (folder / ONE_FILE).read_bytes()
    (folder / ONE_FILE).write_bytes(struct.pack("<Q", length) + content[8:])
    assert f"{ONE_FILE} is not a readable safetensors file" in message(folder)


class Bomb:
    """Unpickling it makes a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_renamed_pickle_is_refused_and_never_unpickled(folder, tmp_path):
    trap = tmp_path / "unpickled"
    (folder / ONE_FILE).write_bytes(pickle.dumps(Bomb(trap)))
    assert "is not a readable safetensors file" in message(folder)
    torch.save({"weights": torch.zeros(2), "bomb": Bomb(trap)}, folder / ONE_FILE)
    assert "is not a readable safetensors file" in message(folder)
    assert not trap.exists()
    pickle.loads(pickle.dumps(Bomb(trap)))  # the trap itself works
    assert trap.exists()


def test_a_folder_in_place_of_a_file_gets_a_sentence(folder):
    (folder / ONE_FILE).unlink()
    (folder / ONE_FILE).mkdir()
    assert "is not a readable safetensors file" in message(folder)


@pytest.mark.parametrize("lost", [0, 1, -1])
def test_a_missing_shard_gets_a_sentence(tiny_model, tmp_path, monkeypatch, lost):
    monkeypatch.setattr(writing, "SHARD_BYTES", 8_000)
    save_model(tiny_model, tmp_path / "split")
    sorted((tmp_path / "split").glob("*.safetensors"))[lost].unlink()
    assert "some are missing or misnamed" in message(tmp_path / "split")


def test_a_missing_or_unknown_tensor_is_named(folder):
    edit_weights(folder, lambda weights: weights.pop("head.weight"))
    assert "does not fit its config.json: it lacks 'head.weight'" in message(folder)
    edit_weights(
        folder,
        lambda weights: weights.update({"head.weight": torch.zeros(1), "wte": torch.zeros(1)}),
    )
    assert "has an unknown 'wte'" in message(folder)


def test_a_tensor_of_another_shape_gets_both_shapes(folder):
    edit_config(folder, lambda c: c["model"].update(d_ff=65))
    sentence = message(folder)
    assert "feed_forward" in sentence
    assert "needed: (65" in sentence or "needed: (16, 65)" in sentence


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_named(folder, bad):
    edit_weights(folder, lambda weights: weights["head.weight"][3, 5].fill_(bad))
    assert "has numbers in head.weight that are not finite" in message(folder)


def test_weights_that_are_whole_numbers_are_refused(folder):
    edit_weights(
        folder, lambda weights: weights.update({"head.weight": torch.zeros(320, 16).long()})
    )
    assert "head.weight" in message(folder)


@pytest.mark.parametrize("name", ["config.json", ONE_FILE, "tokenizer.json"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert name.split(".")[0] in message(folder)


def test_weights_of_a_kind_that_cannot_be_read_are_told(folder):
    def shortened(weights):
        name = next(iter(weights))
        weights[name] = weights[name].to(torch.float8_e4m3fn)

    edit_weights(folder, shortened)
    assert "has F8_E4M3 numbers in" in message(folder)


@pytest.mark.parametrize("name", ["head.weight", "embedding.tokens.weight"])
def test_a_row_of_weights_that_overflows_as_soon_as_it_is_used_is_told(folder, name):
    edit_weights(folder, lambda weights: weights[name][0].fill_(1e38))
    assert "weights so large that its results are no numbers" in message(folder)


PATTERN = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
LONGEST = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
FILLED = {
    "strategy": {"Fixed": 300}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
    "pad_type_id": 0, "pad_token": "<|padding|>",
}  # fmt: skip


WORD = {
    "id": 0, "content": "<|padding|>", "single_word": False, "lstrip": True, "rstrip": False,
    "normalized": False, "special": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"added_tokens": [WORD]}, "it has lstrip for the token '<|padding|>';"),
        ({"truncation": LONGEST}, "it has truncation;"),
        ({"padding": FILLED}, "it has padding;"),
        ({"normalizer": {"type": "Lowercase"}}, "it has normalizer;"),
        ({"pre_tokenizer": PATTERN}, "a pre_tokenizer of type Split;"),
        ({"pre_tokenizer": None}, "a pre_tokenizer of type None;"),
        ({"model": {"dropout": 0.5}}, "it has dropout;"),
        ({"pre_tokenizer": {"add_prefix_space": True}}, "it has add_prefix_space;"),
    ],
)
def test_a_tokenizer_whose_ids_are_not_the_texts_is_told(folder, change, told):
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    for name, value in change.items():
        plain = isinstance(value, dict) and isinstance(content[name], dict) and "type" not in value
        content[name] = {**content[name], **value} if plain else value
    path.write_text(json.dumps(content))
    sentence = message(folder)
    assert told in sentence
    assert "needed: a plain byte-level BPE" in sentence


def test_a_tokenizer_whose_pattern_never_ends_is_told(folder):
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    before = [PATTERN, content["pre_tokenizer"] | {"use_regex": False}]
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": before}
    path.write_text(json.dumps(content))
    assert "the tokenizer's own pattern cannot split this text" in message(folder)


def test_a_tokenizer_that_loses_a_part_of_a_text_is_told(folder):
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    spaces = {**PATTERN, "pattern": {"String": "é"}, "behavior": "Removed"}
    before = [spaces, content["pre_tokenizer"] | {"use_regex": False}]
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": before}
    path.write_text(json.dumps(content))
    assert "stand for another text" in message(folder)
