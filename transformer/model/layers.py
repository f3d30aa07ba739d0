"""The blocks between the embeddings and the head."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import Tensor, nn

from transformer.model.attention import KeyValueCache, MultiHeadAttention
from transformer.model.config import ModelConfig
from transformer.model.dropout import Dropout
from transformer.model.trace import Site, Trace

if TYPE_CHECKING:
    from transformer.model.changes import Changes

ACTIVATION_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}


class FeedForward(nn.Module):
    """Two linear maps with an activation between, at each position alone (section 3.3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.expand = nn.Linear(config.d_model, config.d_ff, bias=config.feed_forward_bias)
        self.contract = nn.Linear(config.d_ff, config.d_model, bias=config.feed_forward_bias)
        self.activation = ACTIVATION_FUNCTIONS[config.activation]

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        return self.contract(self.activation(self.expand(x)))


class Residual(nn.Module):
    """A sub-layer's way back into the residual stream, with norm before or after.

    pre:  x + dropout(f(norm(x)))       Xiong et al. 2020
    post: norm(x + dropout(f(x)))       Vaswani et al. 2017
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.d_model, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.norm_first = config.norm == "pre"

    def forward(
        self, x: Tensor, sublayer: Callable[[Tensor], Tensor], changes: Changes | None = None
    ) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        stream = x if changes is None else changes.stream(x)
        if self.norm_first:
            return stream + self.dropout(sublayer(self.norm(x)))
        return self.norm(stream + self.dropout(sublayer(x)))


class Layer(nn.Module):
    """Self-attention, then (in an encoder-decoder's decoder) cross-attention, then feed-forward."""

    def __init__(self, config: ModelConfig, stack: str, index: int, cross: bool = False) -> None:
        super().__init__()
        self.stack, self.index = stack, index
        self.self_attention = MultiHeadAttention(config, Site(stack, index, "self"))
        self.self_residual = Residual(config)
        if cross:
            self.cross_attention = MultiHeadAttention(config, Site(stack, index, "cross"))
            self.cross_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        causal: bool = False,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
        trace: Trace | None = None,
        changes: Changes | None = None,
    ) -> Tensor:
        """x: (B, T, C); memory: (B, Tk, C) for a layer with cross-attention. Returns (B, T, C)."""
        seen = (cache, trace, changes)
        x = self.self_residual(
            x, lambda h: self.self_attention(h, None, mask, causal, *seen), changes
        )
        if memory is not None:
            x = self.cross_residual(
                x, lambda h: self.cross_attention(h, memory, memory_mask, False, *seen), changes
            )
        if changes is None:
            return self.feed_forward_residual(x, self.feed_forward)
        place = (self.stack, self.index)
        x = self.feed_forward_residual(
            x, lambda h: changes.feed_forward(*place, self.feed_forward(h)), changes
        )
        return changes.residual(*place, x)
