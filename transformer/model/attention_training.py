"""Attention for training in bfloat16 on a CPU: fewer operations, and the gradient written out.

The numbers are those of `attention.attention`. PyTorch's automatic gradient of it passes over the
(B, H, Tq, Tk) tensors twice as often, and the gradient of PyTorch 2.13's fused kernel took nine
times as long in bfloat16 (12 tokens); in float32 the fused kernel is as fast as this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def projected(x: Tensor, *layers: nn.Linear) -> Tensor:
    """What each layer makes of x, by one product: (B, T, C) -> (B, T, layers * C)."""
    weight = torch.cat([layer.weight for layer in layers])
    bias = None if layers[0].bias is None else torch.cat([layer.bias for layer in layers])
    return F.linear(x, weight, bias)


def trained_attention(
    asking: Tensor, answering: Tensor | None, bias: Tensor | None, n_heads: int
) -> Tensor:
    """softmax(q kT / sqrt(D) + bias) v of every head.

    asking: (B, Tq, C), the queries, and answering: (B, Tk, 2C), keys and values side by side; or
    asking is (B, T, 3C), all three, and answering None. bias: of their dtype, broadcastable to
    (B, H, Tq, Tk), what hides keys. Returns (B, Tq, C), the heads side by side.
    """
    heads: Tensor = _Attention.apply(asking, answering, bias, n_heads)
    return heads


class _Attention(torch.autograd.Function):
    """Heads are rows of a batch, (B * H, T, D); of (Tq, Tk) only the weights are kept."""

    @staticmethod
    def forward(
        ctx: Any, asking: Tensor, answering: Tensor | None, bias: Tensor | None, n_heads: int
    ) -> Tensor:
        n_rows = len(asking)
        if answering is None:
            q, k, v = _split(asking, 3, n_heads)
        else:
            (q,), (k, v) = _split(asking, 1, n_heads), _split(answering, 2, n_heads)
        scale = q.shape[2] ** -0.5
        scores = _scaled(q, k.mT, scale)
        if bias is not None:
            scores.unflatten(0, (n_rows, n_heads)).add_(bias)
        weights = scores.softmax(dim=-1)
        ctx.save_for_backward(q, k, v, weights)
        ctx.crosses, ctx.n_heads, ctx.scale = answering is not None, n_heads, scale
        return _joined([weights @ v], n_heads)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights = ctx.saved_tensors
        (gradient,) = _split(gradients[0], 1, ctx.n_heads)
        of_v = weights.mT @ gradient
        of_weights = gradient @ v.mT
        of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)
        of_q, of_k = _scaled(of_scores, k, ctx.scale), _scaled(of_scores.mT, q, ctx.scale)
        if ctx.crosses:
            return _joined([of_q], ctx.n_heads), _joined([of_k, of_v], ctx.n_heads), None, None
        return _joined([of_q, of_k, of_v], ctx.n_heads), None, None, None


def _split(x: Tensor, n_parts: int, n_heads: int) -> Tensor:
    """(B, T, parts * C) -> (parts, B * H, T, D)."""
    n_rows, length, width = x.shape
    heads = x.view(n_rows, length, n_parts, n_heads, width // (n_parts * n_heads))
    return heads.permute(2, 0, 3, 1, 4).flatten(1, 2)


def _joined(parts: Sequence[Tensor], n_heads: int) -> Tensor:
    """As many (B * H, T, D) as there are parts -> (B, T, parts * C)."""
    heads = [part.unflatten(0, (-1, n_heads)).transpose(1, 2) for part in parts]
    return torch.stack(heads, dim=2).flatten(2)


def _scaled(a: Tensor, b: Tensor, scale: float) -> Tensor:
    """scale * (a b), without a pass of its own for the scale."""
    return torch.baddbmm(a.new_empty(()), a, b, beta=0, alpha=scale)
