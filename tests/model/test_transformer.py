"""Whole networks of the three families, against PyTorch's own with copied weights."""

import pytest
import torch
from kit.interventions import FAMILIES
from kit.models import FF, C, H, L, config, ids, network
from torch import nn

from transformer import Trace, build_transformer
from transformer.model.blocks import FeedForward
from transformer.model.cache import KeyValueCache
from transformer.model.hooks import ForwardContext


def test_source_and_target_may_have_lengths_and_paddings_of_their_own():
    model = network("encoder-decoder", target_vocab_size=7, target_max_len=4, target_padding_id=6)
    source, target = torch.tensor([[12, 3, 6, 1, 1]]), torch.tensor([[5, 0, 2]])
    read = nn.functional.pad(source, (0, 2)), nn.functional.pad(target, (0, 1), value=6)
    padded = model(*read, src_is_text=torch.arange(7)[None] < 5)
    torch.testing.assert_close(padded[:, :3], model(source, target), atol=1e-5, rtol=1e-5)
    trace = Trace()
    model(source, target, trace=trace)  # 6 is text in the source, and 0 in the target
    assert bool(trace["decoder.0.cross"].allowed.all())
    assert torch.equal(trace["decoder.0.self"].allowed[0], torch.ones(3, 3).bool().tril())
    with pytest.raises(ValueError, match="this model takes at most 4 tokens; got 5"):
        model(source, torch.tensor([[1, 2, 3, 4, 5]]))
    assert model(ids(1, 9), target).shape == (1, 3, 7)
    assert model.target_embedding.positions.matrix.shape[0] == 4


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_longer_than_the_model_is_an_error_that_names_both(family):
    model, cache = network(family, positions="learned"), KeyValueCache()
    source = [ids(2, 3)] if family == "encoder-decoder" else []
    with pytest.raises(ValueError, match="this model takes at most 9 tokens; got 10"):
        model(*source, ids(2, 10))
    if family == "decoder":
        text = ids(2, 9)
        padded = nn.functional.pad(text, (3, 0))  # on the left it takes no position
        found = model(padded, is_text=torch.arange(12).expand(2, 12) > 2)[:, 3:]
        torch.testing.assert_close(found, model(text, cache=cache), atol=1e-5, rtol=1e-5)
        with pytest.raises(ValueError, match="this model takes at most 9 tokens; got 10"):
            model(ids(2, 1), cache=cache)


CAUSAL = ForwardContext(causal=True)
# (B, Ts) and (B, Tt): the second row is shorter
SOURCE = torch.tensor([[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 0, 0]])
TARGET = torch.tensor([[2, 7, 1, 8, 2], [3, 5, 6, 0, 0]])


def copy_linear(to, source):
    to.weight.copy_(source.weight)
    to.bias.copy_(source.bias)


def copy_attention(to, source):
    projections = [source.query, source.key, source.value]
    to.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
    to.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
    copy_linear(to.out_proj, source.output)


@torch.no_grad()
def copy_layer(to, source, cross):
    copy_attention(to.self_attn, source.self_attention)
    copy_linear(to.linear1, source.feed_forward.expand)
    copy_linear(to.linear2, source.feed_forward.contract)
    norms = [source.self_residual.norm, source.feed_forward_residual.norm]
    if cross:
        copy_attention(to.multihead_attn, source.cross_attention)
        norms.insert(1, source.cross_residual.norm)
    for name, norm in zip(["norm1", "norm2", "norm3"], norms, strict=False):
        copy_linear(getattr(to, name), norm)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_a_whole_encoder_decoder_is_pytorchs_transformer(norm, activation):
    ours = network("encoder-decoder", norm=norm, activation=activation)
    sizes = dict(
        nhead=H, dim_feedforward=FF, batch_first=True, norm_first=norm == "pre",
        activation=activation,
    )  # fmt: skip
    plain = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(C, **sizes), L, enable_nested_tensor=False
    )
    theirs = nn.Transformer(C, num_decoder_layers=L, custom_encoder=plain, **sizes).eval()
    for stack, source in [(theirs.encoder, ours.encoder), (theirs.decoder, ours.decoder)]:
        for to, layer in zip(stack.layers, source.layers, strict=True):
            copy_layer(to, layer, cross=stack is theirs.decoder)
        # PyTorch's adds final norms for post-norm too; the paper has none
        stack.norm = source.norm
    expected = theirs(
        ours.source_embedding(SOURCE, torch.arange(6)),
        ours.target_embedding(TARGET, torch.arange(5)),
        tgt_mask=torch.ones(5, 5, dtype=torch.bool).triu(1),  # PyTorch's polarity: True = hidden
        src_key_padding_mask=SOURCE == 0,
        tgt_key_padding_mask=TARGET == 0,
        memory_key_padding_mask=SOURCE == 0,
    )
    found = ours(SOURCE, TARGET, src_is_text=SOURCE != 0, tgt_is_text=TARGET != 0)
    torch.testing.assert_close(found, ours.head(expected), atol=1e-5, rtol=1e-5)


def test_training_drops_in_attention_only_where_the_model_asks():
    x = torch.randn(2, 5, C)
    for rate, same in [(0.0, True), (0.4, False)]:
        stack = network(dropout=0.0, attention_dropout=rate).train().decoder
        assert torch.allclose(stack(x, CAUSAL), stack(x, CAUSAL)) == same


def test_feed_forward_dropout_acts_after_the_activation_in_training():
    block = FeedForward(config(activation="gelu", feed_forward_dropout=0.5))
    seen = []
    block.contract.register_forward_pre_hook(lambda _module, given: seen.append(given[0]))
    x = torch.randn(2, 50, C)
    activated = nn.functional.gelu(block.expand(x))
    block.eval()(x)
    assert torch.equal(seen.pop(), activated)
    block.train()(x)
    (dropped,) = seen
    assert (dropped == 0).float().mean().item() == pytest.approx(0.5, abs=0.05)
    torch.testing.assert_close(dropped[dropped != 0], 2 * activated[dropped != 0])


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["pre-norm", "llama", "bert"])
def test_torch_export_takes_a_forward_pass_of_any_size(preset):
    sizes = dict(d_model=24, n_heads=6, n_layers=2, d_ff=40, max_len=32, vocab_size=50)
    grouped = dict(n_key_heads=3) if preset == "llama" else {}
    network = build_transformer(preset, **sizes, **grouped)
    rows, width = torch.export.Dim("rows", min=1, max=9), torch.export.Dim("width", min=2, max=32)
    names = ("source", "target") if preset == "pre-norm" else ("ids",)
    shapes = {name: {0: rows, 1: width} for name in names}
    ids = torch.randint(1, 50, (2, 7))
    exported = torch.export.export(network, (ids,) * len(names), dynamic_shapes=shapes).module()
    for n_rows, length in ((1, 2), (3, 32)):
        ids = (torch.randint(1, 50, (n_rows, length)),) * len(names)
        torch.testing.assert_close(exported(*ids), network(*ids))
