"""What is checked and prepared before a training's first step."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transformer.inference.model import Model
from transformer.model.transformer import EncoderOnly
from transformer.training.recipe import Recipe
from transformer.training.state import STATE, read_progress

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


def identity(recipe: Recipe) -> dict[str, Any]:
    """What must be equal for a killed training to go on; its length may change."""
    values: dict[str, Any] = json.loads(json.dumps(recipe.to_dict()))
    values.pop("card")
    for name in ("steps", "decay_from", "validate_every", "save_every", "sample_prompts"):
        values["settings"].pop(name)
    return values


def may_go_on(
    recipe: Recipe, text: str, out: Path, start: Model | None, *, masks: bool = False
) -> bool:
    """Whether out holds a training to go on with; called before a folder is made.

    text: the fingerprint of the training text. masks: whether a mask token is
    added to a start's vocabulary. Raises ValueError for a training of another
    recipe or on other text, and for an impossible model.
    """
    earlier = read_progress(out / STATE)
    if earlier is not None and earlier["recipe"] != identity(recipe):
        raise ValueError(
            f"{out} holds a training of another recipe ({earlier['recipe']['name']}); allowed: the "
            "same recipe, or another --out"
        )
    if earlier is not None and earlier.get("text", text) != text:
        raise ValueError(
            f"{out} holds a training on other text; allowed: what it began with, or another --out"
        )
    config = recipe.model_config(start.config.vocab_size if start else recipe.vocab_size)
    if start is None:
        return earlier is not None
    had = start.config.to_dict()
    for name, needed in config.to_dict().items():
        is_free = "dropout" in name or (masks and name == "family" and had["family"] == "decoder")
        if had[name] != needed and not is_free:
            raise ValueError(
                f"{start.name} cannot start this recipe: {name} is {had[name]!r}, "
                f"needed: {needed!r}"
            )
    return earlier is not None


def first_weights(start: Model, network: nn.Module) -> dict[str, Tensor]:
    """A trained model's weights as the first ones of a network.

    A decoder alone may begin an encoder alone, whose parts are the same but for the mask; a token
    that the start does not have gets the mean of its tokens' vectors.
    """
    found = {
        name.replace("decoder.", "encoder.") if isinstance(network, EncoderOnly) else name: weight
        for name, weight in start.network.state_dict().items()
    }
    for name, needed in network.state_dict().items():
        missing = needed.shape[0] - found[name].shape[0] if needed.dim() else 0
        if missing:
            mean = found[name].float().mean(dim=0, keepdim=True).to(found[name].dtype)
            found[name] = torch.cat([found[name], mean.expand(missing, *mean.shape[1:])])
    return found


def n_processes() -> int:
    """The number of processes, as torchrun or `accelerate launch` set it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_first_process() -> bool:
    """Whether this process prints for all."""
    return os.environ.get("RANK", "0") == "0"


def precision(wanted: str, cpu: bool) -> torch.dtype:
    """What matrices are multiplied in; "auto" takes bfloat16 where the hardware has it."""
    if wanted == "auto":
        on_gpu = torch.cuda.is_available() and not cpu
        able = torch.cuda.is_bf16_supported() if on_gpu else torch.cpu._is_avx512_bf16_supported()
    else:
        able = wanted == "bf16"
    return torch.bfloat16 if able else torch.float32
