"""The blocks between the embeddings and the head."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from transformer.model.activations import ACTIVATIONS
from transformer.model.attention import MultiHeadAttention
from transformer.model.config import ModelConfig
from transformer.model.hooks import PLAIN, ForwardContext
from transformer.model.norms import norm_of
from transformer.model.sites import Site
from transformer.model.stored import Linear

SubLayer = Callable[[Tensor, ForwardContext], Tensor]  # (B, T, C) -> (B, T, C)


class FeedForward(nn.Module):
    """Two linear maps with an activation between, at each position alone (section 3.3).

    Gated, what is expanded is multiplied with the activation of a second map of the same input
    (Shazeer 2020).
    """

    def __init__(self, config: ModelConfig, stack: str = "decoder", layer: int = 0) -> None:
        super().__init__()
        self.place = (stack, layer)
        size, wide, bias = config.d_model, config.d_ff, config.feed_forward_bias
        self.gate = Linear(size, wide, bias=bias) if config.gated else None
        self.expand = Linear(size, wide, bias=bias)
        self.contract = Linear(wide, size, bias=bias)
        self.dropout = nn.Dropout(config.feed_forward_dropout)
        self.activation = ACTIVATIONS[config.activation].function

    def forward(self, x: Tensor, context: ForwardContext = PLAIN) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        f = self.activation
        wide = self.expand(x)
        wide = f(wide) if self.gate is None else f(self.gate(x)) * wide
        return context.at("mlp_out", self.place, self.contract(self.dropout(wide)))


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
        self.dropout = nn.Dropout(config.dropout)
        self.norm_first = config.norm == "pre"

    def forward(self, x: Tensor, sublayer: SubLayer, context: ForwardContext = PLAIN) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        stream = context.at("skip", self.place, x)
        if self.norm_first:
            return stream + self.added(x, sublayer, context)
        return self._norm(stream + self.dropout(sublayer(x, context)), context)

    def added(self, x: Tensor, sublayer: SubLayer, context: ForwardContext = PLAIN) -> Tensor:
        """What a sub-layer with its norm before it adds to the stream."""
        return self.dropout(sublayer(self._norm(x, context), context))

    def _norm(self, x: Tensor, context: ForwardContext) -> Tensor:
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
        y = context.at("skip", self.place, x)
        y = y + self.self_residual.added(x, self.self_attention, context)
        if self.crosses:
            y = y + self.cross_residual.added(x, self.cross_attention, context)
        return y + self.feed_forward_residual.added(x, self.feed_forward, context)
