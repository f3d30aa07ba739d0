"""Scaled dot-product attention, many heads of it, and the cache of keys and values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.model.attention_training import projected, trained_attention
from transformer.model.config import ModelConfig
from transformer.model.masks import causal_mask, combine
from transformer.model.trace import Site, Trace

if TYPE_CHECKING:
    from transformer.model.changes import Changes


def attention_scores(q: Tensor, k: Tensor) -> Tensor:
    """q kT / sqrt(D): how well each query agrees with each key.

    q: (B, H, Tq, D); k: (B, H, Tk, D) -> (B, H, Tq, Tk).
    The divisor is the head's size D, not d_model: it keeps the scores' variance near 1.
    """
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Turn each row of scores into weights that sum to 1, with 0 where the mask forbids.

    scores: (B, H, Tq, Tk); mask: bool, True = may attend, broadcastable to the scores.
    A row with nothing allowed becomes uniform (the fill is the dtype's lowest finite number).
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1)


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Weigh values by query-key agreement: softmax(q kT / sqrt(D)) v.

    q: (B, H, Tq, D); k, v: (B, H, Tk, D); mask: bool, True = may attend, broadcastable to
    (B, H, Tq, Tk). Returns output (B, H, Tq, D) and weights (B, H, Tq, Tk).
    Raises ValueError if k and v differ in length.
    Source: Vaswani et al. 2017, equation 1. Departure: dropout is the caller's.
    """
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"keys and values must have one length; got {k.shape[-2]} keys, {v.shape[-2]} values"
        )
    weights = masked_softmax(attention_scores(q, k), mask)
    return weights @ v, weights


