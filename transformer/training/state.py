"""The state of a training: preparing, saving and resuming it, its log and loss curve, and ending
it with Ctrl-C."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import plotly.graph_objects as go
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from transformer.checks import shortened
from transformer.inference.model import Model
from transformer.model.transformer import EncoderOnly
from transformer.training.recipe import Recipe
from transformer.training.updates import updated_by

STATE = "training"  # a folder in the checkpoint's
FILE = "state.safetensors"
LOG = "log.jsonl"  # a line of JSON for each step
CURVE_POINTS = 100  # of the curve of training losses
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # glibc's M_TRIM_THRESHOLD and M_MMAP_MAX


def keep_freed_memory() -> bool:
    """Make glibc reuse the memory that a step frees; returns whether it could.

    By default glibc returns large blocks to the system, which fills each new one with zeros: a step
    of translate-en-fr on one CPU core took about 10 % longer. Other C libraries stay unchanged.
    """
    try:
        change = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(change(_MMAP_MAX, 0)) and bool(change(_TRIM_THRESHOLD, 2**31 - 1))


def identity(recipe: Recipe) -> dict[str, Any]:
    """The part of a recipe that a resumed training must share; its length may change."""
    values: dict[str, Any] = json.loads(json.dumps(recipe.to_dict()))
    values.pop("card")
    for name in ("steps", "decay_from", "validate_every", "save_every", "sample_prompts"):
        values["settings"].pop(name)
    return values


def may_go_on(
    recipe: Recipe, text: str, out: Path, start: Model | None, *, masks: bool = False
) -> bool:
    """Whether `out` holds a training to resume; called before a folder is made.

    text: the fingerprint of the training text. masks: whether a mask token is
    added to a start's vocabulary. Raises ValueError for a training of another
    recipe or on other text, and for an impossible model.
    """
    path = out / STATE / FILE
    earlier = _read(path, with_tensors=False)[0] if path.is_file() else None
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
                f"{start.name} cannot start this recipe: {name} is {shortened(had[name])}, "
                f"needed: {shortened(needed)}"
            )
    return earlier is not None


def first_weights(start: Model, network: nn.Module) -> dict[str, Tensor]:
    """Initialise a network with a trained model's weights.

    A decoder may initialise an encoder, which differs only in the mask; a token that the start
    model lacks gets the mean of its tokens' vectors.
    """
    weights = {
        name.replace("decoder.", "encoder.") if isinstance(network, EncoderOnly) else name: weight
        for name, weight in start.network.state_dict().items()
    }
    for name, needed in network.state_dict().items():
        missing = needed.shape[0] - weights[name].shape[0] if needed.dim() else 0
        if missing:
            mean = weights[name].float().mean(dim=0, keepdim=True).to(weights[name].dtype)
            weights[name] = torch.cat([weights[name], mean.expand(missing, *mean.shape[1:])])
    return weights


def n_processes() -> int:
    """The number of processes, from torchrun or `accelerate launch`."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_first_process() -> bool:
    """Whether this is the process that prints."""
    return os.environ.get("RANK", "0") == "0"


def precision(wanted: str, cpu: bool) -> torch.dtype:
    """The dtype of matrix products; "auto" takes bfloat16 if the hardware supports it."""
    if wanted == "auto":
        on_gpu = torch.cuda.is_available() and not cpu
        able = torch.cuda.is_bf16_supported() if on_gpu else torch.cpu._is_avx512_bf16_supported()
    else:
        able = wanted == "bf16"
    return torch.bfloat16 if able else torch.float32


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
    """Load into network and optimizer; returns the progress."""
    path = folder / FILE
    progress, tensors = _read(path)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(tensors[f"model/{name}"])
    states = {}
    for place, _ in enumerate(updated_by(optimizer)):
        start = f"optimizer/{place}/"
        states[place] = {
            k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)
        }
        if not states[place]:
            raise ValueError(
                f"{path} has no optimizer state for parameter {place}; use another --out"
            )
    optimizer.load_state_dict(optimizer.state_dict() | {"state": states})  # to each device
    return progress


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

    A second Ctrl-C interrupts as usual, except with several processes, where the launcher may pass
    the first one on. Outside the main thread no signal is handled.
    """
    interrupted = threading.Event()

    def note(number: int, _: FrameType | None) -> None:
        if interrupted.is_set() and number == signal.SIGINT and not several:
            raise KeyboardInterrupt
        interrupted.set()

    is_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def append_log(folder: Path, entry: dict[str, Any]) -> None:
    """Append a step's line."""
    with (folder / LOG).open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def log_entries(folder: Path) -> list[dict[str, Any]]:
    """All lines, in order."""
    lines = (folder / LOG).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def keep_log_until(folder: Path, step: int) -> None:
    """Drop the lines after a step, which will be repeated. A kill in between leaves the old log."""
    path = folder / LOG
    kept: dict[int, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        with contextlib.suppress(ValueError):  # a line cut short by a kill
            number = json.loads(line)["step"]
            kept |= {number: f"{line}\n"} if number <= step else {}
    unfinished = path.with_name(f"{LOG}.unfinished")
    unfinished.write_text("".join(kept.values()), encoding="utf-8")
    os.replace(unfinished, path)


def write_curve(folder: Path) -> dict[str, list[list[float]]]:
    """Write folder/loss.html from folder/log.jsonl; returns the plotted points.

    "train": [step, mean nats per token] in CURVE_POINTS stretches; "valid": [step, nats per token].
    """
    lines = log_entries(folder)
    stretch = max(1, len(lines) // CURVE_POINTS)
    train = []
    for start in range(0, len(lines), stretch):
        part = lines[start : start + stretch]
        train.append([part[-1]["step"], round(sum(e["loss"] for e in part) / len(part), 4)])
    valid = [[e["step"], round(e["valid_loss"], 4)] for e in lines if "valid_loss" in e]
    figure = go.Figure(layout={"title": {"text": "Loss (nats a token)"}, "template": "none"})
    for name, points in (("training (with dropout)", train), ("validation", valid)):
        figure.add_scatter(x=[p[0] for p in points], y=[p[1] for p in points], name=name)
    figure.update_xaxes(title_text="step")
    offline = {"showSendToCloud": False, "plotlyServerURL": ""}
    figure.write_html(folder / "loss.html", include_plotlyjs="directory", config=offline)
    return {"train": train, "valid": valid}
