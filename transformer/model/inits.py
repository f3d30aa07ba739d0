"""How matrices are drawn before a network has learned anything. To add a way: a line in INITS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Generator, Tensor, nn


@dataclass(frozen=True, kw_only=True, slots=True)
class Init:
    """draws: what it draws. matrix, embedding: of a tensor, d_model and a generator, draw it."""

    draws: str
    matrix: Callable[[Tensor, int, Generator | None], Tensor]
    embedding: Callable[[Tensor, int, Generator | None], Tensor]


def _xavier(weight: Tensor, d_model: int, generator: Generator | None) -> Tensor:
    return nn.init.xavier_uniform_(weight, generator=generator)


def _narrow(weight: Tensor, d_model: int, generator: Generator | None) -> Tensor:
    return nn.init.normal_(weight, std=0.02, generator=generator)


def _unit_when_scaled(weight: Tensor, d_model: int, generator: Generator | None) -> Tensor:
    """Times sqrt(C), as scaled embeddings are, these have unit variance."""
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
