"""Recipes: small TOML files that define a training, except for the place of its data."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from transformer.checks import check_choice, check_names, shortened
from transformer.model.config import PRESETS, ModelConfig, preset
from transformer.plain_text import ENGLISH_STORIES, PLAIN_ENGLISH
from transformer.runs.request import MAX_SEED
from transformer.tokenizer import HIDDEN, SPECIALS, Tokenizer

FILL_IN = "fill-in"
RECIPES = Path(__file__).parent / "recipes"
FAMILIES = {  # that a task needs
    "language-model": "decoder",
    "translation": "encoder-decoder",
    FILL_IN: "encoder",
}
TASKS = tuple(FAMILIES)
TABLES = ("data", "tokenizer", "model", "training", "card")
BPE, CHARACTERS = TOKENIZERS = ("bpe", "characters")
OPTIMIZERS = ("adamw", "muon")
PRECISIONS = ("auto", "float32", "bf16")
DATA = {"source", "target", "valid", "source_text"}  # keys of a [data] table


class Allowed(NamedTuple):
    """The allowed values of a setting: in words, and as a predicate."""

    words: str
    fits: Callable[[Any], bool]

    def check(self, name: str, got: Any) -> None:
        """Raise ValueError with the setting's name and its allowed values."""
        if not self.fits(got):
            raise ValueError(f"{name} must be {self.words}; got {shortened(got)}")


def whole(lowest: int, highest: int = 10**9) -> Allowed:
    """A whole number in a range."""
    words = f"a whole number from {lowest:,} to {highest:,}"
    return Allowed(words, lambda got: type(got) is int and lowest <= got <= highest)


def _number(words: str, fits: Callable[[float], bool]) -> Allowed:
    return Allowed(
        f"a number {words}",
        lambda got: isinstance(got, int | float) and not isinstance(got, bool) and fits(got),
    )


def _one_of(allowed: Collection[str]) -> Allowed:
    return Allowed(
        f"one of {', '.join(allowed)}", lambda got: isinstance(got, str) and got in allowed
    )


def _list_of(words: str, each: Allowed, count: int | None = None) -> Allowed:
    def fits(got: Any) -> bool:
        is_list = isinstance(got, list | tuple) and count in (None, len(got))
        return is_list and all(map(each.fits, got))

    return Allowed(words, fits)