class KeyValueCache:
    """Keys and values already computed, by site. Made by the caller; belongs to one run.

    Self-attention sites grow with each call; cross-attention sites are filled once, since the
    memory that they read does not change.
    """

    def __init__(self) -> None:
        self.length = 0  # positions read so far
        self.key_mask: Tensor | None = None  # (B, 1, 1, length), which of them are not padding
        self._pairs: dict[Site, tuple[Tensor, Tensor]] = {}

    def extend(self, site: Site, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append (B, H, T, D) keys and values; returns all so far."""
        if site in self._pairs:
            past_k, past_v = self._pairs[site]
            k, v = torch.cat([past_k, k], dim=2), torch.cat([past_v, v], dim=2)
        self._pairs[site] = (k, v)
        return k, v

    def get(self, site: Site) -> tuple[Tensor, Tensor] | None:
        """The pair stored for a site, if any."""
        return self._pairs.get(site)

    def put(self, site: Site, k: Tensor, v: Tensor) -> None:
        """Store a pair that will not grow."""
        self._pairs[site] = (k, v)

    def select(self, rows: Tensor, *, crossing: bool = True) -> None:
        """Keep these rows of the batch, in this order; a row may be taken more than once.

        rows: (B',) int64. Beam search calls it when hypotheses die and branch. crossing=False
        leaves cross-attention as it is, for when each place goes on with the same memory.
        """
        for site, (k, v) in self._pairs.items():
            if crossing or site.kind != "cross":
                self._pairs[site] = (k.index_select(0, rows), v.index_select(0, rows))
        if self.key_mask is not None:
            self.key_mask = self.key_mask[rows]

    def extend_mask(self, mask: Tensor | None) -> Tensor | None:
        """Append the padding mask (B, 1, 1, T) of new keys; returns that of all keys so far."""
        if mask is not None and self.key_mask is not None:
            mask = torch.cat([self.key_mask, mask], dim=-1)
        self.key_mask = mask
        return mask


class MultiHeadAttention(nn.Module):
    """H attentions side by side, each on its own D = C / H features of full projections.

    W_q, W_k, W_v and W_o are (C, C): every head reads all of x.
    Source: Vaswani et al. 2017, section 3.2.2.
    """

    def __init__(self, config: ModelConfig, site: Site) -> None:
        super().__init__()
        self.site = site
        self.n_heads = config.n_heads
        self.dropout = config.attention_dropout
        size, bias = config.d_model, config.attention_bias
        self.query = nn.Linear(size, size, bias=bias)
        self.key = nn.Linear(size, size, bias=bias)
        self.value = nn.Linear(size, size, bias=bias)
        self.output = nn.Linear(size, size, bias=bias)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        mask: Tensor | None = None,
        causal: bool = False,
        cache: KeyValueCache | None = None,
        trace: Trace | None = None,
        changes: Changes | None = None,
    ) -> Tensor:
        """x: (B, Tq, C) asks; memory (B, Tk, C), or x itself, answers. Returns (B, Tq, C).

        mask: bool, True = may attend, broadcastable to (B, H, Tq, Tk); causal hides the future too.
        """
        learns = _learns_in_bfloat16(x, self.query.weight)
        plain = cache is None and trace is None and changes is None
        plain = plain and (mask is None or mask.shape[-2] == 1)  # hides keys, whoever asks
        if learns and plain and not (self.training and self.dropout):
            return self.output(self._trained(x, memory, mask, causal))
        q = self._split(self.query(x))  # (B, H, Tq, D)
        k, v = self._keys_and_values(x, memory, cache)  # (B, H, Tk, D) each
        if changes is not None:
            heads = self._changed(q, k, v, mask, causal, trace, changes)  # (B, H, Tq, D)
        elif trace is not None or learns:
            heads = self._step_by_step(q, k, v, mask, causal, trace)
        else:
            heads = self._fused(q, k, v, mask, causal)
        return self.output(heads.transpose(1, 2).flatten(2))  # (B, Tq, C)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)  # (B, H, T, D)

    def _keys_and_values(
        self, x: Tensor, memory: Tensor | None, cache: KeyValueCache | None
    ) -> tuple[Tensor, Tensor]:
        crossing = memory is not None
        if crossing and cache is not None and (known := cache.get(self.site)) is not None:
            return known
        source = x if memory is None else memory
        k, v = self._split(self.key(source)), self._split(self.value(source))
        if cache is None:
            return k, v
        if crossing:
            cache.put(self.site, k, v)
            return k, v
        return cache.extend(self.site, k, v)

    def _trained(
        self, x: Tensor, memory: Tensor | None, mask: Tensor | None, causal: bool
    ) -> Tensor:
        """The same for training in bfloat16 on a CPU: (B, Tq, C), the heads side by side."""
        if memory is None:
            asking, answering = projected(x, self.query, self.key, self.value), None
        else:
            asking, answering = self.query(x), projected(memory, self.key, self.value)
        bias = None if mask is None else _as_bias(mask, asking.dtype)
        return trained_attention(asking, answering, bias, causal, self.n_heads)

    def _step_by_step(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        causal: bool,
        trace: Trace | None,
    ) -> Tensor:
        """Equation 1, with every number kept where a trace is given."""
        if causal:
            mask = combine(causal_mask(q.shape[2], k.shape[2], q.device), mask)
        scores = attention_scores(q, k)
        weights = masked_softmax(scores, mask)
        if trace is not None:
            trace.record_attention(self.site, scores, weights, mask, (q, k, v))
        return F.dropout(weights, self.dropout, self.training) @ v

    def _changed(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        padding: Tensor | None,
        causal: bool,
        trace: Trace | None,
        changes: Changes,
    ) -> Tensor:
        """The same with whatever a visitor altered."""
        mask = None if changes.removes(self.site, "padding") else padding
        if causal and not changes.removes(self.site, "causal"):
            mask = combine(causal_mask(q.shape[2], k.shape[2], q.device), mask)
        scores = changes.scaled(attention_scores(q, k))
        mask = changes.edited(self.site, mask, scores)
        weights = changes.weighed(scores, mask, masked_softmax(scores, mask))
        if trace is not None:
            trace.record_attention(self.site, scores, weights, mask, (q, k, v))
        return changes.heads(self.site, weights @ v, padding)

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """The same by PyTorch's fused kernel, which keeps no weights."""
        dropout = self.dropout if self.training else 0.0
        n_queries, n_keys = q.shape[2], k.shape[2]
        if causal and mask is None and n_queries == n_keys:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
        if causal and n_queries > 1:  # a single query stands last: all keys are its past
            mask = combine(causal_mask(n_queries, n_keys, q.device), mask)
        bias = None if mask is None else _as_bias(mask, q.dtype)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=dropout)


def _learns_in_bfloat16(x: Tensor, weight: Tensor) -> bool:
    """Whether this is training in bfloat16 on a CPU, where PyTorch's fused kernel is slow."""
    if x.device.type != "cpu" or not (torch.is_grad_enabled() and weight.requires_grad):
        return False
    narrow = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else weight.dtype
    return narrow is torch.bfloat16


def _as_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """What to add to scores; finite, so that a fully masked row is uniform as in masked_softmax.

    (float16's lowest number does not drown the scores: there such a row is finite, not uniform.)
    """
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return bias.masked_fill(~mask, torch.finfo(dtype).min)
