"""Which numbers a network has: embeddings, counts and initial weights."""

import math

import pytest
import torch
from kit.models import ids

from transformer import build_transformer
from transformer.model.config import preset
from transformer.model.positions import POSITIONS, sinusoidal_matrix
from transformer.model.primitives import INITS
from transformer.model.summary import blocks

PUBLISHED = {  # tokens, and the parameters that their authors count
    "gpt-2": (50_257, 124_439_808),
    "llama": (49_152, 134_515_008),  # SmolLM2-135M
    "qwen3": (151_936, 596_049_920),  # Qwen3-0.6B
    "neox": (50_304, 70_426_624),  # Pythia-70M
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_number_of_parameters_is_the_published_one(name):
    vocab_size, wanted = PUBLISHED[name]
    assert sum(one.n_parameters for one in blocks(preset(name, vocab_size=vocab_size))) == wanted


def test_normal_initial_weights_are_n_0_002_and_biases_are_zero():
    model = build_transformer("gpt", vocab_size=997, n_layers=2)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all()
        elif "norm" in name:
            assert (parameter == 1).all()
        else:
            assert parameter.std().item() == pytest.approx(0.02, rel=0.03)
            assert parameter.mean().item() == pytest.approx(0, abs=4e-4)


@pytest.mark.parametrize("init", ["xavier", "xavier-all"])
def test_xavier_initial_weights_fill_their_range_uniformly(init):
    model = build_transformer("pre-norm", vocab_size=997, n_layers=1, init=init)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2 and (init == "xavier-all" or "tokens" not in name):
            bound = (6 / sum(parameter.shape)) ** 0.5
            assert parameter.abs().max().item() == pytest.approx(bound, rel=0.01)
            assert parameter.std().item() == pytest.approx(bound / 3**0.5, rel=0.02)
    if init == "xavier":
        embedded = model.source_embedding.tokens.weight * model.source_embedding.scale
        assert embedded.std().item() == pytest.approx(1, rel=0.02)


def test_tied_embeddings_start_as_embeddings():
    model = build_transformer("vaswani-2017", vocab_size=997, n_layers=1)
    assert model.head.weight.std().item() == pytest.approx(512**-0.5, rel=0.02)


@pytest.mark.parametrize("init", INITS)
def test_a_seed_gives_the_same_weights_whatever_was_drawn_before(init):
    def weights(seed):
        model = build_transformer("pre-norm", vocab_size=11, n_layers=1, init=init, seed=seed)
        return torch.cat([parameter.flatten() for parameter in model.parameters()])

    first = weights(3)
    torch.randn(5)
    assert torch.equal(weights(3), first)
    assert not torch.equal(weights(4), first)


def test_a_new_network_does_not_train_so_that_two_calls_agree():
    model = build_transformer("gpt", vocab_size=11, n_layers=1)
    tokens = ids(1, 5, vocab_size=11)
    assert not model.training
    assert torch.equal(model(tokens), model(tokens))
    model.train()
    assert not torch.equal(model(tokens), model(tokens))


def test_sinusoidal_positions_are_the_papers_formula_and_not_trained():
    matrix = sinusoidal_matrix(5_001, 6)
    for position in (0, 1, 10, 5_000):
        angles = [position / 10_000 ** (2 * pair / 6) for pair in range(3)]
        waves = [wave(angle) for angle in angles for wave in (math.sin, math.cos)]
        assert matrix[position].tolist() == pytest.approx(waves, abs=1e-7)
    encoding = POSITIONS["sinusoidal"].make(9, 4)
    assert list(encoding.parameters()) == []
    assert encoding.state_dict() == {}


def test_learned_positions_are_trained_and_stored():
    encoding = POSITIONS["learned"].make(9, 4)
    encoding(torch.tensor([2])).sum().backward()
    (table,) = encoding.parameters()
    assert table.grad.abs().sum(dim=-1).nonzero().flatten().tolist() == [2]
    assert list(encoding.state_dict()) == ["table.weight"]
