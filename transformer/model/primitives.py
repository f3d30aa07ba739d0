"""Parts without structure: linear maps, tables, activations, norms, initial weights.

To add an activation, a norm or an initialisation: an entry of ACTIVATIONS, NORMS or INITS, which
says all that views need to know. Configuration, network, counts, drawing and tests follow; an
engine that does not know it leaves the network to PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

# A checkpoint in bfloat16 or float16 takes half the memory of float32 if its weights stay in that
# type; widened when they are used, they give the same results.
NARROW = (torch.bfloat16, torch.float16)
WIDENED = 1 << 20  # weights at a time, 4 MB as float32: they stay in the processor's cache


class Linear(nn.Linear):
    """x W + b. A weight narrower than x is converted to x's type, some rows at a time."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out), in x's type."""
        weight, bias = self.weight, self.bias  # nn.Module looks for them at each use
        if weight.dtype not in NARROW or x.dtype == weight.dtype:
            return F.linear(x, weight, bias)
        rows = max(1, WIDENED // self.in_features)
        parts = [F.linear(x, part.to(x.dtype)) for part in weight.split(rows)]
        product = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
        return product if bias is None else product + bias


class Table(nn.Embedding):
    """Vectors by id, converted from the type they are stored in to the network's type."""

    unit: Tensor

    def __init__(self, n_rows: int, size: int) -> None:
        super().__init__(n_rows, size)
        # Follows `network.double()` and the like, unlike weights that stay narrow.
        self.register_buffer("unit", torch.ones(()), persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        """(...) int64 -> (..., size)."""
        return super().forward(ids).to(self.unit.dtype)


@dataclass(frozen=True, kw_only=True, slots=True)
class Activation:
    """A function of each number alone, with nothing to train.

    title: its name on the page. does: what it does to a number. function: any shape -> same.
    symbol, formula: of a number z, in the marks of views/model/equations.js; formula None: none is
    shown.
    """

    title: str
    does: str
    function: Callable[[Tensor], Tensor]
    symbol: str = "f"
    formula: str | None = None


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(
        title="ReLU",
        does="what is below 0 becomes 0",
        function=F.relu,
        symbol="ReLU",
        formula="max (0, z)",
    ),
    "gelu": Activation(
        title="GELU",
        does="what is far below 0 becomes 0, with a smooth transition around it",
        function=F.gelu,
        symbol="GELU",
        formula="z · Φ(z)",
    ),
    "gelu-tanh": Activation(
        title="GELU (tanh)",
        does="what is far below 0 becomes 0, with a smooth transition around it",
        function=partial(F.gelu, approximate="tanh"),
        symbol="GELU",
        formula="z / 2 (1 + tanh(√{2 / π} (z + 0.044715 z^3)))",
    ),
    "quick-gelu": Activation(
        title="GELU (sigmoid)",
        does="what is far below 0 becomes 0, with a smooth transition around it",
        function=lambda x: x * torch.sigmoid(1.702 * x),
        symbol="GELU",
        formula="z / {1 + e^{− 1.702 z}}",
    ),
    "silu": Activation(
        title="SiLU",
        does="x times its logistic function: what is far below 0 becomes 0, softly",
        function=F.silu,
        symbol="SiLU",
        formula="z / {1 + e^{− z}}",
    ),
}


