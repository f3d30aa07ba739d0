"""Train a small network step by step, in memory; no file is written."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import torch

from transformer.checks import check_choice, check_flag, check_whole
from transformer.inference.engines.compiled import AUTO, engine_of
from transformer.inference.model import Model, device_of
from transformer.learning.exercises import (
    EXERCISES,
    Exercise,
    examples,
    held_out,
    share_right,
)
from transformer.model.blocks import FeedForward
from transformer.model.config import PRESETS, ModelConfig
from transformer.model.config import preset as preset_of
from transformer.model.transformer import (
    DecoderOnly,
    EncoderDecoder,
    EncoderOnly,
    build_transformer,
)
from transformer.training.recipe import Settings, whole
from transformer.training.updates import Batch, make_optimizer, updates

Network = DecoderOnly | EncoderOnly | EncoderDecoder

MOST_STEPS = 5000
SNAPSHOTS = 10  # kept on the way; with the first and the last one at most two more
EVERY = 10  # steps between two measurements
SHARED = {"llama", "qwen3"}  # presets whose heads share keys: two to one
HELD_OUT = 100  # questions that the accuracy is measured with
SMALL: dict[str, Any] = dict(
    d_model=64, n_heads=4, n_layers=2, d_ff=128, dropout=0.0, attention_dropout=0.0, padding_id=0
)  # fmt: skip
# Fields of a preset that depend on the size of its heads.
SMALL_HEADS: dict[str, dict[str, Any]] = {
    "llama": dict(n_key_heads=2),
    "qwen3": dict(n_key_heads=2, head_size=16),
    "neox": dict(rotary_size=4),
}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Step:
    """The state of the training after an update.

    number: from 1 to total. loss: nats a token of this update's questions. accuracy: the share of
    held-out questions that the network would answer without a mistake, as last measured; measured:
    whether that was after this step. network: the network itself; the next step changes it.
    """

    number: int
    total: int
    loss: float
    accuracy: float
    measured: bool
    network: Network
    task: Exercise

    def model(self, name: str | None = None, engine: str = AUTO) -> Model:
        """A copy of the network as it is now, which can be used like any loaded model."""
        network = copy.deepcopy(self.network).eval()
        about = {"exercise": self.task.name, "steps": self.number, "accuracy": self.accuracy}
        return Model(
            name=name or f"{self.task.name}-{self.number}",
            config=network.config,
            tokenizer=self.task.tokenizer(),
            network=network,
            metadata=about,
            engine=engine_of(network, engine),
        )


def steps(
    *,
    task: str,
    preset: str = "gpt",
    n_steps: int | None = None,
    learning_rate: float = 1e-2,
    batch: int = 64,
    seed: int = 0,
    measure_every: int = 10,
    feed_forward: bool = True,
    device: str | torch.device = "cpu",
    **changes: Any,
) -> Iterator[Step]:
    """Train a small network on an exercise; yields after each update.

    task: one of EXERCISES. preset: one of PRESETS, made small; changes: fields of ModelConfig, such
    as n_layers. n_steps: None = what is enough for all presets. batch: questions an update.
    feed_forward False: the feed-forward layers add nothing, ever, and attention does it all. To
    stop, stop iterating. The same arguments give the same steps, whatever other random numbers the
    process draws. Raises ValueError for unknown names.
    """
    check_choice("task", task, EXERCISES)
    exercise = EXERCISES[task]
    n_steps = exercise.n_steps if n_steps is None else n_steps
    check_whole("n_steps", n_steps, 1, MOST_STEPS)
    whole(1, 10_000).check("batch", batch)
    whole(1).check("measure_every", measure_every)
    check_flag("feed_forward", feed_forward)
    place = device_of(device)
    config = small_config(exercise, preset, **changes)
    settings = Settings(
        steps=n_steps, learning_rate=learning_rate, optimizer="muon", betas=(0.9, 0.98),
        weight_decay=0.0, warmup_steps=20, decay_from=0.3, seed=seed,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        network = build_transformer(config)
    for layer in network.modules():
        if isinstance(layer, FeedForward) and not feed_forward:  # zeros that are not trained
            for parameter in layer.requires_grad_(False).parameters():
                parameter.zero_()
    return _trained(exercise, network.to(place), settings, batch, measure_every)


def small_config(exercise: Exercise, preset: str, **changes: Any) -> ModelConfig:
    """A preset made small for an exercise; changes: fields of ModelConfig. Raises ValueError for
    impossible values."""
    small = {**SMALL, **SMALL_HEADS.get(preset, {}), "max_len": exercise.longest + 4}
    return preset_of(preset, **{**small, **changes, "vocab_size": exercise.tokenizer().vocab_size})


def _trained(
    exercise: Exercise, network: Network, settings: Settings, batch: int, every: int
) -> Iterator[Step]:
    optimizer = make_optimizer(network, settings)
    questions = held_out(exercise, HELD_OUT)

    def batches() -> Iterator[Batch]:
        rng = Random(settings.seed)
        for place in range(settings.steps):
            rows = exercise.rows(rng, batch, held_out=False)
            yield 0, place, examples(exercise, network.config.family, rows)

    accuracy = 0.0
    network.train()
    padding_id = exercise.tokenizer().padding_id
    for update in updates(network, optimizer, settings, batches(), padding_id):
        if measured := update.step % every == 0 or update.step in (1, settings.steps):
            network.eval()
            accuracy = share_right(network, exercise, questions)
            network.train()
        yield Step(
            number=update.step, total=settings.steps, loss=update.loss, accuracy=accuracy,
            measured=measured, network=network, task=exercise,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A training. Raises ValueError for an impossible plan.

    task: one of EXERCISES. preset: one of PRESETS. n_layers: per stack. width: d_model.
    feed_forward False: attention alone. The same plan gives the same network.
    """

    task: str
    preset: str = "gpt"
    n_layers: int = 2
    n_heads: int = 4
    width: int = 32
    n_steps: int = 400
    learning_rate: float = 0.01
    seed: int = 0
    feed_forward: bool = True

    def __post_init__(self) -> None:
        check_choice("task", self.task, EXERCISES)
        check_choice("preset", self.preset, PRESETS)
        self.config()

    @property
    def exercise(self) -> Exercise:
        """The exercise to learn."""
        return EXERCISES[self.task]

    def config(self) -> ModelConfig:
        """The network's configuration."""
        return small_config(self.exercise, self.preset, **self._changes())

    def steps(self) -> Iterator[Step]:
        """Train by this plan; yields after each update."""
        return steps(
            task=self.task,
            preset=self.preset,
            n_steps=self.n_steps,
            learning_rate=self.learning_rate,
            seed=self.seed,
            measure_every=EVERY,
            feed_forward=self.feed_forward,
            **self._changes(),
        )

    def kept(self) -> list[int]:
        """The steps whose networks are kept: denser at the start, where more happens."""
        most = self.n_steps // EVERY
        ratio = max(1, most) ** (1 / (SNAPSHOTS - 1))
        spread = {EVERY * round(ratio**place) for place in range(SNAPSHOTS)}
        return sorted({1, *(step for step in spread if step < self.n_steps), self.n_steps})

    def _changes(self) -> dict[str, Any]:
        wide = 2 * self.width if self.feed_forward else 1
        changes: dict[str, Any] = {
            "n_layers": self.n_layers, "n_heads": self.n_heads, "d_model": self.width,
            "d_ff": wide,
        }  # fmt: skip
        if self.preset in SHARED:
            changes["n_key_heads"] = max(1, self.n_heads // 2)
        return changes
