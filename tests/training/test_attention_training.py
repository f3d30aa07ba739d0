"""Attention with its gradient written out against automatic gradients and PyTorch's own module."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer.model.functional import attention
from transformer.model.hooks import ForwardContext
from transformer.model.masks import causal_mask, combine, padding_mask
from transformer.model.presets import preset
from transformer.model.sites import Site
from transformer.training.attention import network_with_own_gradient, trained_attention

N_ROWS, N_HEADS, SIZE = 2, 3, 12
IDS = torch.tensor([[5, 6, 7, 0], [5, 0, 0, 0]])


def heads_of(x: Tensor) -> Tensor:
    return x.unflatten(-1, (N_HEADS, -1)).transpose(1, 2)


def bias_of(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else torch.zeros(mask.shape).double().masked_fill(~mask, -1e300)


@pytest.mark.parametrize("part", [1, 3, 8])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padding", [None, padding_mask(IDS, 0)], ids=["whole", "padded"])
def test_self_attention_has_the_numbers_and_the_gradient_of_the_readable_one(
    padding, causal, part, monkeypatch
):
    monkeypatch.setattr("transformer.training.attention.PART", part)
    parts = torch.randn(N_ROWS, 4, 3 * SIZE, dtype=torch.float64, requires_grad=True)
    found = trained_attention(parts, None, bias_of(padding), causal, N_HEADS)
    q, k, v = (heads_of(x) for x in parts.chunk(3, dim=-1))
    mask = combine(causal_mask(4, 4) if causal else None, padding)
    wanted = attention(q, k, v, mask)[0].transpose(1, 2).flatten(2)
    assert torch.allclose(found, wanted, atol=1e-12)
    upstream = torch.randn_like(wanted)
    (ours,) = torch.autograd.grad(found, parts, upstream)
    (theirs,) = torch.autograd.grad(wanted, parts, upstream)
    assert torch.allclose(ours, theirs, atol=1e-12)


def test_cross_attention_has_the_gradient_that_differences_give():
    asking = torch.randn(N_ROWS, 2, SIZE, dtype=torch.float64, requires_grad=True)
    answering = torch.randn(N_ROWS, 4, 2 * SIZE, dtype=torch.float64, requires_grad=True)
    bias = bias_of(padding_mask(IDS, 0))
    assert torch.autograd.gradcheck(
        lambda a, b: trained_attention(a, b, bias, False, N_HEADS), (asking, answering)
    )


@pytest.mark.parametrize("crosses", [False, True])
def test_in_bfloat16_the_block_learns_as_pytorchs_own(crosses):
    changes = dict(vocab_size=10, d_model=SIZE, n_heads=N_HEADS, n_layers=1, attention_dropout=0.0)
    block = MultiHeadAttention(
        preset("gpt", **changes), Site("decoder", 0, "cross" if crosses else "self")
    )
    peer = nn.MultiheadAttention(SIZE, N_HEADS, batch_first=True)
    with torch.no_grad():
        inside = (block.query, block.key, block.value)
        peer.in_proj_weight.copy_(torch.cat([layer.weight for layer in inside]))
        peer.in_proj_bias.copy_(torch.cat([layer.bias for layer in inside]))
        peer.out_proj.load_state_dict(block.output.state_dict())
    x, memory = torch.randn(N_ROWS, 4, SIZE), torch.randn(N_ROWS, 4, SIZE)
    read = memory if crosses else x
    with torch.autocast("cpu", torch.bfloat16), network_with_own_gradient(block):
        found = block(
            x, ForwardContext(memory=memory, mask=padding_mask(IDS, 0), causal=not crosses)
        )
    found.float().square().sum().backward()
    hidden = None if crosses else ~causal_mask(4, 4)
    padding = None if crosses else IDS == 0
    wanted, _ = peer(x, read, read, attn_mask=hidden, key_padding_mask=padding)
    wanted.square().sum().backward()
    assert found.dtype is torch.bfloat16
    assert torch.allclose(found.float(), wanted, atol=0.02)
    ours = torch.cat([layer.weight.grad for layer in inside])
    cosine = torch.cosine_similarity(ours.flatten(), peer.in_proj_weight.grad.flatten(), dim=0)
    assert cosine > 0.999