TEXT = Allowed("a text that is not empty", lambda got: isinstance(got, str) and bool(got.strip()))
_BETA = _number("from 0 to below 1", lambda got: 0 <= got < 1)
VOCAB_SIZE = whole(256 + len(SPECIALS), 1_000_000)
# The settings of a [training] table, checked alike in files, options and Python.
SETTINGS: dict[str, Allowed] = {
    "seed": whole(0, MAX_SEED),
    "steps": whole(1),
    "batch_tokens": whole(1),
    "learning_rate": _number("above 0 to 10", lambda got: 0 < got <= 10),
    "optimizer": _one_of(OPTIMIZERS),
    "betas": _list_of("two numbers from 0 to below 1", _BETA, 2),
    "weight_decay": _number("from 0 to 10", lambda got: 0 <= got <= 10),
    "warmup_steps": whole(0),
    "decay_from": _number("from 0 to 1", lambda got: 0 <= got <= 1),
    "clip_norm": _number("above 0 (inf: nothing is clipped)", lambda got: got > 0),
    "label_smoothing": _BETA,
    "precision": _one_of(PRECISIONS),
    "validate_every": whole(1),
    "validation_examples": whole(1),
    "save_every": whole(1),
    "sample_prompts": _list_of("a list of texts, none of them empty", TEXT),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The [training] table: how the weights are fitted. Raises ValueError, see SETTINGS."""

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
        for name, allowed in SETTINGS.items():
            allowed.check(name, getattr(self, name))
        for name in ("betas", "sample_prompts"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

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

    def __post_init__(self) -> None:
        for prompt in self.settings.sample_prompts if self.task == FILL_IN else ():
            if HIDDEN not in prompt:
                got = shortened(prompt)
                raise ValueError(f"sample_prompts of {FILL_IN} must hold {HIDDEN}; got {got}")

    def tokenizer_of(self, train: Iterable[str], valid: Iterable[str] = ()) -> Tokenizer:
        """Train a tokenizer. One of characters also knows those of the validation text, which it
        could not read otherwise."""
        if self.tokenizer == CHARACTERS:
            return Tokenizer.of_characters(chain(train, valid))
        return Tokenizer.train(train, self.vocab_size)

    def model_config(self, vocab_size: int) -> ModelConfig:
        """The preset with its changes. Raises ValueError for impossible values."""
        changes = {name: value for name, value in self.model.items() if name != "preset"}
        return preset(self.model["preset"], vocab_size=vocab_size, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)


def recipe_names() -> list[str]:
    """The names of the bundled recipes."""
    return sorted(path.stem for path in RECIPES.glob("*.toml"))


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
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not readable TOML: {error}") from error
    if not content:
        raise ValueError(f"{path} is empty; needed: a recipe such as {RECIPES / 'stories.toml'}")
    check_names(str(path), content, {"task", *TABLES})
    try:
        recipe = _recipe(path.stem, content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    check_names("settings", changes, SETTINGS)
    return dataclasses.replace(recipe, settings=dataclasses.replace(recipe.settings, **changes))


def _recipe(name: str, content: dict[str, Any]) -> Recipe:
    task: Any = content.get("task")
    check_choice("task", task, TASKS)
    for table in TABLES:
        if not isinstance(content.get(table, {}), dict):
            raise ValueError(f"[{table}] must be a table; got {shortened(content[table])}")
    data, tokens, model, training, card = (dict(content.get(table, {})) for table in TABLES)
    _check_tables(data, tokens, card)
    kind, vocab_size = tokens.get("kind", BPE), tokens.get("vocab_size", 4096)
    _check_model(model, task, vocab_size)
    check_names("[training]", training, SETTINGS)
    try:
        settings = Settings(**training)
    except ValueError as error:
        raise ValueError(f"[training] {error}") from error
    return Recipe(
        name=name,
        task=task,
        tokenizer=kind,
        vocab_size=vocab_size,
        model=model,
        settings=settings,
        data=data,
        card=card,
    )


def _check_tables(data: dict[str, Any], tokens: dict[str, Any], card: dict[str, Any]) -> None:
    check_names("[data]", data, DATA)
    for table, values in (("data", data), ("card", card)):
        for key, value in values.items():
            TEXT.check(f"[{table}] {key}", value)
    if ("source" in data) != ("target" in data):
        raise ValueError("[data] needs source and target, or neither; got one of them")
    if "source_text" in data:
        check_choice("[data] source_text", data["source_text"], [PLAIN_ENGLISH, ENGLISH_STORIES])
    check_names("[tokenizer]", tokens, {"kind", "vocab_size"})
    check_choice("[tokenizer] kind", tokens.get("kind", BPE), TOKENIZERS)
    if "vocab_size" in tokens:
        if tokens.get("kind") == CHARACTERS:
            raise ValueError("[tokenizer] vocab_size is for bpe; a text has the characters it has")
        VOCAB_SIZE.check("[tokenizer] vocab_size", tokens["vocab_size"])


def _check_model(model: dict[str, Any], task: str, vocab_size: int) -> None:
    name: Any = model.get("preset")
    check_choice("[model] preset", name, PRESETS)
    family, needed = model.get("family", PRESETS[name]["family"]), FAMILIES[task]
    if family != needed:
        fitting = [preset for preset, fields in PRESETS.items() if fields["family"] == needed]
        raise ValueError(
            f"the task {shortened(task)} needs the family {shortened(needed)}; the preset "
            f"{shortened(name)} is of the family {shortened(family)}; allowed: {fitting}"
        )
    for key in ("vocab_size", "target_vocab_size"):
        if key in model:
            raise ValueError(
                f"[model] {key} is set by the tokenizer; allowed: [tokenizer] vocab_size"
            )
    if model.get("padding_id", 0) != 0 or model.get("target_padding_id", 0) != 0:
        raise ValueError("[model] padding_id must be 0, the tokenizer's padding, or left out")
    changes = {key: value for key, value in model.items() if key != "preset"}
    try:
        preset(name, vocab_size=vocab_size, **changes)
    except ValueError as error:
        raise ValueError(f"[model] {error}") from error
