"""What a training is put together from, before its first step."""

from __future__ import annotations

import ctypes
import json
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn

from transformer.inference.model import Model
from transformer.model.config import ModelConfig, preset
from transformer.model.transformer import Transformer
from transformer.text import Tokenizer
from transformer.training.muon import Muon
from transformer.training.recipe import Recipe, Settings
from transformer.training.side_by_side import check_gradients, side_by_side

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # glibc's M_TRIM_THRESHOLD and M_MMAP_MAX


def keep_freed_memory() -> bool:
    """Have the C library keep what a step frees for the next one; returns whether it could.

    glibc gives large blocks back at once, and the system fills each new one with zeros: a step of
    translate-en-fr on one CPU core took about 10 % longer. Other C libraries are left as they are.
    """
    try:
        change = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(change(_MMAP_MAX, 0)) and bool(change(_TRIM_THRESHOLD, 2**31 - 1))


def model_config(recipe: Recipe, tokenizer: Tokenizer) -> ModelConfig:
    """The recipe's preset with its changes and the tokenizer's vocabulary."""
    changes = {name: value for name, value in recipe.model.items() if name != "preset"}
    return preset(recipe.model["preset"], vocab_size=tokenizer.vocab_size, **changes)


def identity(recipe: Recipe) -> dict[str, Any]:
    """What must be equal for a killed training to go on; its length may change."""
    values: dict[str, Any] = json.loads(json.dumps(recipe.to_dict()))
    values.pop("card")
    for name in ("steps", "decay_from", "validate_every", "save_every", "sample_prompts"):
        values["settings"].pop(name)
    return values


def make_optimizer(
    network: nn.Module, settings: Settings, dtype: torch.dtype = torch.float32
) -> torch.optim.Optimizer:
    """The recipe's optimizer; weights decay in the matrices between activations alone.

    Embeddings, norms and biases do not decay, and under "muon" Adam updates them. Its parameters
    are those of `side_by_side`: reset their gradients with zero_grad(set_to_none=False).
    """
    embeddings = {id(m.weight) for m in network.modules() if isinstance(m, nn.Embedding)}
    matrices: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for parameter in network.parameters():
        decays = parameter.dim() >= 2 and id(parameter) not in embeddings
        (matrices if decays else others).append(parameter)
    wholes, rest = side_by_side(matrices), side_by_side(others)
    decay, betas = settings.weight_decay, settings.betas
    optimizer: torch.optim.Optimizer
    if settings.optimizer == "muon":
        optimizer = Muon(wholes, rest, weight_decay=decay, betas=betas, dtype=dtype)
    else:
        groups = [
            {"params": wholes, "weight_decay": decay},
            {"params": rest, "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, betas=betas, fused=True)
    optimizer.register_step_pre_hook(check_gradients)
    return optimizer


def start_from(network: Transformer, start: Model) -> None:
    """Copy a trained model's weights. Raises ValueError if its shape is not the recipe's."""
    differ = [
        name
        for name, value in network.config.to_dict().items()
        if start.config.to_dict()[name] != value and "dropout" not in name
    ]
    if differ:
        raise ValueError(
            f"{start.name} cannot start this recipe: {differ[0]} is "
            f"{getattr(start.config, differ[0])!r}, needed: {getattr(network.config, differ[0])!r}"
        )
    network.load_state_dict(start.network.state_dict())


def precision(wanted: str, cpu: bool) -> torch.dtype:
    """What matrices are multiplied in; "auto" takes bfloat16 where the hardware has it."""
    if wanted == "auto":
        on_gpu = torch.cuda.is_available() and not cpu
        able = torch.cuda.is_bf16_supported() if on_gpu else torch.cpu._is_avx512_bf16_supported()
    else:
        able = wanted == "bf16"
    return torch.bfloat16 if able else torch.float32


def hardware(accelerator: Accelerator) -> str:
    """What it ran on, for the card."""
    if accelerator.device.type == "cuda":
        return f"{accelerator.num_processes} x {torch.cuda.get_device_name()}"
    return f"{accelerator.num_processes} x {torch.get_num_threads()} CPU threads"
