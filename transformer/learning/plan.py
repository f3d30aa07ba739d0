"""A training's plan, and the held-out questions that it is measured on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from transformer.checkpoint import HeldOutSample
from transformer.checks import check_choice
from transformer.messages import mark, say
from transformer.model.config import PRESETS, ModelConfig
from transformer.training.exercises import EXERCISES, Exercise, Row
from transformer.training.stepwise import Step, small_config, steps

SNAPSHOTS = 10  # kept on the way; with the first and the last one at most two more
EVERY = 10  # steps between two measurements
HELD_OUT_SEED = -1
SAMPLE = 40  # questions
ABOUT = mark(
    "Held-out questions with their answers; the letters of a question are drawn at random, so that "
    "nobody could foresee them."
)
SHARED = {"llama", "qwen3"}  # presets whose heads share keys: two to one


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
        """What is learned."""
        return EXERCISES[self.task]

    def config(self) -> ModelConfig:
        """The network's."""
        return small_config(self.exercise, self.preset, **self._changes())

    def steps(self) -> Iterator[Step]:
        """The training itself, an update at a time."""
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
        """The steps after which the network is kept: more of them early, where more happens."""
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


def held_out(exercise: Exercise, count: int) -> list[Row]:
    """Held-out questions, always the same."""
    return exercise.rows(Random(HELD_OUT_SEED), count, held_out=True)


def prompt_of(exercise: Exercise, family: str, question: str) -> str:
    """A question as it is typed to a network."""
    return question + exercise.sign if family == "decoder" else question


def sample_of(exercise: Exercise, family: str) -> HeldOutSample | None:
    """Text to measure a loss on; None for an encoder, which predicts no next token."""
    rows = held_out(exercise, SAMPLE)
    if family == "encoder":
        return None
    texts: list[tuple[str, ...]] = list(rows)
    if family == "decoder":
        texts = [(prompt_of(exercise, family, question) + answer,) for question, answer in rows]
    return HeldOutSample(about=say(ABOUT), texts=tuple(texts))
