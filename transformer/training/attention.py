"""Attention for training in bfloat16 on a CPU: fewer operations, and the gradient written out.

`network_with_own_gradient` makes a network take it, as `updates` does for a training in bfloat16.
The numbers are those of `functional.attention`. PyTorch's automatic gradient of it passes over the
(B, H, Tq, Tk) tensors twice as often, and the gradient of PyTorch 2.13's fused kernel took nine
times as long in bfloat16 (12 tokens); in float32 the fused kernel is as fast as this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer.model.functional import as_bias
from transformer.model.hooks import ForwardContext

PART = 128  # queries at a time, where the keys that none of them may read are left out


@contextmanager
def network_with_own_gradient(network: nn.Module) -> Iterator[None]:
    """Inside the block the network's attentions use the gradient written here, wherever they
    compute in bfloat16 on a CPU."""
    attentions = [part for part in network.modules() if isinstance(part, MultiHeadAttention)]
    for each in attentions:
        each.shortcut = shortcut
    try:
        yield
    finally:
        for each in attentions:
            each.shortcut = None


def shortcut(attention: MultiHeadAttention, x: Tensor, context: ForwardContext) -> Tensor | None:
    """The heads' outputs, (B, Tq, H D), without the fused kernel's gradient; None where no
    gradient is needed or the CPU does not compute in bfloat16."""
    weight = attention.query.weight
    if x.device.type != "cpu" or not (torch.is_grad_enabled() and weight.requires_grad):
        return None
    narrow = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else weight.dtype
    if narrow is not torch.bfloat16:
        return None
    mask, causal = context.masks_of(attention.site)
    if not _is_plain(attention, mask, context):
        return attention.z(x, context, explicit=True)
    q, k, v = attention.query, attention.key, attention.value
    if attention.crosses:
        assert context.memory is not None
        asking, answering = q(x), projected(context.memory, k, v)
    else:
        asking, answering = projected(x, q, k, v), None
    bias = None if mask is None else as_bias(mask, asking.dtype)
    return trained_attention(asking, answering, bias, causal, attention.config.n_heads)


def _is_plain(attention: MultiHeadAttention, mask: Tensor | None, context: ForwardContext) -> bool:
    """Whether it is the paper's attention, no hook looks at it, and the mask, if there is one,
    hides keys from all queries alike."""
    config = attention.config
    if context.hooks or context.cache is not None or context.rotation is not None:
        return False
    if attention.training and attention.dropout:
        return False
    if config.shared_projection or config.norm_heads or config.score_divisor != "d_head":
        return False
    sizes = (config.key_heads, config.head_size, config.window)
    return sizes == (config.n_heads, None, None) and (mask is None or mask.shape[-2] == 1)


def projected(x: Tensor, *layers: nn.Linear) -> Tensor:
    """The output of each layer for x, by one product: (B, T, C) -> (B, T, layers * C)."""
    weight = torch.cat([layer.weight for layer in layers])
    bias = None if layers[0].bias is None else torch.cat([layer.bias for layer in layers])
    return F.linear(x, weight, bias)


def trained_attention(
    asking: Tensor, answering: Tensor | None, bias: Tensor | None, causal: bool, n_heads: int
) -> Tensor:
    """softmax(q kT / sqrt(D) + bias) v of every head.

    asking: (B, Tq, C), the queries, and answering: (B, Tk, 2C), keys and values side by side; or
    asking is (B, T, 3C), all three, and answering None. bias: of their dtype, broadcastable to
    (B, H, 1, Tk), what hides keys; causal hides the future too, of a text that reads itself.
    Returns (B, Tq, C), the heads side by side.
    """
    heads: Tensor = _Attention.apply(asking, answering, bias, causal, n_heads)
    return heads


class _Attention(torch.autograd.Function):
    """Heads are rows of a batch, (B * H, T, D); of (Tq, Tk) only the weights are kept."""

    @staticmethod
    def forward(
        ctx: Any,
        asking: Tensor,
        answering: Tensor | None,
        bias: Tensor | None,
        causal: bool,
        n_heads: int,
    ) -> Tensor:
        if answering is None:
            q, k, v = _split(asking, 3, n_heads)
        else:
            (q,), (k, v) = _split(asking, 1, n_heads), _split(answering, 2, n_heads)
        ctx.parts = _parts(q.shape[1], k.shape[1], causal)
        ctx.scale, ctx.n_heads, ctx.crosses = q.shape[2] ** -0.5, n_heads, answering is not None
        made, weights = [], []
        for first, last, seen in ctx.parts:
            scores = _scaled(q[:, first:last], k[:, :seen].mT, ctx.scale)
            if bias is not None:
                scores.unflatten(0, (-1, n_heads)).add_(bias[..., :seen])
            if causal:
                scores[:, :, first:].add_(_future(last - first, scores.dtype))
            weights.append(scores.softmax(dim=-1))
            made.append(weights[-1] @ v[:, :seen])
        ctx.save_for_backward(q, k, v, *weights)
        return _joined([_in_a_row(made)], n_heads)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, *all_weights = ctx.saved_tensors
        (gradient,) = _split(gradients[0], 1, ctx.n_heads)
        of_q, of_k, of_v = [], torch.zeros_like(k), torch.zeros_like(v)
        for (first, last, seen), weights in zip(ctx.parts, all_weights, strict=True):
            given = gradient[:, first:last]
            of_weights = given @ v[:, :seen].mT
            of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)
            of_q.append(_scaled(of_scores, k[:, :seen], ctx.scale))
            of_k[:, :seen].baddbmm_(of_scores.mT, q[:, first:last], alpha=ctx.scale)
            of_v[:, :seen].baddbmm_(weights.mT, given)
        parts = [_in_a_row(of_q), of_k, of_v]
        if ctx.crosses:
            return _joined(parts[:1], ctx.n_heads), _joined(parts[1:], ctx.n_heads), *[None] * 3
        return _joined(parts, ctx.n_heads), *[None] * 4


def _parts(n_queries: int, n_keys: int, causal: bool) -> list[tuple[int, int, int]]:
    """(first, last, seen): the queries before `last` that begin at `first` read the keys before
    `seen`. What lies in the future of all queries of a part is left out."""
    if not causal:
        return [(0, n_queries, n_keys)]
    return [
        (first, min(first + PART, n_queries), min(first + PART, n_queries))
        for first in range(0, n_queries, PART)
    ]


@lru_cache(maxsize=4)
def _future(length: int, dtype: torch.dtype) -> Tensor:
    """The bias that hides the future from each query of a part, (T, T)."""
    lowest = torch.full((length, length), torch.finfo(dtype).min, dtype=dtype)
    return lowest.triu(diagonal=1)


def _split(x: Tensor, n_parts: int, n_heads: int) -> Tensor:
    """(B, T, parts * C) -> (parts, B * H, T, D)."""
    n_rows, length, width = x.shape
    heads = x.view(n_rows, length, n_parts, n_heads, width // (n_parts * n_heads))
    return heads.permute(2, 0, 3, 1, 4).flatten(1, 2)


def _joined(parts: Sequence[Tensor], n_heads: int) -> Tensor:
    """As many (B * H, T, D) as there are parts -> (B, T, parts * C)."""
    heads = [part.unflatten(0, (-1, n_heads)).transpose(1, 2) for part in parts]
    return torch.stack(heads, dim=2).flatten(2)


def _in_a_row(parts: list[Tensor]) -> Tensor:
    """(B * H, t, D) each -> (B * H, T, D)."""
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def _scaled(a: Tensor, b: Tensor, scale: float) -> Tensor:
    """scale * (a b), without a pass of its own for the scale."""
    return torch.baddbmm(a.new_empty(()), a, b, beta=0, alpha=scale)
