"""Attention with its gradient written out against automatic gradients."""

import pytest
import torch
from torch import Tensor

from transformer.model.functional import attention
from transformer.model.masks import causal_mask, combine, padding_mask
from transformer.training.attention import trained_attention

N_ROWS, N_HEADS, SIZE = 2, 3, 12
IDS = torch.tensor([[5, 6, 7, 0], [5, 0, 0, 0]])


def heads_of(x: Tensor) -> Tensor:
    return x.unflatten(-1, (N_HEADS, -1)).transpose(1, 2)


def bias_of(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else torch.zeros(mask.shape).double().masked_fill(~mask, -1e300)


@pytest.mark.parametrize("part", [1, 3, 8])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padding", [None, padding_mask(IDS != 0)], ids=["whole", "padded"])
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
    bias = bias_of(padding_mask(IDS != 0))
    assert torch.autograd.gradcheck(
        lambda a, b: trained_attention(a, b, bias, False, N_HEADS), (asking, answering)
    )
