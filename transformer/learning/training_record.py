"""The record of a training: losses, measurements and kept networks, filled by reports.

The five bundled recordings, one per exercise, are made by `tools/record_trainings.py`.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from transformer.analysis.atlas import Atlas, atlas
from transformer.inference.engines.compiled import NETWORK
from transformer.inference.model import Model
from transformer.learning.exercises import (
    Exercise,
    answer_of,
    held_out,
    prompt_of,
    sample_of,
    weight_on_wanted,
)
from transformer.learning.stepwise import Plan, Step
from transformer.model.weights import network_with, weights_of
from transformer.runs.archive import Arrays, named
from transformer.runs.memo import bytes_of
from transformer.runs.run import Run

NUMBER_BYTES, MEASUREMENT_BYTES = 32, 250  # of a number in a list; of a Measurement
SCORED = 50  # held-out questions that the heads are measured on
RECORDINGS = Path(__file__).parent / "recorded_runs"
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


@dataclass(kw_only=True, slots=True, eq=False)
class Record:
    """A training so far. losses: nats a token, of step 1 and those that follow."""

    plan: Plan
    losses: list[float] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    snapshots: dict[int, Snapshot] = field(default_factory=dict)

    @property
    def step(self) -> int:
        """The number of steps so far."""
        return len(self.losses)

    @property
    def size(self) -> int:
        """Bytes of the kept networks, and of the curves."""
        kept = sum(bytes_of((one.weights, one.pictures)) for one in [*self.snapshots.values()])
        return kept + NUMBER_BYTES * len(self.losses) + MEASUREMENT_BYTES * len(self.measurements)

    def measured_by(self, step: int) -> Measurement | None:
        """The last measurement up to a step."""
        return next((one for one in reversed(self.measurements) if one.step <= step), None)

    def model(self, step: int, name: str) -> Model:
        """The network kept after a step, ready for use. Raises KeyError if none was kept."""
        config, exercise = self.plan.config(), self.plan.exercise
        kept = self.snapshots[step].weights
        weights = {key: torch.from_numpy(value).float() for key, value in kept.items()}
        last = self.measured_by(step)
        about = {
            "exercise": exercise.name, "steps": step, "training": dataclasses.asdict(self.plan),
            "accuracy": last.accuracy if last else None,
        }  # fmt: skip
        right = "–" if last is None else f"{last.accuracy:.0%}"
        told = {"title": exercise.title, "words": exercise.words, "step": step, "right": right}
        return Model(
            name=name,
            config=config,
            tokenizer=exercise.tokenizer(),
            network=network_with(config, weights).eval().requires_grad_(False),
            card=CARD.format(**told, plan=self.plan),
            metadata=about,
            sample=sample_of(exercise, config.family),
        )

    def to_bytes(self) -> bytes:
        """As an NPZ file, which `of_bytes` reads; nothing in it is pickled."""
        arrays: Arrays = {"losses": np.asarray(self.losses, dtype=np.float32)}
        shapes: dict[str, list[int]] = {}
        for step, snapshot in self.snapshots.items():
            shapes = {name: list(array.shape) for name, array in snapshot.weights.items()}
            flat = [snapshot.weights[name].ravel() for name in shapes]
            own = {"weights": np.concatenate(flat)}  # one array: each has a long header
            own |= picture_arrays(snapshot.pictures)
            arrays |= {f"{step}/{name}": array for name, array in own.items()}
        about = {
            "plan": dataclasses.asdict(self.plan),
            "shapes": shapes,
            "moments": [dataclasses.asdict(one) for one in self.measurements],
        }
        return packed(about, arrays)

    @classmethod
    def of_bytes(cls, written: bytes) -> Record:
        """The inverse of `to_bytes`."""
        about, arrays = unpacked(written)
        shapes, kept = about["shapes"], {}
        ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes.values()])
        for step in sorted(int(name.split("/")[0]) for name in arrays if "/weights" in name):
            own = named(arrays, f"{step}/")
            flat = zip(shapes.items(), np.split(own["weights"], ends[:-1]), strict=True)
            weights = {name: part.reshape(shape) for (name, shape), part in flat}
            kept[step] = Snapshot(step=step, weights=weights, pictures=pictures_in(own))
        return cls(
            plan=Plan(**about["plan"]),
            losses=arrays["losses"].tolist(),
            measurements=[Measurement(**one) for one in about["moments"]],
            snapshots=kept,
        )


def packed(about: Any, arrays: Arrays, *, compressed: bool = True) -> bytes:
    """Plain values and arrays as an NPZ file."""
    file, write = io.BytesIO(), np.savez_compressed if compressed else np.savez
    write(file, about=json.dumps(about), **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def unpacked(written: bytes) -> tuple[Any, Arrays]:
    """The inverse of `packed`."""
    with np.load(io.BytesIO(written), allow_pickle=False) as found:
        arrays = {name: found[name] for name in found.files}
    return json.loads(str(arrays.pop("about"))), arrays


def picture_arrays(pictures: Pictures) -> Arrays:
    """Small pictures as arrays, of which `pictures_in` makes them again."""
    parts = {kind: small._asdict() for kind, small in pictures.items()}
    return {f"{name}/{kind}": part for kind, each in parts.items() for name, part in each.items()}


def pictures_in(arrays: Arrays) -> Pictures:
    """The inverse of `picture_arrays`."""
    masked = named(arrays, "masked/")
    return {kind: Atlas(pixels, masked[kind]) for kind, pixels in named(arrays, "pixels/").items()}


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
    run, best = example_run(model, step.task), dict[str, Any]()
    if step.task.reads:
        found = weight_on_wanted(model.network, step.task, held_out(step.task, SCORED))
        site = max(found, key=lambda one: float(found[one].max()))
        head = int(found[site].argmax())
        best = {"score": float(found[site][head]), "site": str(site), "head": head}
    weights = {
        name: value.detach().half().cpu().numpy()
        for name, value in (weights_of(model.network) if keep else {}).items()
    }
    return Report(
        step=step.number,
        losses=losses,
        measurement=Measurement(step=step.number, accuracy=step.accuracy, **best),
        pictures={f"{stack}.{kind}": atlas(run, stack, kind) for stack, kind in run.trace.kinds()},
        answer=answer_of(model, step.task, question),
        weights=weights or None,
    )


def watched(plan: Plan) -> Iterator[Report]:
    """The whole training, a report at each measured step."""
    losses: list[float] = []
    kept = set(plan.kept())
    for step in plan.steps():
        losses.append(step.loss)
        if step.measured:
            yield report(step, losses, plan.exercise.example, keep=step.number in kept)
            losses = []


def record_training(plan: Plan) -> Record:
    """Train by a plan, in this process, and record it."""
    record = Record(plan=plan)
    for step in watched(plan):
        step.put_into(record)
    return record


def bundled_recording(task: str) -> Record:
    """The bundled training of an exercise. KeyError for an unknown one."""
    return Record.of_bytes((RECORDINGS / f"{BUNDLED[task].task}.npz").read_bytes())


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
