"""What a stack reads and what it is: embeddings, then layers one after the other."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from transformer.model.blocks import Layer
from transformer.model.config import ModelConfig
from transformer.model.hooks import PLAIN, ForwardContext
from transformer.model.norms import norm_of
from transformer.model.positions import POSITIONS
from transformer.model.rotary import Rotation
from transformer.model.stored import Table


class Embedding(nn.Module):
    """Token vectors, with those of their types, plus position vectors: the input of a stack."""

    def __init__(self, config: ModelConfig, stack: str) -> None:
        super().__init__()
        self.stack = stack
        self.tokens = Table(config.vocab_size_of(stack), config.d_model)
        n_types = config.n_token_types
        self.types = nn.Embedding(n_types, config.d_model) if n_types else None
        self.positions = POSITIONS[config.positions].make(config.max_len_of(stack), config.d_model)
        self.norm = _norm(config) if config.norm_embeddings else None
        self.dropout = nn.Dropout(config.dropout)
        self.scale = config.d_model**0.5 if config.scale_embeddings else 1.0

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
        return self.dropout(x)


class Stack(nn.Module):
    """Layers one after the other; with pre-norm, a norm at the end."""

    def __init__(self, config: ModelConfig, name: str, cross: bool = False) -> None:
        super().__init__()
        self.name = name
        self.layers = nn.ModuleList(
            Layer(config, name, index, cross) for index in range(config.n_layers)
        )
        self.norm = _norm(config) if config.norm == "pre" else None
        is_rotary = POSITIONS[config.positions].is_rotary
        self.rotation = Rotation(config.rotary, config.max_len_of(name)) if is_rotary else None

    def forward(self, x: Tensor, context: ForwardContext = PLAIN) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        for layer in self.layers:
            x = layer(x, context)
        return self.end(x, context)

    def end(self, x: Tensor, context: ForwardContext = PLAIN) -> Tensor:
        """The stack's output, from its last layer's: (B, T, C) -> (B, T, C)."""
        if self.norm is None:
            return x
        return context.at("final_norm", (self.name,), self.norm(x), stream=x)


def _norm(config: ModelConfig) -> nn.Module:
    return norm_of(config.norm_kind, config.d_model, config.norm_eps)
