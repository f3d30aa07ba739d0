"""A model on disk and back."""

import pytest
import torch
from kit.models import ONE_FILE, model_of, save_model
from safetensors.torch import load_file

import transformer
from transformer.checkpoint import writing

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
