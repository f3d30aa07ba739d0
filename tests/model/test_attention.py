"""Attention, by hand and against PyTorch's, and masks that the caller gives."""

import math

import pytest
import torch
from kit.interventions import FAMILIES, attention_of, close, given, read
from kit.models import ids, network, spread

from transformer import ModelConfig, Site, Trace
from transformer.model.attention import MultiHeadAttention
from transformer.model.cache import KeyValueCache
from transformer.model.functional import attention, causal_mask
from transformer.model.hooks import ForwardContext
from transformer.model.sites import sites_of

B, TQ, TK, H, D = 2, 5, 4, 3, 7
C = H * D
SITE = Site("decoder", 0, "self")
CROSS = Site("decoder", 0, "cross")


def layer_at(site):
    config = ModelConfig(vocab_size=11, d_model=C, n_heads=H, n_layers=1, positions="learned")
    return spread(MultiHeadAttention(config, site)).eval()


@pytest.fixture
def layer():
    return layer_at(SITE)


def ragged(batch=B, n_keys=TK):
    """A padding mask (B, 1, 1, Tk) whose second row has one key less."""
    lengths = torch.tensor([n_keys, n_keys - 1])
    return (torch.arange(n_keys) < lengths[:, None])[:, None, None, :]


def test_two_queries_and_two_keys_worked_by_hand():
    q = torch.tensor([[[[1.0, 0, 0, 0], [0, 2.0, 0, 0]]]])
    k = torch.tensor([[[[2.0, 1.0, 0, 0], [0, 1.0, 0, 0]]]])
    v = torch.tensor([[[[10.0, 0], [0, 10.0]]]])
    # q kT = [[2, 0], [2, 2]]; over sqrt(4): [[1, 0], [1, 1]]
    e = math.e
    expected = [[e / (e + 1), 1 / (e + 1)], [0.5, 0.5]]
    output, weights = attention(q, k, v)
    torch.testing.assert_close(weights[0, 0], torch.tensor(expected))
    torch.testing.assert_close(output[0, 0], 10 * torch.tensor(expected))
    output, weights = attention(q, k, v, causal_mask(2, 2))
    assert weights[0, 0].tolist() == [[1.0, 0.0], [0.5, 0.5]]
    assert output[0, 0].tolist() == [[10.0, 0.0], [5.0, 5.0]]


def test_keys_without_values_and_a_mask_of_numbers_get_a_sentence():
    q, k = torch.randn(B, H, TQ, D), torch.randn(B, H, TK, D)
    with pytest.raises(ValueError, match="got 4 keys, 3 values"):
        attention(q, k, k[:, :, :3])
    with pytest.raises(ValueError, match=r"bool, True = may attend; got torch.int64; needed"):
        attention(q, k, k, torch.ones(TQ, TK, dtype=torch.int64))


