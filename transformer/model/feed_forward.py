"""The part of a layer in which no token sees another."""

from __future__ import annotations

from torch import Tensor, nn

from transformer.model.activations import ACTIVATIONS
from transformer.model.config import ModelConfig
from transformer.model.dropout import Dropout
from transformer.model.hooks import PLAIN, ForwardContext
from transformer.model.stored import Linear


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
        self.dropout = Dropout(config.feed_forward_dropout)
        self.activation = ACTIVATIONS[config.activation].function

    def forward(self, x: Tensor, context: ForwardContext = PLAIN) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        wide = self.expand(x)
        wide = self.activation(wide) if self.gate is None else self.activation(self.gate(x)) * wide
        return context.at("mlp_out", self.place, self.contract(self.dropout(wide)))
