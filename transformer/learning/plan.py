"""What is to be trained: every choice that the tab Learn offers, checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from transformer.messages import invalid
from transformer.model.config import ModelConfig
from transformer.training.exercises import EXERCISES, Exercise
from transformer.training.stepwise import Step, small_config, steps
from transformer.views import VIEWS

SNAPSHOTS = 10  # kept on the way; with the first and the last one at most two more
EVERY = 10  # steps between two measurements
SHARED = {"llama", "qwen3"}  # presets whose heads share keys: two to one


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A training. Raises ValueError for what cannot be trained.

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
        for parameter in VIEWS["learn"].parameters:
            parameter.check(getattr(self, parameter.name))
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

    def measured(self, step: int) -> bool:
        """Whether the network is looked at after a step."""
        return step % EVERY == 0 or step in (1, self.n_steps)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return dataclasses.asdict(self)

    def _changes(self) -> dict[str, Any]:
        wide = 2 * self.width if self.feed_forward else 1
        changes: dict[str, Any] = {
            "n_layers": self.n_layers, "n_heads": self.n_heads, "d_model": self.width,
            "d_ff": wide,
        }  # fmt: skip
        if self.preset in SHARED:
            changes["n_key_heads"] = max(1, self.n_heads // 2)
        return changes


def plan_of(values: Any) -> Plan:
    """A plan from plain values. Raises ValueError for an unknown field or a wrong value."""
    fields = [field.name for field in dataclasses.fields(Plan)]
    if not isinstance(values, Mapping) or not set(values) <= set(fields) or "task" not in values:
        raise invalid("a training must be an object of {allowed}, with a task", allowed=fields)
    return Plan(**values)
