"""Recipes: small TOML files that define a training, except for where its data is."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformer.checks import check_choice, check_least, check_names, shortened
from transformer.model.config import ModelConfig
from transformer.model.presets import PRESETS, preset
from transformer.plain_text import ENGLISH_STORIES, PLAIN_ENGLISH
from transformer.tokenizer import Tokenizer

RECIPES = Path(__file__).parent / "recipes"
FAMILIES = {  # that a task needs
    "language-model": "decoder",
    "translation": "encoder-decoder",
    "fill-in": "encoder",
}
TASKS = tuple(FAMILIES)
BPE, CHARACTERS = TOKENIZERS = ("bpe", "characters")
OPTIMIZERS = ("adamw", "muon")
PRECISIONS = ("auto", "float32", "bf16")
DATA = {"source", "target", "valid", "download", "source_text"}  # what a [data] table may hold


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
            check_least(name, getattr(self, name), 1)
        if not 0 <= self.decay_from <= 1:
            raise ValueError(f"decay_from must be from 0 to 1; got {shortened(self.decay_from)}")
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        check_choice("precision", self.precision, PRECISIONS)

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
    tokenizer: str = BPE
    vocab_size: int
    model: dict[str, Any]
    settings: Settings
    data: dict[str, str] = field(default_factory=dict)
    card: dict[str, str] = field(default_factory=dict)

    def tokenizer_of(self, texts: Iterable[str]) -> Tokenizer:
        """A tokenizer trained on texts."""
        if self.tokenizer == CHARACTERS:
            return Tokenizer.of_characters(texts)
        return Tokenizer.train(texts, self.vocab_size)

    def model_config(self, vocab_size: int) -> ModelConfig:
        """The preset with its changes. Raises ValueError for impossible values."""
        changes = {name: value for name, value in self.model.items() if name != "preset"}
        return preset(self.model["preset"], vocab_size=vocab_size, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: what the result depends on; not the download address."""
        values = dataclasses.asdict(self)
        values["data"].pop("download", None)
        return values


def recipe_names() -> list[str]:
    """Recipes that come with the project."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))


def downloading_recipe_names() -> list[str]:
    """The bundled recipes with a download address."""
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
            f"no recipe {shortened(name_or_path)}; allowed: a .toml file, or one of "
            f"{recipe_names()}"
        )
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not readable TOML: {error}") from error
    check_names(str(path), content, {"task", "data", "tokenizer", "model", "training", "card"})
    task: Any = content.get("task")
    check_choice(f"{path}: task", task, TASKS)
    model = content.get("model", {})
    name: Any = model.get("preset")
    check_choice(f"{path}: model.preset", name, PRESETS)
    family, needed = model.get("family", PRESETS[name]["family"]), FAMILIES[task]
    if family != needed:
        fitting = [one for one, fields in PRESETS.items() if fields["family"] == needed]
        raise ValueError(
            f"{path}: the task {shortened(task)} needs the family {shortened(needed)}; the preset "
            f"{shortened(name)} is of the "
            f"family {shortened(family)}; allowed: {fitting}"
        )
    data, tokens = content.get("data", {}), content.get("tokenizer", {})
    check_names(f"{path}: [data]", data, DATA)
    if "source_text" in data:
        allowed = [PLAIN_ENGLISH, ENGLISH_STORIES]
        check_choice(f"{path}: [data] source_text", data["source_text"], allowed)
    check_names(f"{path}: [tokenizer]", tokens, {"kind", "vocab_size"})
    kind = tokens.get("kind", BPE)
    check_choice(f"{path}: tokenizer.kind", kind, TOKENIZERS)
    training = {**content.get("training", {}), **changes}
    check_names(f"{path}: [training]", training, {f.name for f in dataclasses.fields(Settings)})
    for name in ("betas", "sample_prompts"):
        if name in training:
            training[name] = tuple(training[name])
    return Recipe(
        name=path.stem,
        task=task,
        tokenizer=kind,
        vocab_size=tokens.get("vocab_size", 4096),
        model=model,
        settings=Settings(**training),
        data=data,
        card=content.get("card", {}),
    )
