"""Which numbers a network has: embeddings, counts and initial weights."""

import pytest
import torch
from builders import FF, T_MAX, C, L, V, ids, network

from transformer import Trace, build_transformer
from transformer.model.inits import INITS

FAMILIES = ["decoder", "encoder", "encoder-decoder"]


def test_tied_embeddings_are_one_matrix():
    model = network("encoder-decoder", tie_embeddings=True, target_vocab_size=7)
    assert model.head.weight is model.target_embedding.tokens.weight
    assert model.source_embedding.tokens.weight.shape == (V, C)
    model = network("encoder-decoder", tie_embeddings=True, share_embeddings=True)
    assert model.head.weight is model.target_embedding.tokens.weight
    assert model.head.weight is model.source_embedding.tokens.weight
    model = network()
    assert model.head.weight is not model.embedding.tokens.weight


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_scaled_embeddings_are_multiplied_by_the_root_of_d_model_and_positions_are_not(positions):
    plain = network(positions=positions)
    scaled = network(positions=positions, scale_embeddings=True)
    scaled.load_state_dict(plain.state_dict())
    tokens, small, large = ids(2, 5), Trace(), Trace()
    plain(tokens, trace=small)
    scaled(tokens, trace=large)
    torch.testing.assert_close(large.embed["decoder"], small.embed["decoder"] * 12**0.5)
    assert large.pos_embed["decoder"].equal(small.pos_embed["decoder"])


def test_an_input_is_the_scaled_token_plus_its_position():
    model, tokens = network(scale_embeddings=True, positions="learned"), ids(2, 5)
    got = model.embedding(tokens, torch.arange(5))
    table, places = model.embedding.tokens.weight, model.embedding.positions.table.weight
    for row in range(2):
        for place in range(5):
            expected = 12**0.5 * table[tokens[row, place]] + places[place]
            torch.testing.assert_close(got[row, place], expected)


def count(family, *, attention_bias, head_bias, learned, tied, norm):
    """Parameters by the paper's shapes: independent of the modules."""
    attention = 4 * C * C + (4 * C if attention_bias else 0)
    feed_forward = 2 * C * FF + FF + C
    encoder_layer = attention + feed_forward + 2 * 2 * C
    decoder_layer = 2 * attention + feed_forward + 3 * 2 * C
    final = 2 * C if norm == "pre" else 0
    embedding = V * C + (T_MAX * C if learned else 0)
    head = (0 if tied else V * C) + (V if head_bias else 0)
    if family == "encoder-decoder":
        return 2 * embedding + L * (encoder_layer + decoder_layer) + 2 * final + head
    return embedding + L * encoder_layer + final + head


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("switch", [True, False])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_number_of_parameters_is_the_papers(family, switch, norm):
    model = network(
        family,
        attention_bias=switch,
        head_bias=not switch,
        positions="learned" if switch else "sinusoidal",
        tie_embeddings=not switch,
        norm=norm,
    )
    expected = count(
        family,
        attention_bias=switch,
        head_bias=not switch,
        learned=switch,
        tied=not switch,
        norm=norm,
    )
    assert model.n_parameters == expected


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


def test_xavier_initial_weights_fill_their_range_uniformly():
    model = build_transformer("pre-norm", vocab_size=997, n_layers=1)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2 and "tokens" not in name:
            bound = (6 / sum(parameter.shape)) ** 0.5
            assert parameter.abs().max().item() == pytest.approx(bound, rel=0.01)
            assert parameter.std().item() == pytest.approx(bound / 3**0.5, rel=0.02)
    embedded = model.source_embedding.tokens.weight * model.source_embedding.scale
    assert embedded.std().item() == pytest.approx(1, rel=0.02)


def test_tied_embeddings_start_as_embeddings():
    model = build_transformer("vaswani-2017", vocab_size=997, n_layers=1)
    assert model.head.weight.std().item() == pytest.approx(512**-0.5, rel=0.02)


def test_xavier_may_fill_the_embeddings_too():
    model = build_transformer("learned-positions", vocab_size=997, n_layers=1, init="xavier-all")
    for parameter in (p for p in model.parameters() if p.dim() == 2):
        bound = (6 / sum(parameter.shape)) ** 0.5
        assert parameter.abs().max().item() == pytest.approx(bound, rel=0.01)
        assert parameter.std().item() == pytest.approx(bound / 3**0.5, rel=0.02)


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
