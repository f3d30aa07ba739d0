"""Norms: what keeps each token's features at one size, and where a norm stands.

To add one: a line in NORMS. Configuration, network, counts, drawing and tests follow; an engine
that does not know it leaves the network to itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """x / √(mean of x² + eps), times a trained scale, of float16 and bfloat16 in float32.

    Source: Zhang and Sennrich 2019. plus_one: the scale is 1 + what is trained, as in Gemma.
    """

    def __init__(self, size: int, eps: float, plus_one: bool = False) -> None:
        super().__init__()
        self.eps, self.plus_one = eps, plus_one
        self.weight = nn.Parameter(torch.zeros(size) if plus_one else torch.ones(size))

    @property
    def scale(self) -> Tensor:
        """(C,), what each feature is multiplied by."""
        return 1 + self.weight if self.plus_one else self.weight

    def forward(self, x: Tensor) -> Tensor:
        """(..., C) -> (..., C)."""
        return (unscaled_rms(x, self.eps) * self.scale).to(x.dtype)


def unscaled_rms(x: Tensor, eps: float) -> Tensor:
    """(..., C), each vector divided by its root mean square, at least in float32."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)


@dataclass(frozen=True, kw_only=True, slots=True)
class Norm:
    """title: its name on the page. does: what it does, with `{size}` for the number of features.

    make: of the number of features and epsilon, a module (..., C) -> (..., C).
    """

    title: str
    does: str
    make: Callable[[int, float], nn.Module]


NORMS: dict[str, Norm] = {
    "layer": Norm(
        title="Layer norm",
        does=(
            "Each token's {size} features get mean 0 and variance 1, then a trained scale and shift"
        ),
        make=nn.LayerNorm,
    ),
    "rms": Norm(
        title="RMS norm",
        does=(
            "Each token's {size} features are divided by their root mean square, then get "
            "a trained scale"
        ),
        make=RMSNorm,
    ),
    "rms-plus-one": Norm(
        title="RMS norm (1 + w)",
        does=(
            "Each token's {size} features are divided by their root mean square, then "
            "multiplied by 1 + a trained number"
        ),
        make=partial(RMSNorm, plus_one=True),
    ),
}

PLACEMENTS = ("pre", "post")  # where a layer's norms stand: before its blocks, or after them


def norm_of(kind: str, size: int, eps: float) -> nn.Module:
    """A norm of NORMS for `size` features."""
    return NORMS[kind].make(size, eps)