class RMSNorm(nn.Module):
    """x / √(mean of x² + eps), times a trained scale; float16 and bfloat16 compute in float32.

    Source: Zhang and Sennrich 2019. plus_one: the scale is 1 + the trained weight, as in Gemma.
    """

    def __init__(self, size: int, eps: float, plus_one: bool = False) -> None:
        super().__init__()
        self.eps, self.plus_one = eps, plus_one
        self.weight = nn.Parameter(torch.zeros(size) if plus_one else torch.ones(size))

    @property
    def scale(self) -> Tensor:
        """(C,), the factor of each feature."""
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

    make(number of features, epsilon) returns a module (..., C) -> (..., C).
    formula(module, x): of a vector x, in the marks of views/model/equations.js; None: none is
    shown. code: our functions that compute it, each with the places of the parts in it, where
    `{result}` is the norm's output (views/model/source.py).
    unscaled(x, epsilon): the norm without its trained scale; None where it is not known.
    """

    title: str
    does: str
    make: Callable[[int, float], nn.Module]
    formula: Callable[[Any, str], str] | None = None
    code: tuple[tuple[Callable[..., Any], str], ...] = ()
    unscaled: Callable[[Tensor, float], Tensor] | None = None


def _layer_formula(norm: nn.LayerNorm, x: str) -> str:
    shift = " + β:shift" * (norm.bias is not None)
    return f"{{{x} − μ:mean}} / √{{σ^2:variance + ε}} ⊙ γ:gain{shift}"


def _rms_formula(norm: RMSNorm, x: str) -> str:
    gain = "{(1 + w)}" if norm.plus_one else "γ"
    return f"{x} / √{{{{mean({{{x}}}^2)}}:square + ε}} ⊙ {gain}:gain"


_rms = partial(
    Norm,
    formula=_rms_formula,
    code=((unscaled_rms, "square=mean"), (RMSNorm.forward, "{result}=return gain=scale")),
    unscaled=unscaled_rms,
)

NORMS: dict[str, Norm] = {
    "layer": Norm(
        title="Layer norm",
        does=(
            "Each token's {size} features get mean 0 and variance 1, then a trained scale and shift"
        ),
        make=nn.LayerNorm,
        formula=_layer_formula,
    ),
    "rms": _rms(
        title="RMS norm",
        does=(
            "Each token's {size} features are divided by their root mean square, then get "
            "a trained scale"
        ),
        make=RMSNorm,
    ),
    "rms-plus-one": _rms(
        title="RMS norm (1 + w)",
        does=(
            "Each token's {size} features are divided by their root mean square, then "
            "multiplied by 1 + a trained number"
        ),
        make=partial(RMSNorm, plus_one=True),
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Where a sub-layer f has norms: of its input, of its output before it is added to the stream,
    or of their sum. name: in words. of_first: whether the first sub-layer's input has one too."""

    name: str
    of_input: bool = False
    of_first: bool = True
    of_output: bool = False
    of_sum: bool = False


PLACEMENTS: dict[str, Placement] = {
    "pre": Placement(name="norm before blocks", of_input=True),  # x + f(norm(x))
    "pre-but-first": Placement(  # ModernBERT, whose embeddings have a norm
        name="norm before blocks but the first", of_input=True, of_first=False
    ),
    "post": Placement(name="norm after blocks", of_sum=True),  # norm(x + f(x))
    "output": Placement(name="norm of what blocks add", of_output=True),  # x + norm(f(x))
    "both": Placement(  # x + norm(f(norm(x)))
        name="norm before blocks and of what they add", of_input=True, of_output=True
    ),
}


def norm_of(kind: str, size: int, eps: float) -> nn.Module:
    """A norm of NORMS for `size` features."""
    return NORMS[kind].make(size, eps)


@dataclass(frozen=True, kw_only=True, slots=True)
class Init:
    """How weights are drawn before training.

    draws: the distribution in words. matrix, embedding: called with the tensor to fill, d_model
    and a generator.
    """

    draws: str
    matrix: Callable[[Tensor, int, Generator | None], Tensor]
    embedding: Callable[[Tensor, int, Generator | None], Tensor]


def _xavier(weight: Tensor, d_model: int, generator: Generator | None) -> Tensor:
    return nn.init.xavier_uniform_(weight, generator=generator)


def _narrow(weight: Tensor, d_model: int, generator: Generator | None) -> Tensor:
    return nn.init.normal_(weight, std=0.02, generator=generator)


def _unit_when_scaled(weight: Tensor, d_model: int, generator: Generator | None) -> Tensor:
    """Embeddings that have unit variance after scaling by sqrt(C)."""
    return nn.init.normal_(weight, std=d_model**-0.5, generator=generator)


INITS: dict[str, Init] = {
    "xavier": Init(
        draws="Xavier-uniform matrices, embeddings N(0, 1/sqrt(d_model))",
        matrix=_xavier,
        embedding=_unit_when_scaled,
    ),
    "xavier-all": Init(
        draws="Xavier-uniform, embeddings included, as in the tutorials",
        matrix=_xavier,
        embedding=_xavier,
    ),
    "normal": Init(draws="N(0, 0.02), as in GPT-2 and BERT", matrix=_narrow, embedding=_narrow),
}


def initialise(module: nn.Module, init: str, d_model: int, generator: Generator | None) -> None:
    """Draw the weights of one module by an entry of INITS; biases become 0.

    generator: None = PyTorch's global one.
    """
    if isinstance(module, nn.Linear):
        INITS[init].matrix(module.weight, d_model, generator)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        INITS[init].embedding(module.weight, d_model, generator)
