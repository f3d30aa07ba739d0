"""A model on disk and back."""

import pytest
import torch
from builders import ONE_FILE, model_of, save_model
from safetensors.torch import load_file

import transformer
from transformer import checkpoint
from transformer.checkpoint import writing

IDS = torch.tensor([[2, 7, 30, 200, 41, 9]])


@pytest.fixture
def folder(tiny_model, tmp_path):
    """A good checkpoint in one float32 file."""
    save_model(tiny_model, tmp_path / "good", dtype="float32")
    return tmp_path / "good"


@pytest.mark.parametrize("kind", ["tiny_model", "tiny_encoder", "tiny_encoder_decoder"])
def test_saved_in_float32_and_loaded_the_logits_are_equal(kind, request, tmp_path):
    model = request.getfixturevalue(kind)
    save_model(model, tmp_path / "copy", dtype="float32", card="# A card\n", metadata={"steps": 5})
    loaded = transformer.load(tmp_path / "copy")
    inputs = [IDS, IDS[:, :4]] if kind == "tiny_encoder_decoder" else [IDS]
    assert loaded.network(*inputs).equal(model.network(*inputs))
    assert loaded.config == model.config
    assert loaded.name == "copy"
    assert loaded.card == "# A card\n"
    assert loaded.metadata == {"steps": 5}
    assert loaded.tokenizer.encode("crêpes 🦊") == model.tokenizer.encode("crêpes 🦊")


def test_a_loaded_model_is_ready_to_run_and_frozen(folder, tiny_model):
    loaded = transformer.load(str(folder))
    assert not loaded.network.training
    assert not any(p.requires_grad for p in loaded.network.parameters())
    settings = {"max_new_tokens": 6, "temperature": 1.0, "seed": 1}
    assert loaded.generate("Hello", **settings).ids == tiny_model.generate("Hello", **settings).ids


def test_float16_files_are_half_as_large_and_differ_by_their_rounding(folder, tiny_model):
    half = folder.parent / "half"
    save_model(tiny_model, half)
    loaded = transformer.load(half)
    for name, weight in loaded.network.named_parameters():
        exact = tiny_model.network.get_parameter(name)
        assert weight.dtype == torch.float32
        assert weight.equal(exact.half().float())
    torch.testing.assert_close(loaded.network(IDS), tiny_model.network(IDS), atol=0.05, rtol=0.01)
    assert (half / ONE_FILE).stat().st_size < 0.6 * (folder / ONE_FILE).stat().st_size


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


def test_saving_again_leaves_no_file_of_the_last_time(tiny_model, tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "SHARD_BYTES", 8_000)
    save_model(tiny_model, tmp_path / "again")
    monkeypatch.undo()
    save_model(tiny_model, tmp_path / "again")
    assert [path.name for path in (tmp_path / "again").glob("*.safetensors")] == [ONE_FILE]
    transformer.load(tmp_path / "again")


def test_bundled_checkpoints_load_by_name_and_stay_below_ten_megabytes():
    assert transformer.bundled_names() == ["stories", "translate-en-fr", "fill-in"]
    for name in transformer.bundled_names():
        model = transformer.load(name)
        assert model.name == name
        if model.config.family != "encoder":
            run = model.generate("Once upon a time", max_new_tokens=2)
            assert len(run.steps) >= 1
        for path in (checkpoint.BUNDLED / name).iterdir():
            assert path.stat().st_size < 10_000_000
