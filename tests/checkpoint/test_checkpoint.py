"""A model on disk and back. A damaged folder is refused in one sentence, and nothing unpickled."""

import dataclasses
import json
import math
import os
import pickle
import re
import struct

import pytest
import torch
from kit.models import ONE_FILE, model_of, save_model
from safetensors.torch import load, load_file, save

import transformer
from transformer import CheckpointError
from transformer.checkpoint import HeldOutSample, writing


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


def test_a_model_is_saved_whole_and_loaded_again(tiny_model, tmp_path):
    text = "the fox said"
    sample = HeldOutSample(about="two", texts=(("The fox.",), ("A bird.",)))
    model = dataclasses.replace(tiny_model, card="# A card", metadata={"a": 1}, sample=sample)
    with pytest.raises(ValueError, match=r"dtype must be one of .*float16.*; got 'float8'"):
        model.save(tmp_path / "m", dtype="float8")
    assert not (tmp_path / "m").exists()
    model.save(str(tmp_path / "m"), dtype="float32")
    again = transformer.load(tmp_path / "m")
    assert (again.card, again.metadata, again.sample) == ("# A card", {"a": 1}, sample)
    assert again.generate(text, max_new_tokens=5).ids == model.generate(text, max_new_tokens=5).ids


def test_the_pairs_of_a_translators_sample_are_saved(tiny_encoder_decoder, tmp_path):
    pairs = HeldOutSample(about="pairs", texts=(("The fox.", "Le renard."), ("A bird.", "Oui.")))
    dataclasses.replace(tiny_encoder_decoder, sample=pairs).save(tmp_path / "m")
    assert transformer.load(tmp_path / "m").sample == pairs


def changed(name, change):
    """change: what becomes of the file's bytes."""
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes()))


