"""A watched training: a report after each measured step, and the record that they fill."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from transformer.analysis.atlas import Atlas, atlas
from transformer.checkpoint import HeldOutSample
from transformer.inference.engines.choice import NETWORK
from transformer.inference.model import Model
from transformer.learning.plan import Plan, held_out, prompt_of, sample_of
from transformer.model.weights import network_with, weights_of
from transformer.runs.memory_budget import bytes_of
from transformer.runs.run import Run
from transformer.training.exercises import Exercise
from transformer.training.exercises.asking import answer_of, weight_on_wanted
from transformer.training.stepwise import Step

NUMBER_BYTES, MEASUREMENT_BYTES = 32, 250  # of a number in a list; of a Measurement
SCORED = 50  # held-out questions that the heads are measured on
CARD = """# {title}

{words} A small network, trained in the page's tab *Learn* in {step} steps; held-out questions
answered right: {right}.

`{plan}`
"""
Weights = dict[str, NDArray[np.float16]]
Pictures = dict[str, Atlas]  # by stack and kind, "decoder.self"


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


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Snapshot:
    """The network after a step, in half precision, with all heads of the exercise's example."""

    step: int
    weights: Weights
    pictures: Pictures

    @property
    def size(self) -> int:
        """Bytes."""
        return bytes_of((self.weights, self.pictures))


@dataclass(kw_only=True, slots=True, eq=False)
class Record:
    """A training so far. losses: nats a token, of step 1 and those that follow."""

    plan: Plan
    losses: list[float] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    snapshots: dict[int, Snapshot] = field(default_factory=dict)

    @property
    def step(self) -> int:
        """How many steps were made."""
        return len(self.losses)

    @property
    def size(self) -> int:
        """Bytes of the kept networks, and of the curves."""
        kept = sum(snapshot.size for snapshot in list(self.snapshots.values()))
        return kept + NUMBER_BYTES * len(self.losses) + MEASUREMENT_BYTES * len(self.measurements)

    def measured_by(self, step: int) -> Measurement | None:
        """The last one measured up to a step."""
        return next((one for one in reversed(self.measurements) if one.step <= step), None)

    def model(self, step: int, name: str) -> Model:
        """The network as it was kept after a step, ready to be asked. KeyError if it was not."""
        config, exercise = self.plan.config(), self.plan.exercise
        kept = self.snapshots[step].weights
        weights = {key: torch.from_numpy(value).float() for key, value in kept.items()}
        last = self.measured_by(step)
        about = {
            "exercise": exercise.name, "steps": step, "training": self.plan.to_dict(),
            "accuracy": last.accuracy if last else None,
        }  # fmt: skip
        right = "–" if last is None else f"{last.accuracy:.0%}"
        told = {"title": exercise.title, "words": exercise.words, "step": step, "right": right}
        card = CARD.format(**told, plan=self.plan)
        sample: HeldOutSample | None = sample_of(exercise, config.family)
        return Model(
            name=name,
            config=config,
            tokenizer=exercise.tokenizer(),
            network=network_with(config, weights).eval().requires_grad_(False),
            card=card,
            metadata=about,
            sample=sample,
        )

    def to_bytes(self) -> bytes:
        """As an NPZ file, which `of_bytes` reads; nothing in it is pickled."""
        arrays: dict[str, Any] = {}
        shapes: dict[str, list[int]] = {}
        for step, snapshot in self.snapshots.items():
            shapes = {name: list(array.shape) for name, array in snapshot.weights.items()}
            flat = [snapshot.weights[name].ravel() for name in shapes]
            arrays[f"{step}/weights"] = np.concatenate(flat)  # one array: each has a long header
            for kind, small in snapshot.pictures.items():
                arrays |= {f"{step}/pixels/{kind}": small.pixels}
                arrays |= {f"{step}/masked/{kind}": small.masked}
        about = {
            "plan": self.plan.to_dict(),
            "shapes": shapes,
            "moments": [dataclasses.asdict(one) for one in self.measurements],
        }
        file = io.BytesIO()
        losses = np.asarray(self.losses, dtype=np.float32)
        np.savez_compressed(file, about=json.dumps(about), losses=losses, **arrays)
        return file.getvalue()

    @classmethod
    def of_bytes(cls, written: bytes) -> Record:
        """The inverse of `to_bytes`."""
        with np.load(io.BytesIO(written), allow_pickle=False) as arrays:
            about = json.loads(str(arrays["about"]))
            losses = [float(loss) for loss in arrays["losses"]]
            steps = sorted(int(name.split("/")[0]) for name in arrays.files if "/weights" in name)
            kept = {step: _snapshot(step, about["shapes"], arrays) for step in steps}
        measurements = [Measurement(**one) for one in about["moments"]]
        plan = Plan(**about["plan"])
        return cls(plan=plan, losses=losses, measurements=measurements, snapshots=kept)


