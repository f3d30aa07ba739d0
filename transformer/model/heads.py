"""Heads: from the last stack's output to scores of tokens or labels.

To add one: a line in HEADS. Configuration, network and tests follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transformer.model.primitives import ACTIVATIONS, Linear, norm_of


class HeadTransform(nn.Module):
    """BERT's step before the token head: a linear map, the activation and a norm."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.dense = Linear(config.d_model, config.d_embedding)
        self.activation = ACTIVATIONS[config.activation].function
        self.norm = norm_of(config.norm_kind, config.d_embedding, config.norm_eps)

    def forward(self, x: Tensor) -> Tensor:
        """(..., C) -> (..., E), the width of the embeddings."""
        return self.norm(self.activation(self.dense(x)))


LABEL_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    **{name: activation.function for name, activation in ACTIVATIONS.items()},
}
# How the scores of a label head become probabilities: (..., T, labels) or (..., labels) -> same.
LABEL_PROBABILITIES: dict[str, Callable[[Tensor], Tensor]] = {
    "one label": lambda scores: scores.softmax(dim=-1),
    "each label": torch.sigmoid,
    "one token": lambda scores: scores.softmax(dim=-2),
    "none": lambda scores: scores,
}


class LabelHead(nn.Module):
    """A classifier's scores for its labels: a linear map, after another with an activation if asked
    for."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        kind, width = config.label_activation, _width(config)
        self.dense = None if kind is None else Linear(width, width)
        self.activation = None if kind is None else LABEL_ACTIVATIONS[kind]
        self.out = Linear(width, len(config.labels))

    def forward(self, x: Tensor) -> Tensor:
        """(..., C) -> (..., labels)."""
        if self.dense is not None and self.activation is not None:
            x = self.activation(self.dense(x))
        scores: Tensor = self.out(x)
        return scores


def _width(config: Any) -> int:
    """Features that a head reads: embeddings may be narrower than the stream, and HeadTransform
    maps to their width."""
    width: int = config.d_embedding if config.head_transform else config.d_model
    return width


def _token_head(config: Any) -> nn.Module:
    return Linear(_width(config), config.output_vocab_size, bias=config.head_bias)


def _no_head(config: Any) -> nn.Module:
    return nn.Identity()


def _first(x: Tensor, is_text: Tensor | None) -> Tensor:
    return x[:, 0]


def _mean(x: Tensor, is_text: Tensor | None) -> Tensor:
    if is_text is None:
        return x.mean(dim=1)
    shares = is_text.to(x.dtype) / is_text.sum(dim=1, keepdim=True)
    return (x * shares[..., None]).sum(dim=1)


def _last(x: Tensor, is_text: Tensor | None) -> Tensor:
    if is_text is None:
        return x[:, -1]
    places = torch.arange(x.shape[1], device=x.device)
    last = torch.where(is_text, places, 0).amax(dim=1)
    return x[torch.arange(len(x), device=x.device), last]


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputHead:
    """make: the module for a ModelConfig. predicts: it scores the next, or a hidden, token.
    labelled: it scores labels. pool: makes one vector of a text, so that its scores are of the
    whole text: (B, T, C) and is_text (B, T) or None -> (B, C).
    """

    make: Callable[[Any], nn.Module]
    predicts: bool = False
    labelled: bool = False
    pool: Callable[[Tensor, Tensor | None], Tensor] | None = None


HEADS: dict[str, OutputHead] = {
    "tokens": OutputHead(make=_token_head, predicts=True),
    "none": OutputHead(make=_no_head),
    "text-labels": OutputHead(make=LabelHead, labelled=True, pool=_first),
    "text-labels-mean": OutputHead(make=LabelHead, labelled=True, pool=_mean),
    "text-labels-last": OutputHead(make=LabelHead, labelled=True, pool=_last),
    "token-labels": OutputHead(make=LabelHead, labelled=True),
}
