"""A small training run: its plan, and the record of its losses, measurements and kept networks.

The five bundled recordings, one per exercise, are made by `tools/record_trainings.py`.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from transformer.analysis.atlas import Atlas, atlas
from transformer.checks import check_choice, check_whole
from transformer.inference.model import Model
from transformer.learning.exercises import (
    EXERCISES,
    HELD_OUT,
    Exercise,
    best_head,
    examples,
    n_right,
    prompt_of,
    sample_of,
)
from transformer.model.blocks import FeedForward
from transformer.model.config import PRESETS, ModelConfig, preset
from transformer.model.hooks import Hook
from transformer.model.network import Transformer
from transformer.model.transformer import build_transformer
from transformer.training.recipe import Settings
from transformer.training.updates import Batch, Update, make_optimizer, updates

MOST_STEPS = 5000
BATCH_QUESTIONS = 64  # questions of an update
MEASURE_EVERY = 10  # steps between two measurements
NETWORKS = 10  # kept on the way; with the first and the last one at most two more
SHARED = {"llama", "qwen3"}  # presets whose heads share keys: two to one
# Fields of a preset that depend on the size of its heads.
SMALL_HEADS: dict[str, dict[str, Any]] = {
    "qwen3": {"head_size": 16},
    "neox": {"rotary_size": 4},
}
RECORDINGS = Path(__file__).parent / "recorded_runs"
STORIES = RECORDINGS / "stories.json"  # what a network like stories wrote as it was trained
WITHOUT = RECORDINGS / "without.json"  # right answers of networks trained without a part
CARD = """# {title}

{words} A small network, trained in the page's tab *Learn* in {step} steps; held-out questions
answered right: {right}.

