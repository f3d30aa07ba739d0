"""Embeddings, layers and stacks: everything between the ids and the head."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer.model.config import ModelConfig
from transformer.model.hooks import PLAIN, ForwardContext
from transformer.model.positions import POSITIONS, bias_of, distances_of
from transformer.model.primitives import ACTIVATIONS, PLACEMENTS, Linear, Table, norm_of
from transformer.model.rotary import RotaryAngles, Rotation
from transformer.model.sites import Site

SubLayer = Callable[[Tensor, ForwardContext], Tensor]  # (B, T, C) -> (B, T, C)


class FeedForward(nn.Module):
    """Two linear maps with an activation in between, at each position alone (section 3.3).

    Gated: the expanded features are multiplied by the activation of a second map of the same input
    (Shazeer 2020).
    """

    def __init__(self, config: ModelConfig, stack: str = "decoder", layer: int = 0) -> None:
        super().__init__()
        self.place = (stack, layer)
        size, wide, bias = config.d_model, config.d_ff, config.feed_forward_bias
        self.gate = Linear(size, wide, bias=bias) if config.gated else None
        self.expand = Linear(size, wide, bias=bias)
        self.contract = Linear(wide, size, bias=bias)
        self.dropout = config.feed_forward_dropout
        self.activation = ACTIVATIONS[config.activation].function

    def forward(self, x: Tensor, context: ForwardContext = PLAIN) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        f = self.activation
        wide = self.expand(x)
        wide = f(wide) if self.gate is None else f(self.gate(x)) * wide
        wide = context.at("mlp_post", self.place, wide)
        wide = F.dropout(wide, self.dropout, self.training)
        return context.at("mlp_out", self.place, self.contract(wide))


class Residual(nn.Module):
    """Adds a sub-layer's output to the residual stream, with norms where PLACEMENTS says.

    pre:    x + dropout(f(norm(x)))         Xiong et al. 2020; "pre-but-first": x + dropout(f(x))
                                            in the first sub-layer (ModernBERT)
    post:   norm(x + dropout(f(x)))         Vaswani et al. 2017
    output: x + dropout(norm(f(x)))         OLMo 2
    both:   x + dropout(norm(f(norm(x))))   Gemma 2

    In a parallel layer only `added` is used: the second term.
    """

    def __init__(self, config: ModelConfig, stack: str, layer: int, first: bool = False) -> None:
        super().__init__()
        self.place = (stack, layer)
        self.placement = placement = PLACEMENTS[config.norm]
        self.norm = _norm(config) if placement.of_input or placement.of_sum else None
        if first and not placement.of_first:
            self.norm = nn.Identity()
        self.output_norm = _norm(config) if placement.of_output else None
        self.dropout = config.dropout
        self.scale = config.residual_scale

    def forward(self, x: Tensor, sublayer: SubLayer, context: ForwardContext = PLAIN) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        stream = context.at("skip", self.place, x)
        total = stream + self.added(x, sublayer, context)
        return self._norm(self.norm, total, context) if self.placement.of_sum else total

    def added(self, x: Tensor, sublayer: SubLayer, context: ForwardContext = PLAIN) -> Tensor:
        """The term that a sub-layer adds to the stream."""
        read = self._norm(self.norm, x, context) if self.placement.of_input else x
        made = self._norm(self.output_norm, sublayer(read, context), context)
        made = made if self.scale == 1.0 else made * self.scale
        return F.dropout(made, self.dropout, self.training)

    def _norm(self, norm: nn.Module | None, x: Tensor, context: ForwardContext) -> Tensor:
        return x if norm is None else context.at("norm", self.place, norm(x), stream=x)


class Layer(nn.Module):
    """Self-attention, then (in an encoder-decoder's decoder) cross-attention, then feed-forward.

    Parallel: all of them read the layer's input.
    """

    def __init__(self, config: ModelConfig, stack: str, index: int, cross: bool = False) -> None:
        super().__init__()
        self.place = (stack, index)
        self.self_attention = MultiHeadAttention(config, Site(stack, index, "self"))
        self.self_residual = Residual(config, stack, index, first=index == 0)
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
            x = self._in_parallel(x, context)
        else:
            x = self.self_residual(x, self.self_attention, context)
            if self.crosses:
                x = self.cross_residual(x, self.cross_attention, context)
            x = context.at("resid_mid", self.place, x)
            x = self.feed_forward_residual(x, self.feed_forward, context)
        return context.at("resid_post", self.place, x)

    def _in_parallel(self, x: Tensor, context: ForwardContext) -> Tensor:
        """Add all sub-layers' outputs to the input that they all read (Wang 2021, GPT-J)."""
        y = context.at("skip", self.place, x)
        y = y + self.self_residual.added(x, self.self_attention, context)
        if self.crosses:
            y = y + self.cross_residual.added(x, self.cross_attention, context)
        return y + self.feed_forward_residual.added(x, self.feed_forward, context)


class Embedding(nn.Module):
    """The input of a stack: token vectors, token type vectors and position vectors, added."""

    def __init__(self, config: ModelConfig, stack: str) -> None:
        super().__init__()
        self.stack = stack
        width = config.d_embedding
        self.tokens = Table(config.vocab_size_of(stack), width)
        n_types = config.n_token_types
        self.types = nn.Embedding(n_types, width) if n_types else None
        self.positions = POSITIONS[config.positions].module(config.max_len_of(stack), width)
        self.norm = _norm(config, width) if config.norm_embeddings else None
        self.project = None if width == config.d_model else Linear(width, config.d_model)
        self.dropout = config.dropout
        self.scale = config.embedding_scale * (
            config.d_model**0.5 if config.scale_embeddings else 1.0
        )

    def forward(
        self,
        ids: Tensor,
        positions: Tensor,
        context: ForwardContext = PLAIN,
        types: Tensor | None = None,
    ) -> Tensor:
        """ids: (B, T) int64; positions: (T,) or (B, T) int64, each below max_len -> (B, T, C).

        types: (B, T) int64, each below n_token_types; None = all 0.
        """
        here = (self.stack,)
        try:
            embedded = self.tokens(ids)
        except IndexError:
            raise ValueError(
                f"ids must be from 0 to {self.tokens.num_embeddings - 1}; got {int(ids.min())} to "
                f"{int(ids.max())}"
            ) from None
        if self.scale != 1.0:
            embedded = embedded * self.scale
        if self.types is not None:
            embedded = embedded + self.types(torch.zeros_like(ids) if types is None else types)
        embedded = context.at("embed", here, embedded)
        added = self.positions(positions)
        x = embedded + context.at("pos_embed", here, added, embed=embedded)
        if self.norm is not None:
            x = self.norm(x)
        x = F.dropout(x, self.dropout, self.training)
        return x if self.project is None else self.project(x)


class Stack(nn.Module):
    """Layers one after the other; a norm at the end, unless each sum has one."""

    def __init__(self, config: ModelConfig, name: str, cross: bool = False) -> None:
        super().__init__()
        self.name = name
        self.layers = nn.ModuleList(
            Layer(config, name, index, cross) for index in range(config.n_layers_of(name))
        )
        self.norm = None if PLACEMENTS[config.norm].of_sum else _norm(config)
        self.relative = bias_of(config, both_ways=name == "encoder")
        self.distances = distances_of(config)
        is_rotary = POSITIONS[config.positions].is_rotary
        self.max_len = max_len = config.max_len_of(name)
        self.rotation = Rotation(config.rotary, max_len) if is_rotary else None
        self.sliding_rotation = None
        if is_rotary and config.sliding_rotary_base is not None:
            self.sliding_rotation = Rotation(config.sliding_rotary, max_len)

    def forward(self, x: Tensor, context: ForwardContext = PLAIN) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        for layer in self.layers:
            x = layer(x, context)
        return self.end(x, context)

    def placed(
        self, context: ForwardContext, positions: Tensor, past: Tensor | None = None
    ) -> ForwardContext:
        """The context of tokens at positions (T,) or (B, T) int64: how attentions see them.

        past: the positions of the tokens before, whose keys are in the cache.
        """

        def angles(rotation: Rotation | None) -> RotaryAngles | None:
            if rotation is None:
                return None
            found: RotaryAngles | None = context.at("rotation", (self.name,), rotation(positions))
            return found

        keys = positions if past is None else torch.cat([past, positions], dim=-1)
        return dataclasses.replace(
            context,
            rotation=angles(self.rotation),
            sliding_rotation=angles(self.sliding_rotation),
            positions=(positions, keys),
            bias=None if self.relative is None else self.relative(positions, keys),
            distances=None if self.distances is None else self.distances(positions, keys),
        )

    def end(self, x: Tensor, context: ForwardContext = PLAIN) -> Tensor:
        """The stack's output, from its last layer's: (B, T, C) -> (B, T, C)."""
        if self.norm is None:
            return x
        return context.at("final_norm", (self.name,), self.norm(x), stream=x)


def _norm(config: ModelConfig, width: int | None = None) -> nn.Module:
    return norm_of(config.norm_kind, width or config.d_model, config.norm_eps)
