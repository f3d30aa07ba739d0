"""Tiny trainings for tests: a recipe, ten lines to learn, and what a training left behind."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import transformer
from transformer.training.loop import STATE
from transformer.training.recipe import Recipe, load_recipe
from transformer.training.state import log_entries
from transformer.training.tasks import LanguageModel

ROOT = Path(__file__).resolve().parents[2]

RECIPE = """
task = "language-model"
[tokenizer]
vocab_size = 300
[model]
preset = "gpt"
d_model = 32
n_heads = 2
n_layers = 2
d_ff = 64
max_len = 24
padding_id = 0
dropout = {dropout}
attention_dropout = 0.0
tie_embeddings = true
[training]
steps = {steps}
batch_tokens = 128
precision = "{precision}"
optimizer = "{optimizer}"
learning_rate = {rate}
warmup_steps = 5
validate_every = {every}
save_every = 4
sample_prompts = ["The"]
"""

LINES = [
    "The cat sat on the mat.",
    "A dog ran to the red door.",
    "Every bird can sing a song.",
    "Two small fish swim in the sea.",
    "My friend has a blue hat.",
    "Rain falls on the green hill.",
    "We eat bread and honey today.",
    "Her kite flew over our house.",
    "Stars shine when it is night.",
    "Ten frogs jump in the pond.",
]


def recipe(
    folder: Path,
    *,
    steps: int,
    dropout: float = 0.1,
    rate: float = 3e-3,
    every: int = 6,
    optimizer: str = "adamw",
    precision: str = "float32",
) -> Recipe:
    path = folder / "tiny.toml"
    text = RECIPE.format(
        steps=steps, dropout=dropout, rate=rate, every=every, optimizer=optimizer,
        precision=precision,
    )  # fmt: skip
    path.write_text(text, encoding="utf-8")
    return load_recipe(str(path))


def task(folder: Path, lines: list[str] = LINES) -> LanguageModel:
    return LanguageModel(recipe(folder, steps=1), str(written(folder / "lines", lines, lines)))


def written(
    folder: Path, train: Sequence[str] = LINES * 3, valid: Sequence[str] = ("A cat ran.",)
) -> Path:
    """A folder with train.txt and valid.txt."""
    folder.mkdir(exist_ok=True)
    for name, lines in (("train", train), ("valid", valid)):
        text = "".join(f"{line}\n<|endoftext|>\n" for line in lines)
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return transformer.load(folder).network.state_dict()


def losses(folder: Path) -> list[float]:
    """The loss of every step, which the log must hold once, in their order."""
    entries = log_entries(folder / STATE)
    assert [entry["step"] for entry in entries] == list(range(1, len(entries) + 1))
    return [entry["loss"] for entry in entries]


def metadata(folder: Path) -> dict[str, Any]:
    """What a checkpoint says of itself."""
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))["metadata"]


def command(recipe_path: Path, data: Path, out: Path) -> list[str]:
    names = ["--data", str(data), "--out", str(out)]
    return ["-m", "transformer.training", str(recipe_path), *names, "--cpu"]
