"""Multi-head attention as a module of the network."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.model.attention_training import projected, trained_attention
from transformer.model.config import ModelConfig
from transformer.model.functional import as_bias, attention_scores, masked_softmax
from transformer.model.hooks import PLAIN, ForwardContext
from transformer.model.masks import causal_mask, combine
from transformer.model.norms import norm_of
from transformer.model.rotary import turned
from transformer.model.sites import Site
from transformer.model.stored import Linear


class MultiHeadAttention(nn.Module):
    """H attentions side by side, each on its own D = C / H features of full projections.

    W_q, W_k, W_v and W_o are (C, C): every head reads all of x. Where its site is "cross", the
    memory of the pass answers; else x itself. With a head size of its own W_q is (C, H D), and with
    fewer heads of keys and values, G, W_k and W_v are (C, G D): H / G heads of queries share one.
    Source: Vaswani et al. 2017, section 3.2.2. Departure, if asked for: W_q, W_k and W_v are (D, D)
    and shared by all heads.
    """

    def __init__(self, config: ModelConfig, site: Site) -> None:
        super().__init__()
        self.site = site
        self.n_heads = config.n_heads
        self.dropout = config.attention_dropout
        self.shared, self.score_size = config.shared_projection, config.score_size
        self.is_the_papers = (
            not self.shared
            and config.score_divisor == "d_head"
            and (config.key_heads, config.head_size, config.window) == (self.n_heads, None, None)
            and not config.norm_heads
        )
        self.n_key_heads, self.window = config.key_heads, config.window
        size, bias = config.d_head if self.shared else config.d_model, config.attention_bias
        asking, answering = (
            config.d_head * (1 if self.shared else n) for n in (self.n_heads, self.n_key_heads)
        )
        self.query = Linear(size, asking, bias=bias)
        self.key = Linear(size, answering, bias=bias)
        self.value = Linear(size, answering, bias=bias)
        wide = config.n_heads * config.d_head
        self.output = Linear(wide, config.d_model, bias=config.has_output_bias)
        self.query_norm = self._norm(config) if config.norm_heads else None
        self.key_norm = self._norm(config) if config.norm_heads else None

    def forward(self, x: Tensor, context: ForwardContext = PLAIN) -> Tensor:
        """x: (B, Tq, C) asks. Returns (B, Tq, C).

        With hooks every number stands on the way, (B, H, Tq, Tk) scores and weights among them;
        without, PyTorch's fused kernel does the same.
        """
        source, mask, causal = self._read_by(x, context)
        learns = _learns_in_bfloat16(x, self.query.weight)
        if learns and self._is_plain(mask, context):
            return self.output(self._trained(x, source, mask, causal))
        q = self._heads(self.query, x, self.n_heads)  # (B, H, Tq, D)
        q = self._placed(q, self.query_norm, context)
        k, v = self._keys_and_values(source, context)  # (B, G, Tk, D) each
        if context.hooks:
            both = combine(self._future(q, k, causal), mask)
            told = {"read_keys": k, "values": v, "both_masks": both}
            q = context.at("queries", self.site, q, **told)
        k, v = self._for_each_query_head(k), self._for_each_query_head(v)  # (B, H, Tk, D)
        if context.step_by_step or learns:
            heads = self._step_by_step(q, k, v, mask, causal, context)  # (B, H, Tq, D)
        else:
            heads = self._fused(q, k, v, mask, causal)
        return self.output(heads.transpose(1, 2).flatten(2))  # (B, Tq, C)

    @property
    def crosses(self) -> bool:
        """Whether it reads the encoder's memory."""
        return self.site.kind == "cross"

    def _read_by(self, x: Tensor, context: ForwardContext) -> tuple[Tensor, Tensor | None, bool]:
        """What keys and values are made of, which of them may be read, and if only the past."""
        if not self.crosses:
            return x, context.mask, context.causal
        assert context.memory is not None
        return context.memory, context.memory_mask, False

    def _is_plain(self, mask: Tensor | None, context: ForwardContext) -> bool:
        """Whether nobody looks and the mask, if there is one, hides keys from all queries alike."""
        if context.hooks or context.cache is not None or (self.training and self.dropout):
            return False
        if not self.is_the_papers or context.rotation is not None:
            return False
        return mask is None or mask.shape[-2] == 1

    @staticmethod
    def _norm(config: ModelConfig) -> nn.Module:
        return norm_of(config.norm_kind, config.d_head, config.norm_eps)

    def _heads(self, projection: nn.Linear, x: Tensor, n_heads: int) -> Tensor:
        """(B, T, C) -> (B, n_heads, T, D)."""
        if self.shared:
            return projection(_split(x, n_heads))
        return _split(projection(x), n_heads)

    def _placed(self, x: Tensor, norm: nn.Module | None, context: ForwardContext) -> Tensor:
        """Queries or keys, normed and turned by their places where the network does so."""
        x = x if norm is None else norm(x)
        return x if context.rotation is None or self.crosses else turned(x, context.rotation)

    def _for_each_query_head(self, x: Tensor) -> Tensor:
        """Keys or values (B, G, T, D) -> (B, H, T, D)."""
        share = self.n_heads // self.n_key_heads
        return x if share == 1 else x.repeat_interleave(share, dim=1)

    def _keys_and_values(self, source: Tensor, context: ForwardContext) -> tuple[Tensor, Tensor]:
        cache = context.cache
        known = cache.get(self.site) if cache is not None and self.crosses else None
        if known is not None:
            return known
        k, v = (self._heads(made, source, self.n_key_heads) for made in (self.key, self.value))
        k = self._placed(k, self.key_norm, context)
        if cache is None:
            return k, v
        if self.crosses:
            cache.put(self.site, k, v)
            return k, v
        return cache.extend(self.site, k, v)

    def _trained(self, x: Tensor, source: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """The same for training in bfloat16 on a CPU: (B, Tq, C), the heads side by side."""
        if self.crosses:
            asking, answering = self.query(x), projected(source, self.key, self.value)
        else:
            asking, answering = projected(x, self.query, self.key, self.value), None
        bias = None if mask is None else as_bias(mask, asking.dtype)
        return trained_attention(asking, answering, bias, causal, self.n_heads)

    def _step_by_step(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        padding: Tensor | None,
        causal: bool,
        context: ForwardContext,
    ) -> Tensor:
        """Equation 1, with every number shown to the hooks."""
        here, future = self.site, self._future(q, k, causal)
        k = context.at("keys", here, k)
        shown = context.at("padding_mask", here, padding)
        mask = combine(context.at("causal_mask", here, future), shown)
        scores = context.at("scores", here, attention_scores(q, k, self.score_size))
        mask = context.at("mask", here, mask, scores=scores)
        made_of = {"scores": scores, "mask": mask, "queries": q, "keys": k, "values": v}
        weights = context.at("weights", here, masked_softmax(scores, mask), **made_of)
        heads = F.dropout(weights, self.dropout, self.training) @ v
        return context.at("heads", here, heads, padding_mask=padding)

    def _future(self, q: Tensor, k: Tensor, causal: bool) -> Tensor | None:
        """(Tq, Tk) bool, what hides the future where that is hidden."""
        if not causal:
            return None
        return causal_mask(q.shape[2], k.shape[2], q.device, self.window)

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """The same by PyTorch's fused kernel, which keeps no weights."""
        dropout = self.dropout if self.training else 0.0
        n_queries, n_keys = q.shape[2], k.shape[2]
        settings = {"dropout_p": dropout, "scale": self.score_size**-0.5}
        slides = self.window is not None and n_keys > self.window
        if causal and mask is None and n_queries == n_keys and not slides:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, **settings)
        if causal and (n_queries > 1 or slides):  # a single query stands last: all is its past
            mask = combine(causal_mask(n_queries, n_keys, q.device, self.window), mask)
        bias = None if mask is None else as_bias(mask, q.dtype)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, **settings)


def _split(x: Tensor, n_heads: int) -> Tensor:
    """(B, T, H D) -> (B, H, T, D)."""
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def _learns_in_bfloat16(x: Tensor, weight: Tensor) -> bool:
    """Whether this is training in bfloat16 on a CPU, where PyTorch's fused kernel is slow."""
    if x.device.type != "cpu" or not (torch.is_grad_enabled() and weight.requires_grad):
        return False
    narrow = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else weight.dtype
    return narrow is torch.bfloat16
