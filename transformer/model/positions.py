"""Positional encodings: how the network knows where a token is.

To add one: a class with a `matrix` (max_len, C) property, and an entry of POSITIONS, which says
all that views need to know. Configuration, network, counts, drawing and tests follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from transformer.model.score_bias import Distances, LinearBias, RelativeBias

FIRST_OF_FAIRSEQ = 2  # its first two positions were for special tokens


def _frequencies(d_model: int, fairseq: bool) -> Tensor:
    """(C / 2,) float64, radians for each step of each pair of a sine and a cosine."""
    pair = torch.arange(0, d_model, 2, dtype=torch.float64)
    return torch.exp(-math.log(10_000.0) * pair / max(1, d_model - 2 * fairseq))


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
    if fairseq:
        position = position + FIRST_OF_FAIRSEQ
    angle = position * _frequencies(d_model, fairseq)
    if halves:
        return torch.cat([angle.sin(), angle.cos()], dim=1).float()
    matrix = torch.empty(max_len, d_model, dtype=torch.float64)
    matrix[:, 0::2] = angle.sin()
    matrix[:, 1::2] = angle.cos()
    return matrix.float()


def sinusoidal_angles(position: int, d_model: int, fairseq: bool = False) -> Tensor:
    """(C / 2,) float64 radians, of which a position's vector holds the sines and cosines."""
    return (position + FIRST_OF_FAIRSEQ * fairseq) * _frequencies(d_model, fairseq)


def sinusoidal_shift(k: int, d_model: int, halves: bool = False, fairseq: bool = False) -> Tensor:
    """(C, C) float64: the map that takes the vector of any position to that k positions on.

    Each pair turns by k times its frequency: sin(a + b) = sin a cos b + cos a sin b and
    cos(a + b) = cos a cos b - sin a sin b. Raises ValueError for an odd d_model.
    Source: Vaswani et al. 2017, section 3.5, worked out.
    """
    if d_model % 2:
        raise ValueError(f"sinusoidal positions need an even d_model; got {d_model}")
    angle = k * _frequencies(d_model, fairseq)
    order = torch.arange(d_model)
    sines, cosines = order.view(2, -1) if halves else order.view(-1, 2).T
    matrix = torch.zeros(d_model, d_model, dtype=torch.float64)
    matrix[sines, sines] = matrix[cosines, cosines] = angle.cos()
    matrix[sines, cosines], matrix[cosines, sines] = angle.sin(), -angle.sin()
    return matrix


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


class VectorFormula(NamedTuple):
    """How the vector of a position is computed, in the marks of views/model/equations.js.

    vector: its symbol. lines: of the formula, which may also name `angle`. code: our functions,
    each with the places of the parts in it (views/model/source.py). angles(position, C): radians.
    """

    vector: str
    lines: tuple[str, ...]
    code: tuple[tuple[Callable[..., Any], str], ...]
    angles: Callable[[int, int], Tensor] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoding:
    """title, does, short: its name on the page, what it does, and a few words for a diagram, with
    `{max_len}` and `{d_model}` for the sizes.

    make(max_len, d_model) returns a module positions (..., T) int64 -> (..., T, C) with a `matrix`
    (max_len, C); None: no vector is added to tokens. pairs: whether it needs an even d_model.
    formula: of that vector; shift(k, d_model): the exact map (C, C) from it to the vector k
    positions on; None where there is none to be shown.
    is_rotary: whether it rotates queries and keys. bias(n_heads): a module that adds to scores;
    needs_buckets: whether that is a RelativeBias of the configuration's `relative_buckets`;
    by_layer: whether each layer has numbers of its own. of_content: whether what is added depends
    on the query and the key too, as DeBERTa's `Distances`.
    """

    title: str
    does: str
    short: str
    make: Callable[[int, int], Any] | None = None
    pairs: bool = False
    formula: VectorFormula | None = None
    shift: Callable[[int, int], Tensor] | None = None
    is_rotary: bool = False
    bias: Callable[[int], nn.Module] | None = None
    needs_buckets: bool = False
    by_layer: bool = False
    of_content: bool = False

    @property
    def adds(self) -> bool:
        """Whether it adds a vector to each token."""
        return self.make is not None

    @property
    def is_bias(self) -> bool:
        """Whether it adds to the scores of each head."""
        return self.bias is not None or self.needs_buckets

    def module(self, max_len: int, d_model: int) -> Any:
        """The module whose output is added to tokens."""
        return NothingAdded(max_len, d_model) if self.make is None else self.make(max_len, d_model)


