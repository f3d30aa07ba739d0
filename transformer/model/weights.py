"""A network's weights by name, and a network made from them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from transformer.checks import shortened
from transformer.model.config import ModelConfig
from transformer.model.primitives import NARROW, Linear, Table
from transformer.model.summary import blocks
from transformer.model.transformer import (
    DecoderOnly,
    EncoderDecoder,
    EncoderOnly,
    build_transformer,
)

# A configuration may describe MANY_TIMES the numbers that its weights hold, plus ROOM.
MANY_TIMES, ROOM = 4, 10_000_000
_MADE = ("empty", "zeros", "ones", "tensor", "arange")
_DRAWS = ("normal_", "uniform_", "kaiming_uniform_", "xavier_uniform_")


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """A network's tensors by name, tied matrices once, under their first name."""
    seen: set[int] = set()
    result = {}
    for name, tensor in network.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            result[name] = tensor
    return result


def network_with(
    config: ModelConfig, weights: dict[str, Tensor], *, as_stored: bool = False
) -> DecoderOnly | EncoderOnly | EncoderDecoder:
    """The network of a configuration with these weights, which are removed from their dict one by
    one, so that only one copied tensor at a time is in memory twice.

    as_stored: matrices of bfloat16 or float16 keep their type, and are converted when used.
    Raises ValueError unless names and shapes match exactly.
    """
    _check_size(config, weights)
    with _Unfilled():
        network = build_transformer(config)
    _check_fit(weights_of(network), weights)
    narrow = _may_be_narrow(network) if as_stored else set()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name in weights:
                weight = weights.pop(name)
                kept = weight.dtype in NARROW and id(parameter) in narrow
                parameter.data = weight.to(weight.dtype if kept else parameter.dtype).contiguous()
    return network


def store_as(network: nn.Module, dtype: torch.dtype) -> None:
    """Change the type of a network's weights. With bfloat16 or float16 they are stored in that type
    and the network computes in float32; with float64 it also computes in it.

    Raises ValueError for weights that are too large for the type.
    """
    if dtype not in NARROW:
        network.to(dtype)
        return
    network.float()
    narrow = _may_be_narrow(network)
    for name, parameter in network.named_parameters():
        if id(parameter) in narrow:
            weight = parameter.data.to(dtype)
            if not bool(weight.isfinite().all()):
                raise ValueError(f"{name} has numbers too large for {dtype}")
            parameter.data = weight


def _may_be_narrow(network: nn.Module) -> set[int]:
    """Ids of parameters that may have a smaller type than the network computes in."""
    return {id(part.weight) for part in network.modules() if isinstance(part, Linear | Table)}


def _check_size(config: ModelConfig, weights: dict[str, Tensor]) -> None:
    """Raise ValueError if the network would take far more memory than its weights.

    Called before the network is made, so that a wrong configuration cannot exhaust the memory.
    """
    if (most := max(config.n_layers, config.output_n_layers)) > len(weights):
        raise ValueError(f"{most} layers, but only {len(weights)} tensors")
    held, described = sum(tensor.numel() for tensor in weights.values()), _described(config)
    if described > MANY_TIMES * held + ROOM:
        raise ValueError(f"it describes {described:,} numbers, but its weights hold {held:,}")


def check_surplus(folder: Path, config: ModelConfig, held: int) -> None:
    """Raise ValueError, before weights are read, if there are far more than the network has.

    held: the number of values in the files.
    """
    described = _described(config)
    if held > MANY_TIMES * described + ROOM:
        raise ValueError(
            f"the weights in {folder} hold {held:,} numbers, but its config.json describes "
            f"{described:,}"
        )


def _described(config: ModelConfig) -> float:
    """Values in a configuration's network, computed positions included; infinite if they cannot
    be counted."""
    n_positions = config.max_len + config.output_max_len
    try:
        return sum(block.n_parameters for block in blocks(config)) + n_positions * config.d_model
    except (RuntimeError, TypeError, OverflowError):  # PyTorch's errors for a size beyond 64 bits
        return math.inf


def _check_fit(wanted: dict[str, Tensor], weights: dict[str, Tensor]) -> None:
    missing, extra = sorted(set(wanted) - set(weights)), sorted(set(weights) - set(wanted))
    if missing:
        raise ValueError(f"it lacks {shortened(missing[0])}")
    if extra:
        raise ValueError(f"it has an unknown {shortened(extra[0])}")
    for name, tensor in weights.items():
        if tensor.shape != wanted[name].shape:
            raise ValueError(
                f"{name} is {tuple(tensor.shape)}, needed: {tuple(wanted[name].shape)}"
            )


class _Unfilled(TorchFunctionMode):
    """Skips the initial weights of networks, since drawing them takes longer than reading a file,
    and makes networks of float32 on the CPU, whatever PyTorch's defaults are."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options, name = dict(kwargs or {}), getattr(func, "__name__", "")
        if name in _MADE:
            options["device"] = options.get("device") or "cpu"
            if name in ("empty", "zeros", "ones"):
                options["dtype"] = options.get("dtype") or torch.float32
        if name in _DRAWS:
            return options["tensor"] if "tensor" in options else args[0]
        return func(*args, **options)
