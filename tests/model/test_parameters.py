"""Which numbers a network has, and the tables of norms, activations and positions: one line in each
adds one, everywhere."""

import math
import re

import pytest
import torch
from kit.interventions import FAMILIES, given, read
from kit.models import T_MAX, C, config, ids, network
from kit.table_entries import ODD, RAMP, SINUS
from torch import nn

from transformer import Trace, build_transformer
from transformer.model.config import preset
from transformer.model.hooks import ForwardContext
from transformer.model.positions import POSITIONS
from transformer.model.primitives import ACTIVATIONS, INITS, NORMS, Linear
from transformer.model.score_bias import RelativeBias
from transformer.model.summary import blocks
from transformer.views.model.block_text import text_of

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


def test_a_narrow_weight_is_widened_a_part_at_a_time(monkeypatch):
    monkeypatch.setattr("transformer.model.primitives.WIDENED", 40)
    narrow = Linear(7, 23)
    narrow.weight.data = narrow.weight.data.bfloat16()
    x = torch.randn(2, 5, 7)
    wanted = x @ narrow.weight.float().T + narrow.bias
    torch.testing.assert_close(narrow(x), wanted)
    assert narrow.bfloat16()(x.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize(("head", "shape"), [("text-labels", (2, 3)), ("token-labels", (2, 5, 3))])
def test_a_classifier_scores_the_text_at_its_first_token_or_each_token(head, shape):
    model = network("encoder", head=head, labels=("no", "perhaps", "yes"))
    text, trace = ids(2, 5), Trace()
    scores = model(text, trace=trace)
    assert scores.shape == shape
    last = model.encoder.end(trace.residuals["encoder"][-1], ForwardContext())
    read = last[:, 0] if head == "text-labels" else last
    torch.testing.assert_close(scores, read @ model.head.out.weight.T + model.head.out.bias)


@pytest.mark.parametrize("n_buckets", [32, 12])
def test_far_distances_share_a_bias_as_in_transformers(n_buckets):
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

    bias, places = RelativeBias(n_buckets, 3, both_ways=True), torch.arange(0, 300, 7)
    with torch.no_grad():
        bias.table.weight[:, 0] = torch.arange(n_buckets)
    wanted = MPNetEncoder.relative_position_bucket(places - places[:, None], num_buckets=n_buckets)
    assert bias(places, places)[0].equal(wanted.float())


def test_sinusoidal_positions_are_the_papers_formula_and_not_trained():
    encoding = POSITIONS["sinusoidal"].make(5_001, 6)
    for position in (0, 1, 10, 5_000):
        angles = [position / 10_000 ** (2 * pair / 6) for pair in range(3)]
        waves = [wave(angle) for angle in angles for wave in (math.sin, math.cos)]
        assert encoding.matrix[position].tolist() == pytest.approx(waves, abs=1e-7)
    assert list(encoding.parameters()) == []
    assert encoding.state_dict() == {}


def says(settings, kind):
    """The words of the first block of a kind."""
    made = config(**settings)
    return text_of(made, next(block for block in blocks(made) if block.kind == kind))


ADDED = [  # to which table, for which field and kind of block, and what is said of it
    (NORMS, "norm_kind", "norm", ODD, "Odd norm of .* Divides 12 features"),
    (ACTIVATIONS, "activation", "feed_forward", SINUS, r"Sinus acts on each of them \(waves\)"),
    (POSITIONS, "positions", "positions", RAMP, rf"^Up to {T_MAX}\.$"),
]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("table", "field", "block", "entry", "said"), ADDED)
def test_one_line_in_a_table_is_computed_counted_and_drawn(
    table, field, block, entry, said, family, monkeypatch
):
    monkeypatch.setitem(table, "odd", entry)
    for placement in ("pre", "post"):
        made = config(family, **{field: "odd"}, norm=placement, norm_embeddings=True)
        model = network(**{"family": family, **made.to_dict()})
        total = sum(block.n_parameters for block in blocks(made))
        assert total == model.n_parameters
        text = given(model)
        torch.testing.assert_close(read(model, text, trace=Trace()), read(model, text))
    assert re.search(said, says({field: "odd"}, block).does)
    forward, x = model.last_stack.layers[0].feed_forward, torch.randn(2, 5, C)
    if table is ACTIVATIONS:
        torch.testing.assert_close(forward(x), forward.contract(torch.sin(forward.expand(x))))
    norms = {type(m) for m in model.modules() if isinstance(m, nn.LayerNorm | nn.RMSNorm)}
    assert norms == {nn.RMSNorm if table is NORMS else nn.LayerNorm}


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_an_activation_acts_on_each_number_alone_and_leaves_large_ones(kind):
    function, x = ACTIVATIONS[kind].function, torch.linspace(-30, 30, 61)
    torch.testing.assert_close(function(x), torch.stack([function(one) for one in x]))
    assert function(x)[-1] == 30
    assert math.isclose(float(function(x)[0]), 0, abs_tol=1e-6)


@pytest.mark.parametrize("kind", POSITIONS)
def test_the_words_of_an_encoding_contain_its_sizes(kind):
    part = "positions" if POSITIONS[kind].adds else "self"
    settings = dict(positions=kind, relative_buckets=8 if POSITIONS[kind].needs_buckets else 0)
    assert "{" not in says(settings, part).does


def test_layers_that_rotate_otherwise_than_the_scaling_says_are_named():
    scaled = dict(positions="rotary", head_size=4, rotary_scaling="linear", rotary_factor=8.0)
    kinds = dict(window=3, layer_types=("sliding_attention", "full_attention"))
    for own, named in ((None, False), (50.0, True)):
        words = says(scaled | kinds | {"sliding_rotary_base": own}, "self").does
        assert "All pairs rotate 8 times slower" in words
        assert ("Some layers rotate at a speed of their own." in words) == named
