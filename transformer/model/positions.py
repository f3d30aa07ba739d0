"""Positional encodings: what tells the network where a token stands.

To add one: a class with a `matrix` (max_len, C) property, and a line in POSITIONS.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def sinusoidal_matrix(max_len: int, d_model: int) -> Tensor:
    """PE[pos, 2i] = sin(pos / 10000^(2i/C)), PE[pos, 2i+1] = cos(the same).

    Returns (max_len, C) float32; computed in float64 first, so that late positions keep their
    digits. Source: Vaswani et al. 2017, section 3.5.
    """
    position = torch.arange(max_len, dtype=torch.float64)[:, None]
    pair = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = position * torch.exp(-math.log(10_000.0) * pair / d_model)
    matrix = torch.empty(max_len, d_model, dtype=torch.float64)
    matrix[:, 0::2] = angle.sin()
    matrix[:, 1::2] = angle.cos()
    return matrix.float()


class SinusoidalPositions(nn.Module):
    """Fixed waves; nothing to train, nothing to store in a checkpoint."""

    matrix: Tensor

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("matrix", sinusoidal_matrix(max_len, d_model), persistent=False)

    def forward(self, positions: Tensor) -> Tensor:
        """positions: (..., T) int64 -> (..., T, C)."""
        return self.matrix[positions]


class LearnedPositions(nn.Module):
    """One trained vector for each position."""

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.table = nn.Embedding(max_len, d_model)

    @property
    def matrix(self) -> Tensor:
        """(max_len, C), the trained table itself."""
        return self.table.weight.detach()

    def forward(self, positions: Tensor) -> Tensor:
        """positions: (..., T) int64 -> (..., T, C)."""
        return self.table(positions)


POSITIONS: dict[str, type[SinusoidalPositions] | type[LearnedPositions]] = {
    "sinusoidal": SinusoidalPositions,
    "learned": LearnedPositions,
}
