"""Small networks for tests, with random weights that give varied output."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from transformer import Model, ModelConfig, Tokenizer, build_transformer, checkpoint

M = TypeVar("M", bound=nn.Module)
ONE_FILE = "model-00001-of-00001.safetensors"


def model_of(name: str, config: ModelConfig, tokenizer: Tokenizer, seed: int = 0) -> Model:
    """A Model with random weights, the same for the same seed."""
    network = spread(build_transformer(config), seed)
    network.eval().requires_grad_(False)
    return Model(name=name, config=config, tokenizer=tokenizer, network=network)


def spread(network: M, seed: int = 0) -> M:
    """Draw weights wide enough that attention is uneven and the likeliest token changes."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            middle = 1.0 if "norm.weight" in name else 0.0
            wide = 0.2 if "norm" in name or "bias" in name else 0.5
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(middle + wide * noise)
    return network


def save_model(model: Model, path: Path, **settings: Any) -> None:
    """Write a model as a checkpoint folder; `settings` are those of checkpoint.save."""
    checkpoint.save(path, model.network, model.config, model.tokenizer, **settings)