def _snapshot(step: int, shapes: dict[str, list[int]], arrays: Any) -> Snapshot:
    """A snapshot from a file. shapes: of its weights by name, in order."""
    flat, weights, begin = arrays[f"{step}/weights"], {}, 0
    for name, shape in shapes.items():
        end = begin + int(np.prod(shape))
        weights[name] = flat[begin:end].reshape(shape)
        begin = end
    start = f"{step}/pixels/"
    kinds = [name.removeprefix(start) for name in arrays.files if name.startswith(start)]
    pictures = {
        kind: Atlas(arrays[start + kind], arrays[f"{step}/masked/{kind}"]) for kind in kinds
    }
    return Snapshot(step=step, weights=weights, pictures=pictures)


def half_weights(network: nn.Module) -> Weights:
    """Copies of a network's weights in half precision."""
    found = weights_of(network)
    return {name: value.detach().half().cpu().numpy().copy() for name, value in found.items()}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Report:
    """What is new since the last report. weights: only where the network is kept.

    answer: to the question that was asked.
    """

    step: int
    losses: list[float]
    measurement: Measurement
    pictures: Pictures
    answer: str
    weights: Weights | None = None

    def put_into(self, record: Record) -> None:
        """Append it to a record."""
        record.losses.extend(self.losses)
        if not record.measurements or record.measurements[-1].step < self.step:
            record.measurements.append(self.measurement)
        if self.weights is not None:
            record.snapshots[self.step] = Snapshot(
                step=self.step, weights=self.weights, pictures=self.pictures
            )


def report(step: Step, losses: list[float], question: str, *, keep: bool) -> Report:
    """Look at the network after a step. losses: those since the last report."""
    model = step.model(engine=NETWORK)
    return Report(
        step=step.number,
        losses=losses,
        measurement=measurement_of(step, model),
        pictures=pictures_of(example_run(model, step.task)),
        answer=answer_of(model, step.task, question),
        weights=half_weights(step.network) if keep else None,
    )


def watched(plan: Plan) -> Iterator[Report]:
    """The whole training, a report at each measured step."""
    losses: list[float] = []
    kept = set(plan.kept())
    for step in plan.steps():
        losses.append(step.loss)
        if plan.measured(step.number):
            yield report(step, losses, plan.exercise.example, keep=step.number in kept)
            losses = []


def measurement_of(step: Step, model: Model) -> Measurement:
    """What is measured of the network after a step."""
    if not step.task.reads:
        return Measurement(step=step.number, accuracy=step.accuracy)
    weights = weight_on_wanted(model.network, step.task, held_out(step.task, SCORED))
    site = max(weights, key=lambda one: float(weights[one].max()))
    head = int(weights[site].argmax())
    score = float(weights[site][head])
    return Measurement(
        step=step.number, accuracy=step.accuracy, score=score, site=str(site), head=head
    )


def example_run(model: Model, exercise: Exercise) -> Run:
    """The exercise's example, read with its right answer, whatever the network would answer."""
    question = exercise.example
    answer, family = exercise.solve(question), model.config.family
    if family == "encoder-decoder":
        ids = model.tokenizer.encode(answer)
        return model.generate(question, max_new_tokens=len(ids), forced_tokens=ids)
    text = prompt_of(exercise, family, question)
    run = model.trace(text + answer if family == "decoder" else text)
    assert isinstance(run, Run)  # one text gives one
    return run


def pictures_of(run: Run) -> Pictures:
    """All heads small, of each kind of attention."""
    return {f"{stack}.{kind}": atlas(run, stack, kind) for stack, kind in run.trace.kinds()}
