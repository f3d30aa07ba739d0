"""Positional encodings: what tells the network where a token stands.

To add one: a class with a `matrix` (max_len, C) property, and a line in POSITIONS. Configuration,
network, counts, drawing and tests follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn


def sinusoidal_matrix(max_len: int, d_model: int, halves: bool = False) -> Tensor:
    """PE[pos, 2i] = sin(pos / 10000^(2i/C)), PE[pos, 2i+1] = cos(the same).

    halves: all sines first, then all cosines, as Marian has them.
    Returns (max_len, C) float32; computed in float64 first, so that late positions keep their
    digits. Source: Vaswani et al. 2017, section 3.5.
    """
    position = torch.arange(max_len, dtype=torch.float64)[:, None]
    pair = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = position * torch.exp(-math.log(10_000.0) * pair / d_model)
    if halves:
        return torch.cat([angle.sin(), angle.cos()], dim=1).float()
    matrix = torch.empty(max_len, d_model, dtype=torch.float64)
    matrix[:, 0::2] = angle.sin()
    matrix[:, 1::2] = angle.cos()
    return matrix.float()


class SinusoidalPositions(nn.Module):
    """Fixed waves; nothing to train, nothing to store in a checkpoint."""

    matrix: Tensor

    def __init__(self, max_len: int, d_model: int, halves: bool = False) -> None:
        super().__init__()
        matrix = sinusoidal_matrix(max_len, d_model, halves)
        self.register_buffer("matrix", matrix, persistent=False)

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


class NothingAdded(nn.Module):
    """Positions that are told in another way than by a vector for each."""

    zero: Tensor

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.register_buffer("zero", torch.zeros(1), persistent=False)

    @property
    def matrix(self) -> None:
        """There is none."""

    def forward(self, positions: Tensor) -> Tensor:
        """positions: (..., T) int64 -> zeros (..., T, C)."""
        return self.zero.expand(*positions.shape, self.d_model)


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoding:
    """title, does, short: its name on the page, what it does, and what a box has room for, with
    `{max_len}` and `{d_model}` for the sizes.

    make: of max_len and d_model, a module positions (..., T) int64 -> (..., T, C) with a `matrix`
    (max_len, C). pairs: whether it needs an even d_model. is_rotary: whether it rotates queries and
    keys (see rotary.py) in place of adding to tokens.
    """

    title: str
    does: str
    short: str
    make: Callable[[int, int], SinusoidalPositions | LearnedPositions | NothingAdded]
    pairs: bool = False
    is_rotary: bool = False


POSITIONS: dict[str, Encoding] = {
    "sinusoidal": Encoding(
        title="Sinusoidal positions",
        does=("Adds to each token a vector of sine and cosine waves that tells where it stands."),
        short="fixed waves",
        make=SinusoidalPositions,
        pairs=True,
    ),
    "sinusoidal-halves": Encoding(
        title="Sinusoidal positions",
        does=(
            "Adds to each token a vector of waves that tells where it stands: all sines, "
            "then all cosines."
        ),
        short="fixed waves",
        make=partial(SinusoidalPositions, halves=True),
        pairs=True,
    ),
    "learned": Encoding(
        title="Learned positions",
        does="Adds a trained vector for each position, of {max_len} that there are.",
        short="{max_len} × {d_model}",
        make=LearnedPositions,
    ),
    "rotary": Encoding(
        title="Rotary positions",
        does=(
            "Rotates queries and keys by an angle that grows with their position; nothing is added."
        ),
        short="rotated by position",
        make=NothingAdded,
        is_rotary=True,
    ),
}
