"""The blocks between the embeddings and the head."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer.model.config import ModelConfig
from transformer.model.dropout import Dropout
from transformer.model.feed_forward import FeedForward
from transformer.model.hooks import PLAIN, ForwardContext
from transformer.model.norms import norm_of
from transformer.model.sites import Site

SubLayer = Callable[[Tensor, ForwardContext], Tensor]  # (B, T, C) -> (B, T, C)


class Residual(nn.Module):
    """A sub-layer's way back into the residual stream, with norm before or after.

    pre:  x + dropout(f(norm(x)))       Xiong et al. 2020
    post: norm(x + dropout(f(x)))       Vaswani et al. 2017

    Side by side with others: what is added alone, dropout(f(norm(x))).
    """

    def __init__(self, config: ModelConfig, stack: str, layer: int) -> None:
        super().__init__()
        self.place = (stack, layer)
        self.norm = norm_of(config.norm_kind, config.d_model, config.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.norm_first = config.norm == "pre"

    def forward(self, x: Tensor, sublayer: SubLayer, context: ForwardContext = PLAIN) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        stream = context.at("skip", self.place, x)
        if self.norm_first:
            return stream + self.added(x, sublayer, context)
        return self._normed(stream + self.dropout(sublayer(x, context)), context)

    def added(self, x: Tensor, sublayer: SubLayer, context: ForwardContext = PLAIN) -> Tensor:
        """What a sub-layer with its norm before it adds to the stream."""
        return self.dropout(sublayer(self._normed(x, context), context))

    def _normed(self, x: Tensor, context: ForwardContext) -> Tensor:
        return context.at("norm", self.place, self.norm(x), stream=x)


class Layer(nn.Module):
    """Self-attention, then (in an encoder-decoder's decoder) cross-attention, then feed-forward.

    Parallel: all of them read what comes in.
    """

    def __init__(self, config: ModelConfig, stack: str, index: int, cross: bool = False) -> None:
        super().__init__()
        self.place = (stack, index)
        self.self_attention = MultiHeadAttention(config, Site(stack, index, "self"))
        self.self_residual = Residual(config, stack, index)
        if cross:
            self.cross_attention = MultiHeadAttention(config, Site(stack, index, "cross"))
            self.cross_residual = Residual(config, stack, index)
        self.crosses = cross
        self.feed_forward = FeedForward(config, stack, index)
        self.feed_forward_residual = Residual(config, stack, index)
        self.parallel = config.parallel

    def forward(self, x: Tensor, context: ForwardContext = PLAIN) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        x = context.at("resid_pre", self.place, x)
        if self.parallel:
            x = self._side_by_side(x, context)
        else:
            x = self.self_residual(x, self.self_attention, context)
            if self.crosses:
                x = self.cross_residual(x, self.cross_attention, context)
            x = context.at("resid_mid", self.place, x)
            x = self.feed_forward_residual(x, self.feed_forward, context)
        return context.at("resid_post", self.place, x)

    def _side_by_side(self, x: Tensor, context: ForwardContext) -> Tensor:
        """All sub-layers read x, and all that they make is added to it (Wang 2021, GPT-J)."""
        made = context.at("skip", self.place, x)
        made = made + self.self_residual.added(x, self.self_attention, context)
        if self.crosses:
            made = made + self.cross_residual.added(x, self.cross_attention, context)
        return made + self.feed_forward_residual.added(x, self.feed_forward, context)
