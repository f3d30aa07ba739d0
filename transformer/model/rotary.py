"""Rotary positions: the angles by which queries and keys are rotated.

They add nothing to a token; each query and key is rotated by an angle that grows with its position.
Feature i of the first half of what is rotated and feature i of the second half are a pair, a point
in a plane; the token at position p rotates the pair by p times its frequency. So q·k depends on the
two positions only through their distance.
Source: Su et al. 2021 (RoFormer). Departure: pairs are (i, i + R/2), as in GPT-NeoX and Llama,
instead of neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn


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
    pair_factors: tuple[float, ...] = ()


class RotaryAngles(NamedTuple):
    """Cosines and sines of the angles of each token's pairs: (T, R/2) or (B, T, R/2) each."""

    cosines: Tensor
    sines: Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Scaling:
    """does: its purpose, with `{factor}`. function(frequencies (R/2,), settings) -> frequencies.
    changes: whether a text beyond the trained length would rotate otherwise from its first token.
    """

    does: str
    function: Callable[[Tensor, RotarySettings], Tensor]
    changes: bool = False


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


def _by_own_factor(frequencies: Tensor, settings: RotarySettings) -> Tensor:
    """Slow down each pair by a separate factor (Ding et al. 2024, LongRoPE)."""
    factors = torch.tensor(settings.pair_factors, dtype=torch.float32)
    return 1.0 / (factors * settings.base ** _exponents(settings))


def _slow_pairs_slower(function: Callable[[Tensor, RotarySettings], Tensor]) -> Scaling:
    return Scaling(
        does=(
            "Slow pairs rotate {factor} times slower than in the original training, so that longer "
            "texts can be read; fast pairs rotate as before."
        ),
        function=function,
    )


def _longer_texts_slower(function: Callable[[Tensor, RotarySettings], Tensor]) -> Scaling:
    return Scaling(
        does=(
            "Pairs would rotate slower in texts longer than those in training; such texts are "
            "not read here."
        ),
        function=function,
        changes=True,
    )


SCALINGS: dict[str, Scaling] = {
    "none": Scaling(does="", function=lambda frequencies, settings: frequencies),
    "linear": Scaling(
        does=(
            "All pairs rotate {factor} times slower than in the original training, so that longer "
            "texts can be read."
        ),
        function=lambda frequencies, settings: frequencies / settings.factor,
    ),
    "dynamic": _longer_texts_slower(lambda frequencies, settings: frequencies),
    "longrope": _longer_texts_slower(_by_own_factor),
    "llama3": _slow_pairs_slower(_by_wavelength),
    "yarn": _slow_pairs_slower(_by_pair),
}


def frequencies_of(settings: RotarySettings) -> Tensor:
    """Radians per token of each pair, (R/2,) float32, rounded at each step as in transformers:
    trained networks have learned with these values."""
    frequencies = 1.0 / settings.base ** _exponents(settings)
    return SCALINGS[settings.scaling].function(frequencies, settings)


def _exponents(settings: RotarySettings) -> Tensor:
    return torch.arange(0, settings.size, 2, dtype=torch.float32) / settings.size


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
