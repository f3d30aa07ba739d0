"""A watched training: a report on the network after each measured step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from transformer.analysis.atlas import atlas
from transformer.inference.engines.choice import NETWORK
from transformer.inference.model import Model
from transformer.learning.plan import Plan, held_out, prompt_of
from transformer.learning.record import (
    Measurement,
    Pictures,
    Record,
    Snapshot,
    Weights,
    half_weights,
)
from transformer.runs.run import Run
from transformer.training.exercises import Exercise
from transformer.training.exercises.asking import answer_of, weight_on_wanted
from transformer.training.stepwise import Step

SCORED = 50  # held-out questions that the heads are measured on


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
