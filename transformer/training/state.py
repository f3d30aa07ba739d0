"""What a killed training needs to go on as if nothing had happened, and how Ctrl-C ends one."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from transformer.training.optimizer import updated_by

STATE = "training"  # the folder in a checkpoint's
FILE = "state.safetensors"


def save_state(
    folder: Path, network: nn.Module, optimizer: torch.optim.Optimizer, progress: dict[str, Any]
) -> None:
    """Write weights, optimizer moments and progress; a kill in between leaves the old file."""
    tensors = {f"model/{name}": p.detach().cpu() for name, p in network.named_parameters()}
    for place, parameter in enumerate(updated_by(optimizer)):
        for key, value in optimizer.state[parameter].items():
            tensor = value if isinstance(value, Tensor) else torch.tensor(float(value))
            tensors[f"optimizer/{place}/{key}"] = tensor.detach().cpu()
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"{FILE}.unfinished"
    save_file(tensors, unfinished, metadata={"progress": json.dumps(progress)})
    os.replace(unfinished, folder / FILE)


def load_state(
    folder: Path, network: nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Any]:
    """The inverse: fills network and optimizer, returns the progress."""
    path = folder / FILE
    progress, tensors = _read(path)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(tensors[f"model/{name}"])
    for place, updated in enumerate(updated_by(optimizer)):
        prefix = f"optimizer/{place}/"
        moments = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        if not moments:
            raise ValueError(
                f"{path} was written by an older version; train anew, with another --out"
            )
        for key, value in moments.items():
            moments[key] = value if key == "step" else value.to(updated.device)
        optimizer.state[updated].update(moments)
    return progress


def read_progress(folder: Path) -> dict[str, Any] | None:
    """Progress of a state file, or None where there is none."""
    path = folder / FILE
    return _read(path, with_tensors=False)[0] if path.is_file() else None


def _read(path: Path, *, with_tensors: bool = True) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """(the progress, the tensors by name)."""
    try:
        with safe_open(path, framework="pt") as file:
            names = file.keys() if with_tensors else ()
            tensors = {name: file.get_tensor(name) for name in names}
            return json.loads(file.metadata()["progress"]), tensors
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise ValueError(f"{path} is not a readable training state: {error}") from error


@contextmanager
def interrupts(*, several: bool = False) -> Iterator[threading.Event]:
    """An event that the first Ctrl-C, or SIGTERM, within the block sets.

    A second Ctrl-C interrupts as usual, but not where several processes end together: the
    launcher may pass it on. Outside of the main thread nothing is noted.
    """
    asked = threading.Event()

    def note(number: int, _: FrameType | None) -> None:
        if asked.is_set() and number == signal.SIGINT and not several:
            raise KeyboardInterrupt
        asked.set()

    is_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
