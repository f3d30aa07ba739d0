"""Positional encodings: how the network knows where a token is.

To add one: a class with a `matrix` (max_len, C) property, and a line in POSITIONS. Configuration,
network, counts, drawing and tests follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

FIRST_OF_FAIRSEQ = 2  # its first two positions were for special tokens


def sinusoidal_matrix(
    max_len: int, d_model: int, halves: bool = False, fairseq: bool = False
) -> Tensor:
    """PE[pos, 2i] = sin(pos / 10000^(2i/C)), PE[pos, 2i+1] = cos(pos / 10000^(2i/C)).

    halves: all sines first, then all cosines, as in Marian. fairseq: positions from 2 on, and C - 2
    in place of C, as in M2M-100.
    Returns (max_len, C) float32, computed in float64 so that late positions keep their precision.
    Source: Vaswani et al. 2017, section 3.5.
    """
    position = torch.arange(max_len, dtype=torch.float64)[:, None]
    pair = torch.arange(0, d_model, 2, dtype=torch.float64)
    if fairseq:
        position = position + FIRST_OF_FAIRSEQ
    angle = position * torch.exp(-math.log(10_000.0) * pair / max(1, d_model - 2 * fairseq))
    if halves:
        return torch.cat([angle.sin(), angle.cos()], dim=1).float()
    matrix = torch.empty(max_len, d_model, dtype=torch.float64)
    matrix[:, 0::2] = angle.sin()
    matrix[:, 1::2] = angle.cos()
    return matrix.float()


class SinusoidalPositions(nn.Module):
    """Fixed waves; nothing to train, nothing to store in a checkpoint."""

    matrix: Tensor

    def __init__(
        self, max_len: int, d_model: int, halves: bool = False, fairseq: bool = False
    ) -> None:
        super().__init__()
        matrix = sinusoidal_matrix(max_len, d_model, halves, fairseq)
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
    """The encoding of networks whose positions are not added to tokens."""

    zero: Tensor

    def __init__(self, max_len: int, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.register_buffer("zero", torch.zeros(1), persistent=False)

    @property
    def matrix(self) -> None:
        """None: nothing is added."""

    def forward(self, positions: Tensor) -> Tensor:
        """positions: (..., T) int64 -> zeros (..., T, C)."""
        return self.zero.expand(*positions.shape, self.d_model)


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoding:
    """title, does, short: its name on the page, what it does, and a few words for a diagram, with
    `{max_len}` and `{d_model}` for the sizes.

    make(max_len, d_model) returns a module positions (..., T) int64 -> (..., T, C) with a `matrix`
    (max_len, C). pairs: whether it needs an even d_model. is_rotary: whether it rotates queries and
    keys instead of adding to tokens; is_bias: whether it adds to their scores, by_layer: other
    numbers in each layer.
    """

    title: str
    does: str
    short: str
    make: Callable[[int, int], SinusoidalPositions | LearnedPositions | NothingAdded]
    pairs: bool = False
    is_rotary: bool = False
    is_bias: bool = False
    by_layer: bool = False

    @property
    def adds(self) -> bool:
        """Whether it adds a vector to each token."""
        return not (self.is_rotary or self.is_bias)


def _halves(*, fairseq: bool) -> Encoding:
    return Encoding(
        title="Sinusoidal positions",
        does="Adds to each token a vector of sine and cosine waves that tells where it stands.",
        short="fixed waves",
        make=partial(SinusoidalPositions, halves=True, fairseq=fairseq),
        pairs=True,
    )


def _relative(*, by_layer: bool) -> Encoding:
    return Encoding(
        title="Relative positions",
        does=(
            "Each head adds a trained number to its scores, one for each distance between two "
            "tokens; nothing is added to tokens."
        ),
        short="a number for each distance",
        make=NothingAdded,
        is_bias=True,
        by_layer=by_layer,
    )


POSITIONS: dict[str, Encoding] = {
    "sinusoidal": Encoding(
        title="Sinusoidal positions",
        does=("Adds to each token a vector of sine and cosine waves that tells where it stands."),
        short="fixed waves",
        make=SinusoidalPositions,
        pairs=True,
    ),
    "sinusoidal-halves": _halves(fairseq=False),
    "sinusoidal-fairseq": _halves(fairseq=True),
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
    "alibi": Encoding(
        title="Linear biases (ALiBi)",
        does=(
            "Takes from each score a number that grows with the distance of the key, faster in "
            "some heads than in others; nothing is added to tokens."
        ),
        short="scores fall with distance",
        make=NothingAdded,
        is_bias=True,
    ),
    "relative": _relative(by_layer=False),
    "relative-by-layer": _relative(by_layer=True),
}


class LayerType(NamedTuple):
    """slides: whether a layer's tokens read the window alone, if there is one. rotates: whether
    its queries and keys are rotated, if positions are rotary."""

    slides: bool = False
    rotates: bool = True


# With transformers' names, and two for layers without positions (SmolLM3).
LAYER_TYPES = {
    "full_attention": LayerType(),
    "sliding_attention": LayerType(slides=True),
    "full_attention_nope": LayerType(rotates=False),
    "sliding_attention_nope": LayerType(slides=True, rotates=False),
}