def written(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def cut(share, start=b""):
    """The weights' file as far as `share` of it, with other bytes at its start."""
    return changed(ONE_FILE, lambda file: (start + file[len(start) :])[: int(share * len(file))])


def json_with(name, change):
    def made(file):
        content = json.loads(file)
        change(content)
        return json.dumps(content).encode()

    return changed(name, made)


def weights_with(change):
    def made(file):
        weights = load(file)
        change(weights)
        return save(weights)

    return changed(ONE_FILE, made)


def replaced(name, put):
    """put: os.mkfifo, os.mkdir, or what leaves nothing in a file's place."""

    def damage(folder):
        (folder / name).unlink()
        put(folder / name)

    return damage


def model_with(**changes):
    return json_with("config.json", lambda content: content["model"].update(changes))


def tokenizer_with(part="", **changes):
    return json_with(
        "tokenizer.json", lambda content: (content[part] if part else content).update(changes)
    )


def splitting_first(way):
    def change(content):
        both = [way, content["pre_tokenizer"] | {"use_regex": False}]
        content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": both}

    return json_with("tokenizer.json", change)


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
CONFIGS = {
    b"": "is not readable JSON",
    b"{": "is not readable JSON",
    b"\xff\xfe": "is not readable JSON",
    b"[" * 100_000: "is not readable JSON",
    b"[]": "has format 'list'; this version reads format 1",
    b'{"model_type": "gpt2", "n_layer": 12}': "holds no model.safetensors; needed: its weights",
    b'{"format": 2, "model": {}}': "has format 2; this version reads format 1",
    b'{"format": 1}': "describes no usable model",
    b'{"format": 1, "model": {}}': "needs vocab_size",
    b'{"format": 1, "model": 5}': "describes no usable model",
}
UNIGRAM = {
    "type": "Unigram", "unk_id": 0, "byte_fallback": False,
    "vocab": [[name, 0.0] for name in ("<|padding|>", "<|start|>", "<|end|>", "a")],
}  # fmt: skip
HEAD = {"kind": "decoder.self", "layer": 0, "head": 0, "metrics": {"entropy": {"mean": 1.0}}}
HEADS = [
    [HEAD, HEAD | {"head": 2}], [HEAD | {"layer": 2}], [HEAD | {"kind": "encoder.self"}],
    [HEAD | {"kind": "x"}], [HEAD | {"metrics": {"entropy": {"mean": "much"}}}],
    [HEAD | {"metrics": {"entropy": {}}}], [HEAD, 3],
]  # fmt: skip
UNREADABLE = f"{ONE_FILE} is not a readable safetensors file"
OTHER_IDS = {
    "it has lstrip for the token '<|padding|>';": tokenizer_with(added_tokens=[WORD]),
    "it has truncation;": tokenizer_with(truncation=LONGEST),
    "it has padding;": tokenizer_with(padding=FILLED),
    "it has normalizer;": tokenizer_with(normalizer={"type": "Lowercase"}),
    "a pre_tokenizer of type Split;": tokenizer_with(pre_tokenizer=PATTERN),
    "a pre_tokenizer of type None;": tokenizer_with(pre_tokenizer=None),
    "it has a model of type Unigram;": tokenizer_with(model=UNIGRAM),
    "it has dropout;": tokenizer_with("model", dropout=0.5),
    "it has add_prefix_space;": tokenizer_with("pre_tokenizer", add_prefix_space=True),
}
DAMAGES = [
    *((replaced(name, id), f"holds no {name}; a checkpoint needs")
      for name in ("config.json", "tokenizer.json")),
    (replaced(ONE_FILE, id), "holds no model-*.safetensors; a checkpoint needs"),
    *((replaced(name, os.mkfifo), name.split(".")[0])
      for name in ("config.json", "tokenizer.json", ONE_FILE)),
    (replaced(ONE_FILE, os.mkdir), "is not a readable safetensors file"),
    *((written("config.json", content), words) for content, words in CONFIGS.items()),
    *((model_with(**{name: size}), "does not fit its config.json")
      for name in ("d_model", "d_ff", "max_len", "n_layers") for size in (2**20, 2**40, 2**70)),
    *((written("heads.json", json.dumps({"n_texts": 1, "texts": {}, "heads": heads}).encode()),
       "is no usable file about heads") for heads in HEADS),
    (model_with(vocab_size=321), "has 320 tokens, config.json says 321; they must be equal"),
    (model_with(d_ff=65), "needed: (16, 65)"),
    (written("tokenizer.json", b"{}"), "is not a readable tokenizer file"),
    *((cut(share), UNREADABLE) for share in (0.0, 0.001, 0.5, 0.999)),
    *((cut(1, struct.pack("<Q", length)), UNREADABLE)
      for length in (2**63, 2**64 - 1, 10**9, 50)),
    (weights_with(lambda w: [w.pop(name) for name in ("head.weight", "decoder.norm.weight")]),
     "does not fit its config.json: it lacks 'decoder.norm.weight'"),
    (weights_with(lambda w: w.update(wte=torch.zeros(1))), "has an unknown 'wte'"),
    *((weights_with(lambda w, bad=bad: w["head.weight"][3, 5].fill_(bad)),
       "has numbers in head.weight that are not finite") for bad in (math.nan, math.inf)),
    (weights_with(lambda w: w.update({"head.weight": torch.zeros(320, 16).long()})),
     "head.weight"),
    (weights_with(lambda w: w.update({"head.weight": w["head.weight"].to(torch.float8_e4m3fn)})),
     "has F8_E4M3 numbers in"),
    *((weights_with(lambda w, name=name: w[name][0].fill_(1e38)),
       "weights so large that its results are no numbers")
      for name in ("head.weight", "embedding.tokens.weight")),
    *((damage, f"{words}.*needed: a plain byte-level BPE") for words, damage in OTHER_IDS.items()),
    (splitting_first(PATTERN), "its patterns backtrack without end"),
    (splitting_first({**PATTERN, "pattern": {"String": "é"}, "behavior": "Removed"}),
     "decode to another text"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "words"), DAMAGES, ids=[words[:40] for _, words in DAMAGES])
def test_a_damaged_checkpoint_gets_a_sentence(folder, damage, words):
    damage(folder)
    parts = words.split(".*")
    sentence = message(folder)
    assert all(part in sentence for part in parts), sentence


@pytest.mark.parametrize("name", ["nothing", "", "a" * 5_000, "nul\0byte", "../checkpoints/none"])
def test_an_unknown_name_lists_the_known_ones(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sentence = message(name)
    assert "'stories'" in sentence or "holds no config.json" in sentence


def test_a_card_is_not_needed(folder):
    assert transformer.load(folder).card == ""
    (folder / "README.md").write_bytes(b"caf\xe9")
    assert transformer.load(folder).card == "caf\ufffd"


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "tokenizer.json",
        "README.md",
        "sample.json",
        "heads.json",
        "neurons.json",
        ONE_FILE,
    ],
)
def test_a_file_larger_than_memory_is_refused_before_it_is_read(folder, name):
    (folder / name).touch()
    size = 100 * 10**9  # sparse: it takes no room on the disk
    if name == ONE_FILE:
        about = {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}
        header = json.dumps({"embedding.tokens.weight": about}).encode()
        (folder / name).write_bytes(len(header).to_bytes(8, "little") + header)
        size += 8 + len(header)
    os.truncate(folder / name, size)
    words = "GB of memory|its config.json describes" if name == ONE_FILE else "it takes 100,000 MB"
    assert re.search(words, message(folder))


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