@pytest.mark.parametrize("traced", [True, False])
def test_a_fully_masked_row_reads_the_mean_of_all_values(layer, traced):
    x = torch.randn(B, TQ, C)
    nothing = torch.zeros(B, 1, 1, TQ, dtype=torch.bool)
    output = layer(x, ForwardContext(mask=nothing, hooks=[Trace()] if traced else []))
    mean = layer.output(layer.value(x).mean(dim=1, keepdim=True)).expand(B, TQ, C)
    torch.testing.assert_close(output, mean, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("traced", [True, False])
def test_half_precision_stays_finite_under_every_mask(layer, dtype, traced):
    half = layer.to(dtype)
    x = torch.randn(B, TQ, C, dtype=dtype)
    for mask in (None, ragged(n_keys=TQ).flip(-1), torch.zeros(B, 1, 1, TQ, dtype=torch.bool)):
        for causal in (True, False):
            hooks = [Trace()] if traced else []
            output = half(x, ForwardContext(mask=mask, causal=causal, hooks=hooks))
            assert output.dtype == dtype
            assert output.isfinite().all()


def test_cross_attention_computes_its_keys_once():
    cross_layer = layer_at(CROSS)
    x, memory, cache = torch.randn(B, TQ, C), torch.randn(B, TK, C), KeyValueCache()
    context = ForwardContext(memory=memory, cache=cache)
    first = cross_layer(x, context)
    keys = cache.get(CROSS)[0]
    again = cross_layer(x, context)
    assert cache.get(CROSS)[0] is keys
    assert keys.shape[2] == TK
    assert again.equal(first)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_small_projection_may_serve_all_heads(family):
    model, trace = network(family, shared_projection=True), Trace()
    text, size, width = given(model, 2), model.config.d_head, model.config.d_model
    read(model, text, trace=trace)
    for site in sites_of(model.config):
        attention = attention_of(model, site)
        assert attention.query.weight.shape == attention.value.weight.shape == (size, size)
        assert attention.output.weight.shape == (width, width)
    first = sites_of(model.config)[0]
    stack = getattr(model, first.stack)
    x = trace.embed[first.stack] + trace.pos_embed[first.stack]
    x = stack.layers[0].self_residual.norm(x)
    query = attention_of(model, first).query
    for head in range(H):
        share = x[..., head * size : (head + 1) * size]
        close(trace[first].q[:, head], share @ query.weight.T + query.bias)


T, TS = 6, 7


@pytest.mark.parametrize("family", ["decoder", "encoder"])
def test_a_given_mask_replaces_the_networks_own(family):
    model, tokens, trace = network(family), ids(2, T), Trace()
    window = (torch.arange(T)[:, None] - torch.arange(T)).abs() < 2  # one to either side
    logits = model(tokens, mask=window, trace=trace)
    for record in trace.records.values():
        assert torch.equal(record.allowed, window.expand(2, T, T))
        wanted = record.scores.masked_fill(~window, -torch.inf).softmax(-1)
        torch.testing.assert_close(record.pattern, wanted)
    for mask in (window, window.expand(2, 1, T, T)):  # the fused kernel reads it too
        close(model(tokens, mask=mask), logits)


def test_a_source_mask_also_hides_keys_from_cross_attention():
    model, source, target = network("encoder-decoder"), ids(1, TS), ids(1, T)
    first_five = (torch.arange(TS) < 5)[None, None, None]
    short = model(source[:, :5], target)
    close(model(source, target, src_mask=first_five), short)
    trace = Trace()
    own = torch.eye(T, dtype=torch.bool)
    model(source, target, src_mask=causal_mask(TS, TS), tgt_mask=own, trace=trace)
    assert torch.equal(trace["encoder.0.self"].allowed[0], causal_mask(TS, TS))
    assert torch.equal(trace["decoder.1.self"].allowed[0], own)
    assert bool(trace["decoder.0.cross"].allowed.all())


def test_a_given_mask_and_a_cache_read_a_text_piece_by_piece():
    model, tokens, cache = network(), ids(1, T), KeyValueCache()
    window = causal_mask(T, T) & (torch.arange(T)[:, None] - torch.arange(T) < 3)
    whole = model(tokens, mask=window)
    first = model(tokens[:, :3], mask=window[:3, :3], cache=cache)
    rest = model(tokens[:, 3:], mask=window[3:], cache=cache)
    close(torch.cat([first, rest], dim=1), whole)


MASKS = [
    (torch.ones(T, T), "must be bool, True = may attend; got torch.float32; needed: mask == 1"),
    (torch.ones(T, T).bool()[:-1], r"must be of shape \(6, 6\) or .*; got \(5, 6\)"),
    (torch.ones(2, T, T).bool(), r"got \(2, 6, 6\)"),
    (torch.ones(2, 3, T, T).bool(), r"got \(2, 3, 6, 6\)"),
    (torch.ones(T).bool(), r"got \(6,\)"),
]


@pytest.mark.parametrize("family", ["decoder", "encoder"])
@pytest.mark.parametrize(("mask", "sentence"), MASKS)
def test_a_mask_of_another_kind_gets_a_sentence(mask, sentence, family):
    with pytest.raises(ValueError, match=sentence):
        network(family)(ids(2, T), mask=mask)


def test_more_queries_than_keys_is_an_error_that_names_both():
    with pytest.raises(ValueError, match="got 4 queries, 3 keys"):
        causal_mask(4, 3)
