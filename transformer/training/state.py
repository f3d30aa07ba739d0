"""What a killed training needs to go on as if nothing had happened, in one safetensors file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

FILE = "state.safetensors"


def save_state(
    folder: Path, network: nn.Module, optimizer: torch.optim.Optimizer, progress: dict[str, Any]
) -> None:
    """Write weights, optimizer moments and progress; a kill in between leaves the old file."""
    names = {id(p): name for name, p in network.named_parameters()}
    tensors = {f"model/{name}": p.detach().cpu() for name, p in network.named_parameters()}
    for parameter, moments in optimizer.state.items():
        for key, value in moments.items():
            tensor = value if isinstance(value, Tensor) else torch.tensor(float(value))
            tensors[f"optimizer/{names[id(parameter)]}/{key}"] = tensor.detach().cpu()
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"{FILE}.unfinished"
    save_file(tensors, unfinished, metadata={"progress": json.dumps(progress)})
    os.replace(unfinished, folder / FILE)


def load_state(
    folder: Path, network: nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Any]:
    """The inverse: fills network and optimizer, returns the progress."""
    path = folder / FILE
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            progress: dict[str, Any] = json.loads(file.metadata()["progress"])
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise ValueError(f"{path} is not a readable training state: {error}") from error
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(tensors[f"model/{name}"])
            moments = optimizer.state[parameter]
            prefix = f"optimizer/{name}/"
            for key in (k for k in tensors if k.startswith(prefix)):
                kind = key.removeprefix(prefix)
                value = tensors[key]
                moments[kind] = value if kind == "step" else value.to(parameter.device)
    return progress


def read_progress(folder: Path) -> dict[str, Any] | None:
    """Progress of a state file, or None where there is none."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            progress: dict[str, Any] = json.loads(file.metadata()["progress"])
            return progress
    except (SafetensorError, KeyError, ValueError) as error:
        raise ValueError(f"{path} is not a readable training state: {error}") from error
