"""What one writes without this project: PyTorch's own Transformer modules in a short loop."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.model.config import ModelConfig

Step = Callable[[], float]  # makes one update; returns the loss before it, in nats a token


class PlainGPT(nn.Module):
    """nn.TransformerEncoder with a causal mask; learned positions; the head tied."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.places = nn.Embedding(config.max_len, config.d_model)
        self.layers = _encoder(config)

    def forward(self, ids: Tensor) -> Tensor:
        """ids: (B, T) -> logits (B, T, V)."""
        length = ids.shape[1]
        x = self.tokens(ids) + self.places.weight[:length]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.layers(x, mask=mask, is_causal=True)
        return F.linear(x, self.tokens.weight)


class PlainTranslator(nn.Module):
    """nn.Transformer with one embedding for both sides and the head; learned positions."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.places = nn.Embedding(config.max_len, config.d_model)
        self.both = nn.Transformer(
            config.d_model, config.n_heads, config.n_layers, config.n_layers, config.d_ff,
            config.dropout, activation=config.activation, batch_first=True, norm_first=True,
            custom_encoder=_encoder(config),
        )  # fmt: skip

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """source: (B, S), target: (B, T) -> logits (B, T, V)."""
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        x = self.both(self._embed(source), self._embed(target), tgt_mask=mask, tgt_is_causal=True)
        return F.linear(x, self.tokens.weight)

    def _embed(self, ids: Tensor) -> Tensor:
        return self.tokens(ids) + self.places.weight[: ids.shape[1]]


def _encoder(config: ModelConfig) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(
        config.d_model, config.n_heads, config.d_ff, config.dropout,
        activation=config.activation, batch_first=True, norm_first=True,
    )  # fmt: skip
    norm = nn.LayerNorm(config.d_model)
    return nn.TransformerEncoder(layer, config.n_layers, norm, enable_nested_tensor=False)


def plain_step(config: ModelConfig, inputs: list[Tensor], targets: Tensor, *, narrow: bool) -> Step:
    """One update on these ids by AdamW, to be called again and again; narrow: bf16 autocast.

    inputs: what the network reads, one or two (B, T); targets: (B, T), what it should say.
    """
    pairs = config.family == "encoder-decoder"
    network: nn.Module = PlainTranslator(config) if pairs else PlainGPT(config)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.1)

    def step() -> float:
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            logits = network(*inputs)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return step
