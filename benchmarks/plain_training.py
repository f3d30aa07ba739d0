"""What one writes without this project: PyTorch's own Transformer modules in a short loop, or a
GPT by hand in nanoGPT's way."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.model.config import ModelConfig

Ids = list[list[int]]
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


class HandGPT(nn.Module):
    """A GPT in a few lines: one product for q, k and v, and softmax attention written out."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.places = nn.Embedding(config.max_len, config.d_model)
        self.blocks = nn.ModuleList(HandBlock(config) for _ in range(config.n_layers))
        self.norm = nn.LayerNorm(config.d_model)

    def forward(self, ids: Tensor) -> Tensor:
        """ids: (B, T) -> logits (B, T, V)."""
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)


class HandBlock(nn.Module):
    """Attention, then two linear maps, each behind a norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        size, bias = config.d_model, config.feed_forward_bias
        self.n_heads, self.dropout = config.n_heads, config.dropout
        self.norms = nn.ModuleList([nn.LayerNorm(size), nn.LayerNorm(size)])
        self.qkv = nn.Linear(size, 3 * size, bias=bias)
        self.out = nn.Linear(size, size, bias=bias)
        self.up = nn.Linear(size, config.d_ff, bias=bias)
        self.down = nn.Linear(config.d_ff, size, bias=bias)
        future = torch.ones(config.max_len, config.max_len, dtype=torch.bool).triu(1)
        self.register_buffer("future", future, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        n_rows, length, size = x.shape
        split = self.qkv(self.norms[0](x)).split(size, dim=2)
        q, k, v = (t.view(n_rows, length, self.n_heads, -1).transpose(1, 2) for t in split)
        scores = (q @ k.mT) * (size // self.n_heads) ** -0.5
        future = self.future[:length, :length]  # type: ignore[index]
        weights = scores.masked_fill(future, float("-inf")).softmax(-1)
        heads = (weights @ v).transpose(1, 2).reshape(n_rows, length, size)
        x = x + F.dropout(self.out(heads), self.dropout, self.training)
        mapped = self.down(F.gelu(self.up(self.norms[1](x))))
        return x + F.dropout(mapped, self.dropout, self.training)


def _encoder(config: ModelConfig) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(
        config.d_model, config.n_heads, config.d_ff, config.dropout,
        activation=config.activation, batch_first=True, norm_first=True,
        bias=config.feed_forward_bias,
    )  # fmt: skip
    norm = nn.LayerNorm(config.d_model)
    return nn.TransformerEncoder(layer, config.n_layers, norm, enable_nested_tensor=False)


def plain_step(
    network: nn.Module, inputs: list[Ids], targets: Ids, *, narrow: bool, fused: bool = False
) -> Step:
    """One update on these ids by AdamW, to be called again and again; narrow: bf16 autocast.

    inputs: what the network reads, one or two of B rows of T; targets: what it should say. A step
    begins with lists, as our loop does. fused: AdamW's one kernel instead of its default.
    """
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.1, fused=fused)

    def step() -> float:
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            logits = network(*map(torch.tensor, inputs))
            loss = F.cross_entropy(logits.flatten(0, 1), torch.tensor(targets).flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return step
