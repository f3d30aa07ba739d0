"""What a stack reads and what it is: embeddings, then layers one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from transformer.model.config import ModelConfig
from transformer.model.dropout import Dropout
from transformer.model.layers import Layer
from transformer.model.positions import POSITIONS
from transformer.model.trace import Trace

if TYPE_CHECKING:
    from transformer.model.changes import Changes


class Embedding(nn.Module):
    """Token vectors plus position vectors: the input of a stack."""

    def __init__(self, config: ModelConfig, vocab_size: int, stack: str) -> None:
        super().__init__()
        self.stack = stack
        self.tokens = nn.Embedding(vocab_size, config.d_model)
        self.positions = POSITIONS[config.positions](config.max_len, config.d_model)
        self.norm = (
            nn.LayerNorm(config.d_model, config.norm_eps) if config.norm_embeddings else None
        )
        self.dropout = Dropout(config.dropout)
        self.scale = config.d_model**0.5 if config.scale_embeddings else 1.0
        self.max_len = config.max_len

    def forward(
        self,
        ids: Tensor,
        positions: Tensor,
        trace: Trace | None = None,
        changes: Changes | None = None,
    ) -> Tensor:
        """ids: (B, T) int64; positions: (T,) or (B, T) int64, each below max_len -> (B, T, C)."""
        embedded = self.tokens(ids)
        if self.scale != 1.0:
            embedded = embedded * self.scale
        if changes is None:
            added = self.positions(positions)
        else:
            added = changes.position_vectors(self.positions(changes.places(positions)))
        if trace is not None:
            trace.record_input(self.stack, embedded, added)
        x = embedded + added
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
        self.norm = nn.LayerNorm(config.d_model, config.norm_eps) if config.norm == "pre" else None

    def forward(
        self,
        x: Tensor,
        *,
        trace: Trace | None = None,
        changes: Changes | None = None,
        **context: Any,
    ) -> Tensor:
        """x: (B, T, C) -> (B, T, C); `context` is Layer's masks, memory and cache."""
        if trace is not None:
            trace.record_residual(self.name, x)
        for layer in self.layers:
            x = layer(x, trace=trace, changes=changes, **context)
            if trace is not None:
                trace.record_residual(self.name, x)
        return self.end(x, changes)

    def end(self, x: Tensor, changes: Changes | None = None) -> Tensor:
        """What leaves the stack of what its last layer made: (B, T, C) -> (B, T, C)."""
        ends_with_norm = changes is None or changes.ends_with_norm
        return self.norm(x) if self.norm is not None and ends_with_norm else x
