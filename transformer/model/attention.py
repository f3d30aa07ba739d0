"""Multi-head attention, after Vaswani et al. 2017, section 3.2."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from transformer.model.config import ModelConfig
from transformer.model.functional import (
    attention_scores,
    combine,
    fused_attention,
    masked_softmax,
    position_mask,
    soft_cap,
)
from transformer.model.hooks import PLAIN, ForwardContext
from transformer.model.positions import bias_of
from transformer.model.primitives import Linear, norm_of
from transformer.model.rotary import RotaryAngles, apply_rotary
from transformer.model.score_bias import ByDistance
from transformer.model.sites import Site


class MultiHeadAttention(nn.Module):
    """H heads in parallel: each weighs the values by how well their keys agree with its query.

    W_q and W_o are (C, H D) and (H D, C): every head reads all of x. Keys and values are computed
    from x or, in cross-attention, from the memory. With G < H heads of keys and values, W_k and
    W_v are (C, G D): H / G heads of queries share one (grouped-query attention).
    Departure, with `shared_projection`: W_q, W_k and W_v are (D, D) and shared by all heads.
    """

    def __init__(self, config: ModelConfig, site: Site) -> None:
        super().__init__()
        self.config, self.site = config, site
        self.crosses = site.kind == "cross"
        self.layer_type = config.layer_type(site.layer)
        self.window = None if self.crosses else config.window_of(site.layer)
        self.dropout = config.attention_dropout
        d_in = config.d_head if config.shared_projection else config.d_model
        d_q, d_k = (
            config.d_head * (1 if config.shared_projection else n)
            for n in (config.n_heads, config.key_heads)
        )
        self.query = Linear(d_in, d_q, bias=config.attention_bias)
        self.key = Linear(d_in, d_k, bias=config.attention_bias)
        self.value = Linear(d_in, d_k, bias=config.attention_bias)
        d_z = config.n_heads * config.d_head
        self.output = Linear(d_z, config.d_model, bias=config.has_output_bias)
        both_ways = site.stack == "encoder"
        self.relative = None if self.crosses else bias_of(config, both_ways, of_layer=True)
        self.query_norm = self.key_norm = None
        if config.norm_heads or config.norm_all_heads:
            sizes = (d_q, d_k) if config.norm_all_heads else (config.d_head, config.d_head)
            self.query_norm, self.key_norm = (
                norm_of(config.norm_kind, size, config.norm_eps) for size in sizes
            )

    def forward(self, x: Tensor, context: ForwardContext = PLAIN) -> Tensor:
        """x: (B, Tq, C) -> (B, Tq, C)."""
        q, k, v = self.q_k_v(x, context)
        q, k = context.at("q", self.site, q), context.at("k", self.site, k)
        v = context.at("v", self.site, v)
        share = self.config.heads_per_key
        if share > 1:
            k, v = (heads.repeat_interleave(share, dim=1) for heads in (k, v))  # (B, H, Tk, D)
        if context.step_by_step or not self.config.scores_are_products:
            heads = self.explicit(q, k, v, context)
        else:
            padding, causal = context.masks_of(self.site)
            dropout = self.dropout if self.training else 0.0
            settings = (self.config.score_size, self.window if context.windowed else None, dropout)
            heads = fused_attention(q, k, v, padding, causal, *settings)
        joined = heads.transpose(1, 2).flatten(2)  # (B, Tq, H D)
        return context.at("attn_out", self.site, self.output(joined))

    def q_k_v(self, x: Tensor, context: ForwardContext) -> tuple[Tensor, Tensor, Tensor]:
        """q (B, H, Tq, D), k and v (B, G, Tk, D); q and k normalised and rotated if configured.

        Self-attention appends k and v to those in the cache; cross-attention reads the memory.
        """
        cache, angles = context.cache, context.angles_of(self.site, self.layer_type)
        q = self._heads(self.query, x, self.query_norm, angles)
        known = cache.get(self.site) if self.crosses and cache is not None else None
        if known is not None:
            return q, *known
        source = context.memory if self.crosses else x
        assert source is not None
        k, v = self.k_v(source, angles)
        return (q, k, v) if cache is None else (q, *cache.extend(self.site, k, v))

    def k_v(self, source: Tensor, angles: RotaryAngles | None = None) -> tuple[Tensor, Tensor]:
        """Keys and values (B, G, T, D) of a source (B, T, C); keys normalised if configured, and
        rotated by angles."""
        k = self._heads(self.key, source, self.key_norm, angles)
        return k, self._heads(self.value, source)

    def explicit(self, q: Tensor, k: Tensor, v: Tensor, context: ForwardContext) -> Tensor:
        """softmax(q kT / sqrt(D)) v, equation 1, each step visible to hooks: (B, H, Tq, D)."""
        site, (padding, causal) = self.site, context.masks_of(self.site)
        sizes = (q.shape[2], k.shape[2])
        window = self.window if context.windowed else None
        hidden = position_mask(*sizes, q.device, causal=causal, window=window)
        shown = context.at("padding_mask", site, padding)
        mask = combine(context.at("position_mask", site, hidden), shown)
        scores = attention_scores(q, k, self.config.score_size)
        bias = context.bias if self.relative is None else self.relative(*context.positions)
        if context.distances is not None and not self.crosses:
            bias = self.content_bias(q, k, context.distances)
        if bias is not None and not self.crosses:
            scores = scores + bias
        scores = soft_cap(scores, self.config.score_cap)
        scores = context.at("scores", site, scores)
        edited = context.at("mask", site, mask, scores=scores, padding_mask=shown)
        # A hook may leave a query no key: it then reads the text. (Without one, only padding does.)
        padding = None if edited is mask else shown
        pattern = masked_softmax(scores, edited, padding)  # (B, H, Tq, Tk)
        pattern = context.at(
            "pattern", site, pattern, scores=scores, mask=edited, padding_mask=shown, q=q, k=k, v=v
        )
        z = F.dropout(pattern, self.dropout, self.training) @ v
        return context.at("z", site, z)

    def content_bias(self, q: Tensor, k: Tensor, distances: ByDistance) -> Tensor:
        """What a query and the distance to a key, and the key and this distance, add to their
        score: (B, H, Tq, Tk). The distances' vectors are projected as tokens are.

        Source: He et al. 2021 (DeBERTa), equation 4, with shared projections.
        """
        share, index = self.config.heads_per_key, distances.rows
        queries = self._heads(self.query, distances.vectors[None])  # (1, H, N, D)
        keys = self._heads(self.key, distances.vectors[None]).repeat_interleave(share, dim=1)
        index = index if index.dim() == 2 else index[:, None]
        shape = (*q.shape[:2], q.shape[2], k.shape[2])
        by_query = (q @ keys.mT).gather(-1, index.expand(shape))
        by_key = (k @ queries.mT).gather(-1, index.expand(shape).mT).mT
        return (by_query + by_key) / self.config.score_size**0.5

    def _heads(
        self,
        linear: nn.Linear,
        x: Tensor,
        norm: nn.Module | None = None,
        angles: RotaryAngles | None = None,
    ) -> Tensor:
        """(B, T, C) -> (B, heads, T, D)."""
        if self.config.shared_projection:
            heads = linear(x.unflatten(-1, (self.config.n_heads, -1))).transpose(1, 2)
        else:
            x = linear(x)
            if norm is not None and self.config.norm_all_heads:
                x, norm = norm(x), None
            heads = x.unflatten(-1, (-1, self.config.d_head)).transpose(1, 2)
        heads = heads if norm is None else norm(heads)
        return heads if angles is None else apply_rotary(heads, angles)