@pytest.mark.parametrize("lost", [0, 1, -1])
def test_a_missing_shard_gets_a_sentence(tiny_model, tmp_path, monkeypatch, lost):
    monkeypatch.setattr(writing, "SHARD_BYTES", 8_000)
    save_model(tiny_model, tmp_path / "split")
    sorted((tmp_path / "split").glob("*.safetensors"))[lost].unlink()
    assert "some are missing or misnamed" in message(tmp_path / "split")


IDS = torch.tensor([[2, 7, 30, 200, 41, 9]])


@pytest.mark.parametrize("shared", [True, False])
def test_tied_matrices_are_stored_once_and_tied_again(shared, tiny_encoder_decoder, tmp_path):
    config = tiny_encoder_decoder.config.replace(tie_embeddings=True, share_embeddings=shared)
    model = model_of("tied", config, tiny_encoder_decoder.tokenizer)
    save_model(model, tmp_path / "tied", dtype="float32")
    stored = load_file(tmp_path / "tied" / ONE_FILE)
    assert sum(tensor.numel() for tensor in stored.values()) == model.n_parameters
    network = transformer.load(tmp_path / "tied").network
    assert network.head.weight is network.target_embedding.tokens.weight
    assert (network.head.weight is network.source_embedding.tokens.weight) == shared
    assert network(IDS, IDS).equal(model.network(IDS, IDS))


def test_large_weights_are_split_into_files_below_the_limit(tiny_model, tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "SHARD_BYTES", 8_000)
    save_model(tiny_model, tmp_path / "split", dtype="float32")
    paths = sorted((tmp_path / "split").glob("*.safetensors"))
    assert len(paths) > 3
    assert [path.name for path in paths] == [
        f"model-{n:05}-of-{len(paths):05}.safetensors" for n in range(1, len(paths) + 1)
    ]
    for path in paths:
        tensors = load_file(path)
        assert len(tensors) == 1 or sum(t.nbytes for t in tensors.values()) <= 8_000
    loaded = transformer.load(tmp_path / "split")
    assert loaded.network(IDS).equal(tiny_model.network(IDS))
    monkeypatch.undo()
    save_model(tiny_model, tmp_path / "split")  # which leaves no file of the last time
    assert [path.name for path in (tmp_path / "split").glob("*.safetensors")] == [ONE_FILE]
    transformer.load(tmp_path / "split")