`{plan}`
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A training run. Raises ValueError for an impossible plan.

    task: one of EXERCISES. preset: one of PRESETS, made small. n_layers: per stack. width: d_model.
    feed_forward False: the feed-forward layers add nothing, ever, and attention does it all. The
    same plan gives the same network, whatever other random numbers the process draws.
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
        check_whole("n_steps", self.n_steps, 1, MOST_STEPS)
        self.config()

    @property
    def exercise(self) -> Exercise:
        """The exercise to learn."""
        return EXERCISES[self.task]

    def config(self) -> ModelConfig:
        """The network's configuration."""
        shared = {"n_key_heads": max(1, self.n_heads // 2)} if self.preset in SHARED else {}
        small: dict[str, Any] = {**SMALL_HEADS.get(self.preset, {}), **shared}
        return preset(
            self.preset,
            vocab_size=self.exercise.tokenizer().vocab_size,
            max_len=self.exercise.longest + 4,
            n_layers=self.n_layers,
            n_heads=self.n_heads,
            d_model=self.width,
            d_ff=2 * self.width if self.feed_forward else 1,
            dropout=0.0,
            attention_dropout=0.0,
            padding_id=0,
            **small,
        )

    def kept(self) -> list[int]:
        """The steps whose networks are kept: denser at the start, where more happens."""
        most = self.n_steps // MEASURE_EVERY
        ratio = max(1, most) ** (1 / (NETWORKS - 1))
        spread = {MEASURE_EVERY * round(ratio**place) for place in range(NETWORKS)}
        return sorted({1, *(step for step in spread if step < self.n_steps), self.n_steps})

    def is_measured(self, step: int) -> bool:
        """Whether the network is measured after a step."""
        return step % MEASURE_EVERY == 0 or step in (1, self.n_steps)

    def network(self) -> Transformer:
        """The network before its first step."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.seed)
            network = build_transformer(self.config())
        for layer in network.modules():
            if isinstance(layer, FeedForward) and not self.feed_forward:
                for parameter in layer.requires_grad_(False).parameters():
                    parameter.zero_()
        return network

    def updates(self, network: Transformer, hooks: Sequence[Hook] = ()) -> Iterator[Update]:
        """Train the network; yields after each update. hooks: changes that it is trained with."""
        settings = Settings(
            steps=self.n_steps, learning_rate=self.learning_rate, optimizer="muon",
            betas=(0.9, 0.98), weight_decay=0.0, warmup_steps=20, decay_from=0.3, seed=self.seed,
        )  # fmt: skip

        def batches() -> Iterator[Batch]:
            rng = Random(self.seed)
            for place in range(self.n_steps):
                rows = self.exercise.rows(rng, BATCH_QUESTIONS, held_out=False)
                yield 0, place, examples(self.exercise, network.config.family, rows)

        optimizer = make_optimizer(network.train(), settings)
        padding_id = self.exercise.tokenizer().padding_id
        return updates(network, optimizer, settings, batches(), padding_id, hooks=hooks)


# Small, so that all networks of all of them take less than 2 MB.
BUNDLED = {
    plan.task: plan
    for plan in (
        Plan(task="copy", n_steps=300),
        Plan(task="reverse", preset="vaswani-2017", n_layers=1),
        Plan(task="sort"),
        Plan(task="addition", preset="bert"),
        Plan(task="induction", feed_forward=False),
    )
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """What was measured after a step. accuracy: the share of held-out questions answered right.

    score: the weight that the best head puts on the letter which is to be said next, from 0 to 1;
    site, head: where it is. None where the exercise has no such letter.
    """

    step: int
    accuracy: float
    score: float | None = None
    site: str | None = None
    head: int | None = None


@dataclass(kw_only=True, slots=True, eq=False)
class Record:
    """A training run so far, or a part of one.

    losses: nats per token, of each step. networks: by step, all parameters in half precision.
    """

    plan: Plan
    losses: list[float] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    networks: dict[int, NDArray[np.float16]] = field(default_factory=dict)

    @property
    def step(self) -> int:
        """The number of steps so far."""
        return len(self.losses)

    def extend(self, part: Record) -> None:
        """Append what came next. The networks of the plan are kept, and the last one."""
        self.losses += part.losses
        self.measurements += part.measurements
        kept = {step: self.networks[step] for step in self.plan.kept() if step in self.networks}
        self.networks = kept | part.networks  # a new dictionary: other threads read the old one

    def measured_by(self, step: int) -> Measurement | None:
        """The last measurement up to a step."""
        return next(
            (
                measurement
                for measurement in reversed(self.measurements)
                if measurement.step <= step
            ),
            None,
        )

    def model(self, step: int | None = None, name: str | None = None) -> Model:
        """The network kept after a step, by default the last, ready for use. Raises ValueError if
        none was kept."""
        networks = self.networks
        step = max(networks, default=0) if step is None else step
        check_choice("step", step, sorted(networks))
        config, exercise = self.plan.config(), self.plan.exercise
        network = build_transformer(config).requires_grad_(False)
        vector = torch.from_numpy(networks[step]).float()
        vector_to_parameters(vector, network.parameters())
        last = self.measured_by(step)
        about = {
            "exercise": exercise.name, "steps": step, "training": dataclasses.asdict(self.plan),
            "accuracy": last.accuracy if last else None,
        }  # fmt: skip
        right = "–" if last is None else f"{last.accuracy:.0%}"
        words = {"title": exercise.title, "words": exercise.words, "step": step, "right": right}
        return Model(
            name=name or f"{exercise.name}-{step}",
            config=config,
            tokenizer=exercise.tokenizer(),
            network=network,
            card=CARD.format(**words, plan=self.plan),
            metadata=about,
            sample=sample_of(exercise, config.family),
        )

    def to_bytes(self) -> bytes:
        """As an NPZ file, which `of_bytes` reads; nothing in it is pickled."""
        file, plan = io.BytesIO(), dataclasses.asdict(self.plan)
        measurements = [dataclasses.asdict(measurement) for measurement in self.measurements]
        about = json.dumps({"plan": plan, "measurements": measurements})
        losses = np.asarray(self.losses, dtype=np.float32)
        networks: dict[str, Any] = {str(step): vector for step, vector in self.networks.items()}
        np.savez_compressed(file, about=about, losses=losses, **networks)
        return file.getvalue()

    @classmethod
    def of_bytes(cls, written: bytes) -> Record:
        """The inverse of `to_bytes`."""
        with np.load(io.BytesIO(written), allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            return cls(
                plan=Plan(**about["plan"]),
                losses=file["losses"].tolist(),
                measurements=[Measurement(**values) for values in about["measurements"]],
                networks={int(name): file[name] for name in file.files if name.isdecimal()},
            )


def measured(plan: Plan, network: Transformer, step: int, losses: list[float]) -> Record:
    """Measure a network after a step: the part of a record that ends there.

    losses: of the steps since the last part.
    """
    network.eval()
    best, exercise = dict[str, Any](), plan.exercise
    if exercise.reads:
        score, site, head = best_head(network, exercise)
        best = {"score": score, "site": str(site), "head": head}
    accuracy = n_right(network, exercise) / HELD_OUT
    network.train()
    vector = parameters_to_vector(network.parameters()).detach().half().numpy()
    return Record(
        plan=plan,
        losses=losses,
        measurements=[Measurement(step=step, accuracy=accuracy, **best)],
        networks={step: vector},
    )


def train(plan: Plan) -> Iterator[Record]:
    """Train a small network; yields the record, which grows, after each measured step.

    To stop, stop iterating.
    """
    record, network, losses = Record(plan=plan), plan.network(), list[float]()
    for update in plan.updates(network):
        losses.append(update.loss)
        if plan.is_measured(update.step):
            record.extend(measured(plan, network, update.step, losses))
            losses = []
            yield record


def bundled_recording(task: str) -> Record:
    """The bundled training run of an exercise. KeyError for an unknown one."""
    return Record.of_bytes((RECORDINGS / f"{BUNDLED[task].task}.npz").read_bytes())


def pictures_of(model: Model, exercise: Exercise) -> dict[str, Atlas]:
    """All heads for the exercise's example, read with its right answer, whatever the network would
    answer: by stack and kind, "decoder.self"."""
    question = exercise.example
    answer, family = exercise.solve(question), model.config.family
    if family == "encoder-decoder":
        ids = model.tokenizer.encode(answer)
        run = model.generate(question, max_new_tokens=len(ids), forced_tokens=ids)
    else:
        text = prompt_of(exercise, family, question)
        run = model.trace(text + answer if family == "decoder" else text)
    return {f"{stack}.{kind}": atlas(run, stack, kind) for stack, kind in run.trace.kinds()}
