"""Token by token with a cache against one full pass."""

import pytest
import torch
from builders import H, L, ids, network

from transformer import Trace
from transformer.model.cache import KeyValueCache


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize("sizes", [[1] * 7, [4, 1, 2], [7]])
@pytest.mark.parametrize("padding", ["none", "left", "no padding id"])
def test_a_cache_gives_what_one_full_pass_gives(norm, positions, sizes, padding):
    padding_id = None if padding == "no padding id" else 0
    model = network(norm=norm, positions=positions, padding_id=padding_id)
    tokens = ids(2, 7)
    if padding == "left":
        tokens[1, :3] = 0
    whole, cache = model(tokens), KeyValueCache()
    parts = torch.cat([model(part, cache=cache) for part in tokens.split(sizes, dim=1)], dim=1)
    real = torch.ones_like(tokens, dtype=torch.bool) if padding_id is None else tokens != 0
    torch.testing.assert_close(parts[real], whole[real], atol=1e-5, rtol=1e-5)
    assert parts.isfinite().all()
    assert cache.length == 7


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_an_encoder_decoder_with_a_cache_gives_what_one_full_pass_gives(norm):
    model = network("encoder-decoder", norm=norm)
    source, target = ids(2, 6), ids(2, 5)
    source[1, 4:] = 0
    memory, cache = model.encode(source), KeyValueCache()
    parts = [model.decode(part, memory, source, cache=cache) for part in target.split(1, dim=1)]
    whole = model(source, target)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-5, rtol=1e-5)


def test_a_trace_with_a_cache_records_only_the_new_queries():
    model, tokens = network(), ids(2, 6)
    cache, full, step = KeyValueCache(), Trace(), Trace()
    model(tokens, trace=full)
    model(tokens[:, :5], cache=cache)
    model(tokens[:, 5:], cache=cache, trace=step)
    assert step.weights("decoder").shape == (L, 2, H, 1, 6)
    torch.testing.assert_close(
        step.weights("decoder")[..., 0, :], full.weights("decoder")[..., 5, :]
    )
