"""Positional encodings: how the network knows where a token is.

To add one: a class with a `matrix` (max_len, C) property, and a line in POSITIONS. Configuration,
network, counts, drawing and tests follow.

Rotary positions add nothing to a token; each query and key is rotated by an angle that grows with
its position. Feature i of the first half of what is rotated and feature i of the second half are a
pair, a point in a plane; the token at position p rotates the pair by p times its frequency. So q·k
depends on the two positions only through their distance.
Source: Su et al. 2021 (RoFormer). Departure: pairs are (i, i + R/2), as in GPT-NeoX and Llama,
instead of neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

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
    keys instead of adding to tokens; is_bias: whether it adds to their scores.
    """

    title: str
    does: str
    short: str
    make: Callable[[int, int], SinusoidalPositions | LearnedPositions | NothingAdded]
    pairs: bool = False
    is_rotary: bool = False
    is_bias: bool = False

    @property
    def adds(self) -> bool:
        """Whether it adds a vector to each token."""
        return not (self.is_rotary or self.is_bias)


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
    "sinusoidal-fairseq": Encoding(
        title="Sinusoidal positions",
        does=(
            "Adds to each token a vector of waves that tells where it stands: all sines, "
            "then all cosines."
        ),
        short="fixed waves",
        make=partial(SinusoidalPositions, halves=True, fairseq=True),
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
    "relative": Encoding(
        title="Relative positions",
        does=(
            "Each head adds a trained number to its scores, one for each distance between two "
            "tokens; nothing is added to tokens."
        ),
        short="a number for each distance",
        make=NothingAdded,
        is_bias=True,
    ),
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


class RotarySettings(NamedTuple):
    """size: the number R of rotated features in a head. Others: see ModelConfig.rotary_*."""

    size: int
    base: float
    scaling: str
    factor: float
    low: float
    high: float
    multiplier: float
    trained_len: int


class RotaryAngles(NamedTuple):
    """Cosines and sines of the angles of each token's pairs: (T, R/2) or (B, T, R/2) each."""

    cosines: Tensor
    sines: Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Scaling:
    """does: its purpose, with `{factor}`. function(frequencies (R/2,), settings) -> frequencies."""

    does: str
    function: Callable[[Tensor, RotarySettings], Tensor]


def _by_wavelength(frequencies: Tensor, settings: RotarySettings) -> Tensor:
    """Slow down slow pairs by `factor`, keep fast pairs, interpolate in between."""
    wavelength = 2 * math.pi / frequencies
    length, low, high = settings.trained_len, settings.low, settings.high
    scaled = torch.where(wavelength > length / low, frequencies / settings.factor, frequencies)
    share = (length / wavelength - low) / (high - low)
    between = (1 - share) * scaled / settings.factor + share * scaled
    is_between = (wavelength >= length / high) & (wavelength <= length / low)
    return torch.where(is_between, between, scaled)


def _by_pair(frequencies: Tensor, settings: RotarySettings) -> Tensor:
    """Slow down slow pairs by `factor`, keep fast pairs, interpolate evenly from pair to pair.

    Source: Peng et al. 2023 (YaRN).
    """

    def pair_with(turns: float) -> float:
        length = settings.trained_len / (turns * 2 * math.pi)
        return settings.size * math.log(length) / (2 * math.log(settings.base))

    first = max(math.floor(pair_with(settings.high)), 0)
    last = min(math.ceil(pair_with(settings.low)), settings.size - 1)
    pairs = torch.arange(len(frequencies), dtype=torch.float32)
    share = ((pairs - first) / (last - first or 0.001)).clamp(0, 1)
    return frequencies / settings.factor * share + frequencies * (1 - share)


SCALINGS: dict[str, Scaling] = {
    "none": Scaling(does="", function=lambda frequencies, settings: frequencies),
    "linear": Scaling(
        does=(
            "All pairs rotate {factor} times slower than those of the first training, for "
            "longer texts."
        ),
        function=lambda frequencies, settings: frequencies / settings.factor,
    ),
    "dynamic": Scaling(
        does=(
            "Pairs would rotate slower in texts longer than those of the training, which "
            "are not read here."
        ),
        function=lambda frequencies, settings: frequencies,
    ),
    "llama3": Scaling(
        does=(
            "Slow pairs rotate {factor} times slower than those of the first training, for "
            "longer texts; fast pairs rotate as they did."
        ),
        function=_by_wavelength,
    ),
    "yarn": Scaling(
        does=(
            "Slow pairs rotate {factor} times slower than those of the first training, for "
            "longer texts; fast pairs rotate as they did."
        ),
        function=_by_pair,
    ),
}


def frequencies_of(settings: RotarySettings) -> Tensor:
    """Radians per token of each pair, (R/2,) float32, rounded at each step as in transformers:
    trained networks have learned with these values."""
    exponents = torch.arange(0, settings.size, 2, dtype=torch.float32) / settings.size
    frequencies = 1.0 / settings.base**exponents
    return SCALINGS[settings.scaling].function(frequencies, settings)


class Rotation(nn.Module):
    """The angles of all positions. Nothing to train, nothing to store in a checkpoint.

    With a multiplier, "cosines" and "sines" also lengthen what they rotate.
    """

    cosines: Tensor
    sines: Tensor

    def __init__(self, settings: RotarySettings, max_len: int) -> None:
        super().__init__()
        positions = torch.arange(max_len, dtype=torch.float32)
        angles = positions[:, None] * frequencies_of(settings)  # (max_len, R/2)
        for name, waves in (("cosines", angles.cos()), ("sines", angles.sin())):
            self.register_buffer(name, waves * settings.multiplier, persistent=False)

    @property
    def matrix(self) -> Tensor:
        """(max_len, R): the cosine of each pair's angle, then the sine of each."""
        return torch.cat([self.cosines, self.sines], dim=-1)

    def forward(self, positions: Tensor) -> RotaryAngles:
        """positions: (T,) or (B, T) int64 -> the angles of the tokens there."""
        return RotaryAngles(self.cosines[positions], self.sines[positions])


def apply_rotary(x: Tensor, angles: RotaryAngles) -> Tensor:
    """Rotate the first R features of queries or keys (B, H, T, D)."""
    cosines, sines = (part[:, None] if part.dim() == 3 else part for part in angles)
    half = cosines.shape[-1]
    first, second, rest = x.split([half, half, x.shape[-1] - 2 * half], dim=-1)
    pair = first * cosines - second * sines, second * cosines + first * sines
    return torch.cat([*pair, rest], dim=-1)


class RelativeBias(nn.Module):
    """A trained number for each head and distance between two tokens, added to their scores.

    Distances are counted in buckets. Both ways: half of them for tokens before, half for tokens
    behind; else all for tokens before. Near distances have a bucket each, far ones share, in
    logarithmic steps up to 128 tokens.
    Source: Raffel et al. 2020 (T5): one table for all layers of a stack.
    """

    FARTHEST = 128

    def __init__(self, n_buckets: int, n_heads: int, both_ways: bool) -> None:
        super().__init__()
        self.table, self.both_ways = nn.Embedding(n_buckets, n_heads), both_ways

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Positions (T,) or (B, T) int64 of both -> (H, Tq, Tk) or (B, H, Tq, Tk)."""
        behind = keys[..., None, :] - queries[..., :, None]  # of the key, behind the query
        size = self.table.num_embeddings // (2 if self.both_ways else 1)
        near = size // 2
        distance = behind.abs() if self.both_ways else (-behind).clamp(min=0)
        steps = torch.log(distance.float() / near) / math.log(self.FARTHEST / near)
        far = near + (steps * (size - near)).long().clamp(max=size - 1 - near)
        bucket = torch.where(distance < near, distance, far)
        if self.both_ways:
            bucket = bucket + (behind > 0) * size
        bias: Tensor = self.table(bucket)
        return bias.movedim(-1, -3)


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
        self.register_buffer("slopes", torch.tensor(slopes + between), persistent=False)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Positions (T,) or (B, T) int64 of both -> (H, Tq, Tk) or (B, H, Tq, Tk)."""
        distance = (keys[..., None, :] - queries[..., :, None]).abs()
        return -self.slopes[:, None, None] * distance.unsqueeze(-3)


def bias_of(config: Any, both_ways: bool) -> RelativeBias | LinearBias | None:
    """What a stack adds to its scores."""
    if config.positions == "alibi":
        return LinearBias(config.n_heads)
    if config.relative_buckets:
        return RelativeBias(config.relative_buckets, config.n_heads, both_ways)
    return None
