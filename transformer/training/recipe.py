"""Recipes: small TOML files that say everything about a training but where the data lies."""

from __future__ import annotations

import dataclasses
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformer.model.config import PRESETS

RECIPES = Path(__file__).parent / "recipes"
TASKS = ("language-model", "translation")
OPTIMIZERS = ("adamw", "muon")
PRECISIONS = ("auto", "float32", "bf16")
DATA = {"source", "target", "valid", "download"}  # what a [data] table may hold


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The [training] table: how the weights are fitted."""

    seed: int = 0
    steps: int = 1000
    batch_tokens: int = 2048
    learning_rate: float = 1e-3
    optimizer: str = "adamw"
    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.1
    warmup_steps: int = 100
    decay_from: float = 0.5
    clip_norm: float = 1.0
    label_smoothing: float = 0.0
    precision: str = "auto"
    validate_every: int = 500
    validation_examples: int = 100
    save_every: int = 250
    sample_prompts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("steps", "batch_tokens", "validate_every", "save_every"):
            got = getattr(self, name)
            if not isinstance(got, int) or got < 1:
                raise ValueError(f"{name} must be a whole number of at least 1; got {got!r}")
        if not 0 <= self.decay_from <= 1:
            raise ValueError(f"decay_from must be from 0 to 1; got {self.decay_from!r}")
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer must be one of {list(OPTIMIZERS)}; got {self.optimizer!r}")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {list(PRECISIONS)}; got {self.precision!r}")

    def learning_rate_at(self, step: int) -> float:
        """Warm-up from zero, then constant, then linearly to zero at the last step."""
        warm = min(1.0, (step + 1) / max(1, self.warmup_steps))
        start = self.decay_from * self.steps
        left = 1.0 if step < start else (self.steps - step) / max(1.0, self.steps - start)
        return self.learning_rate * min(warm, left)


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """One recipe file, read and checked."""

    name: str
    task: str
    vocab_size: int
    model: dict[str, Any]
    settings: Settings
    data: dict[str, str] = field(default_factory=dict)
    card: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: what the result depends on, so not where the text comes from."""
        values = dataclasses.asdict(self)
        values["data"].pop("download", None)
        return values


def recipe_names() -> list[str]:
    """Recipes that come with the project."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))


def downloading_recipe_names() -> list[str]:
    """Those of them that say where their text can be downloaded."""
    return [name for name in recipe_names() if "download" in load_recipe(name).data]


def load_recipe(name_or_path: str, **changes: Any) -> Recipe:
    """A bundled recipe by name, or a TOML file; `changes` replace training settings.

    Raises ValueError in one sentence for anything unknown, missing or out of range.
    """
    path = Path(name_or_path)
    if name_or_path in recipe_names():
        path = RECIPES / f"{name_or_path}.toml"
    if not path.is_file():
        raise ValueError(
            f"no recipe {name_or_path!r}; allowed: a .toml file, or one of {recipe_names()}"
        )
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not readable TOML: {error}") from error
    _check_keys(str(path), content, {"task", "data", "tokenizer", "model", "training", "card"})
    task = content.get("task")
    if task not in TASKS:
        raise ValueError(f"{path}: task must be one of {list(TASKS)}; got {task!r}")
    preset = content.get("model", {}).get("preset")
    if preset not in PRESETS:
        raise ValueError(f"{path}: model.preset must be one of {list(PRESETS)}; got {preset!r}")
    _check_keys(f"{path}: [data]", content.get("data", {}), DATA)
    training = {**content.get("training", {}), **changes}
    _check_keys(f"{path}: [training]", training, {f.name for f in dataclasses.fields(Settings)})
    for name in ("betas", "sample_prompts"):
        if name in training:
            training[name] = tuple(training[name])
    return Recipe(
        name=path.stem,
        task=task,
        vocab_size=content.get("tokenizer", {}).get("vocab_size", 4096),
        model=content["model"],
        settings=Settings(**training),
        data=content.get("data", {}),
        card=content.get("card", {}),
    )


def _check_keys(where: str, got: dict[str, Any], allowed: set[str]) -> None:
    unknown = sorted(set(got) - allowed)
    if unknown:
        raise ValueError(f"{where}: unknown entry {unknown[0]!r}; allowed: {sorted(allowed)}")
