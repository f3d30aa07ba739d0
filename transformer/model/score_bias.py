"""Positions as numbers that are added to attention scores: T5's relative bias, and ALiBi."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn


class RelativeBias(nn.Module):
    """A trained number for each head and distance between two tokens, added to their scores.

    Distances are counted in buckets. Both ways: half of them for tokens before, half for tokens
    behind; else all for tokens before. Near distances have a bucket each, far ones share, in
    logarithmic steps up to `farthest` tokens.
    Source: Raffel et al. 2020 (T5): one table for all layers of a stack. Chung et al. 2023 (UMT5):
    one for each layer.
    """

    def __init__(self, n_buckets: int, n_heads: int, both_ways: bool, farthest: int = 128) -> None:
        super().__init__()
        self.table, self.both_ways = nn.Embedding(n_buckets, n_heads), both_ways
        self.farthest = farthest

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Positions (T,) or (B, T) int64 of both -> (H, Tq, Tk) or (B, H, Tq, Tk)."""
        behind = keys[..., None, :] - queries[..., :, None]  # of the key, behind the query
        size = self.table.num_embeddings // (2 if self.both_ways else 1)
        near = size // 2
        distance = behind.abs() if self.both_ways else (-behind).clamp(min=0)
        steps = torch.log(distance.float() / near) / math.log(self.farthest / near)
        far = near + (steps * (size - near)).long().clamp(max=size - 1 - near)
        bucket = torch.where(distance < near, distance, far)
        if self.both_ways:
            bucket = bucket + (behind > 0) * size
        bias: Tensor = self.table(bucket)
        return bias.movedim(-1, -3)


class ByDistance(NamedTuple):
    """What `Distances` gives: rows, (Tq, Tk) or (B, Tq, Tk) int64, of the vectors (N, C), for each
    query's distance to each key."""

    rows: Tensor
    vectors: Tensor


class Distances(nn.Module):
    """A trained vector for each distance between two tokens, to which queries and keys are matched.

    Distances are counted in buckets, half of them for keys behind the query. Near ones have a
    bucket each, far ones share, in logarithmic steps up to `farthest` tokens.
    Source: He et al. 2021 (DeBERTa), section 3.1.
    """

    def __init__(self, n_buckets: int, farthest: int, d_model: int, eps: float) -> None:
        super().__init__()
        self.farthest = farthest
        self.table = nn.Embedding(n_buckets, d_model)
        self.norm = nn.LayerNorm(d_model, eps)

    def forward(self, queries: Tensor, keys: Tensor) -> ByDistance:
        """Positions (T,) or (B, T) int64 of both."""
        before = queries[..., :, None] - keys[..., None, :]  # of the key, before the query
        half, n_buckets = self.table.num_embeddings // 2, self.table.num_embeddings
        near = half // 2
        distance = before.abs().clamp(min=near)
        steps = torch.log(distance.float() / near)
        longest = torch.log(torch.tensor((self.farthest - 1) / near, device=before.device))
        far = torch.ceil(steps / longest * (near - 1)).long() + near
        bucket = torch.where(before.abs() <= near, before, far * before.sign())
        return ByDistance((bucket + half).clamp(0, n_buckets - 1), self.norm(self.table.weight))


class LinearBias(nn.Module):
    """Minus a slope times the distance between two tokens, added to their scores; nothing to train.

    The slopes of H heads are 2^(-8/H), 2^(-16/H), ... where H is a power of 2; other heads get
    those between.
    Source: Press et al. 2022 (ALiBi).
    """

    slopes: Tensor

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        power = 2 ** math.floor(math.log2(n_heads))
        slopes = [2 ** (-8 * n / power) for n in range(1, power + 1)]
        between = [2 ** (-4 * n / power) for n in range(1, 2 * (n_heads - power), 2)]
        self.register_buffer(
            "slopes", torch.tensor(slopes + between, dtype=torch.float32), persistent=False
        )

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Positions (T,) or (B, T) int64 of both -> (H, Tq, Tk) or (B, H, Tq, Tk)."""
        distance = (keys[..., None, :] - queries[..., :, None]).abs()
        return -self.slopes[:, None, None] * distance.unsqueeze(-3)