def bias_of(config: Any, both_ways: bool, of_layer: bool = False) -> nn.Module | None:
    """What all layers of a stack add to their scores, or each of them (of_layer); None: nothing."""
    encoding = POSITIONS[config.positions]
    if encoding.by_layer != of_layer or encoding.of_content:
        return None
    if encoding.bias is not None:
        return encoding.bias(config.n_heads)
    if config.relative_buckets:
        sizes = (config.relative_buckets, config.n_heads)
        return RelativeBias(*sizes, both_ways, config.relative_farthest)
    return None


def distances_of(config: Any) -> Distances | None:
    """The vectors of distances that all layers of a stack read; None without them."""
    if not POSITIONS[config.positions].of_content:
        return None
    sizes = (config.relative_buckets, config.relative_farthest, config.d_model)
    return Distances(*sizes, config.norm_eps)


def _sinusoidal(*, halves: bool = False, fairseq: bool = False) -> Encoding:
    even, odd = ("i", "C / 2 + i") if halves else ("2 i", "2 i + 1")
    first, whole = ("(p:p + 2)", "{C − 2}") if fairseq else ("p:p", "C")
    angle = f"{{{first} / 10000^{{{{2 i}} / {whole}}}}}:angle"
    waves = "position=return/sin" if halves else "position=matrix/sin position=matrix/cos"
    how = {"halves": halves, "fairseq": fairseq}
    return Encoding(
        title="Sinusoidal positions",
        does="Adds to each token a vector of sine and cosine waves that tells where it stands.",
        short="fixed waves",
        make=partial(SinusoidalPositions, **how),
        pairs=True,
        formula=VectorFormula(
            "{PE_{p:p}}:position",
            (
                f"{{PE_{{p:p, {even}}}}}:position = sin({angle})",
                f"{{PE_{{p:p, {odd}}}}}:position = cos({angle})",
            ),
            ((sinusoidal_matrix, f"angle p=position p=angle:position {waves}"),),
            partial(sinusoidal_angles, fairseq=fairseq),
        ),
        shift=partial(sinusoidal_shift, **how),
    )


def _relative(*, by_layer: bool) -> Encoding:
    return Encoding(
        title="Relative positions",
        does=(
            "Each head adds a trained number to its scores, one for each distance between two "
            "tokens; nothing is added to tokens."
        ),
        short="a number for each distance",
        needs_buckets=True,
        by_layer=by_layer,
    )


POSITIONS: dict[str, Encoding] = {
    "sinusoidal": _sinusoidal(),
    "sinusoidal-halves": _sinusoidal(halves=True),
    "sinusoidal-fairseq": _sinusoidal(halves=True, fairseq=True),
    "learned": Encoding(
        title="Learned positions",
        does="Adds a trained vector for each of the {max_len} positions.",
        short="{max_len} × {d_model}",
        make=LearnedPositions,
        formula=VectorFormula(
            "{P_{p:p}}:position",
            ("{P_{p:p}}:position = W_P [p:p]",),
            ((LearnedPositions.forward, "position=return p=positions"),),
        ),
    ),
    "rotary": Encoding(
        title="Rotary positions",
        does=(
            "Rotates queries and keys by an angle that grows with their position; nothing is added."
        ),
        short="rotated by position",
        is_rotary=True,
    ),
    "alibi": Encoding(
        title="Linear biases (ALiBi)",
        does=(
            "Takes from each score a number that grows with the distance of the key, faster in "
            "some heads than in others; nothing is added to tokens."
        ),
        short="scores fall with distance",
        bias=LinearBias,
    ),
    "relative": _relative(by_layer=False),
    "relative-by-layer": _relative(by_layer=True),
    "disentangled": Encoding(
        title="Disentangled positions",
        does=(
            "Each distance between two tokens has a trained vector. A score is the sum of three: "
            "the query with the key, the query with the distance's key, and the key with the "
            "distance's query; nothing is added to tokens."
        ),
        short="a vector for each distance",
        needs_buckets=True,
        of_content=True,
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
