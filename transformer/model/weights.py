"""Weights by name, and the network that they belong to."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from transformer.model.config import ModelConfig
from transformer.model.shapes import blocks
from transformer.model.transformer import (
    DecoderOnly,
    EncoderDecoder,
    EncoderOnly,
    build_transformer,
)

MANY_TIMES, ROOM = 4, 10_000_000  # numbers of a network that a configuration may ask for in vain
_DRAWS = ("normal_", "uniform_", "kaiming_uniform_", "xavier_uniform_")


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """A network's own tensors, tied matrices once, under their first name."""
    seen: set[int] = set()
    result = {}
    for name, tensor in network.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            result[name] = tensor
    return result


def network_with(
    config: ModelConfig, weights: dict[str, Tensor]
) -> DecoderOnly | EncoderOnly | EncoderDecoder:
    """The network of a configuration with these weights.

    Raises ValueError, saying what is wrong with them, unless names and shapes match exactly.
    """
    _check_size(config, weights)
    with _Unfilled():
        network = build_transformer(config)
    _check_fit(weights_of(network), weights)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name in weights:
                parameter.copy_(weights[name])
    return network


def _check_size(config: ModelConfig, weights: dict[str, Tensor]) -> None:
    """Raise ValueError where the network would take far more memory than its weights do.

    Done before the network is made, so that a wrong configuration cannot ask for endless memory.
    """
    if config.n_layers > len(weights):
        raise ValueError(f"{config.n_layers} layers, but only {len(weights)} tensors")
    held = sum(tensor.numel() for tensor in weights.values())
    described = sum(block.n_parameters for block in blocks(config))
    described += config.max_len * config.d_model  # positions that are worked out, not learned
    if described > MANY_TIMES * held + ROOM:
        raise ValueError(f"it describes {described:,} numbers, but its weights hold {held:,}")


def _check_fit(wanted: dict[str, Tensor], weights: dict[str, Tensor]) -> None:
    missing, extra = sorted(set(wanted) - set(weights)), sorted(set(weights) - set(wanted))
    if missing or extra:
        what = f"lacks {missing[0]!r}" if missing else f"has an unknown {extra[0]!r}"
        raise ValueError(f"it {what}")
    for name, tensor in weights.items():
        if tensor.shape != wanted[name].shape:
            raise ValueError(
                f"{name} is {tuple(tensor.shape)}, needed: {tuple(wanted[name].shape)}"
            )


class _Unfilled(TorchFunctionMode):
    """Networks made inside get no first weights: drawing them takes longer than reading them."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        if getattr(func, "__name__", "") in _DRAWS:
            return given["tensor"] if "tensor" in given else args[0]
        return func(*args, **given)
