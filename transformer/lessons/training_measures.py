"""Measures of training runs, for lessons: the recorded ones, and a visitor's own."""

from __future__ import annotations

import json
from typing import Any

from transformer.checks import check_choice, check_whole
from transformer.inference.loaded import Prepared
from transformer.inference.model import Model
from transformer.inference.request_hooks import hooks_for
from transformer.interventions.descriptions import Ablate
from transformer.interventions.hooks import hooks_of
from transformer.learning.exercises import (
    EXERCISES,
    HELD_OUT,
    head_scores,
    letter_probabilities,
    n_right,
    right_letters,
)
from transformer.learning.summary import smoothed
from transformer.learning.training import BUNDLED, STORIES, WITHOUT, Record, bundled_recording
from transformer.lessons.measures import GradingContext, measured, not_measurable
from transformer.messages import mark
from transformer.model.sites import Site
from transformer.runs.run import Run


@measured(mark("the loss at this step"))
def recorded_loss(context: GradingContext, task: str, step: int) -> float:
    """The loss of a bundled recording at a step, as the page says it: nats per token."""
    losses = _recording(task).losses
    return smoothed(losses, check_whole("step", step, 1, len(losses)))


@measured(mark("the number of tokens that it knows"))
def recorded_tokens(context: GradingContext, task: str) -> float:
    """The size of the vocabulary of a bundled recording's networks."""
    return float(_recording(task).plan.config().output_vocab_size)


@measured(mark("the number of right answers in a hundred"))
def recorded_right(context: GradingContext, task: str, step: int) -> float:
    """Right answers to a hundred held-out questions, by a bundled recording after a step."""
    measurement = _recording(task).measured_by(step)
    return 0.0 if measurement is None else 100 * measurement.accuracy


@measured(mark("the share of answers in which this letter is right"))
def recorded_place(context: GradingContext, task: str, step: int, place: int) -> float:
    """The share of held-out answers whose letter at a place, from 0, a bundled recording's network
    of a kept step would give after the right letters before it."""
    record = _recording(task)
    letters = right_letters(record.model(step).network, record.plan.exercise)
    return sum(answer[place] for answer in letters) / HELD_OUT


@measured(mark("the probability on these letters"))
def recorded_probability(context: GradingContext, task: str, step: int, letters: str) -> float:
    """The mean probability that a bundled recording's network of a kept step gives to the "right"
    next letter, or to all letters of the "text"."""
    check_choice("letters", letters, ("text", "right"))
    record = _recording(task)
    probabilities = letter_probabilities(record.model(step).network, record.plan.exercise)
    return probabilities[letters == "right"]


@measured(mark("the mean weight on the letter to be written next"))
def recorded_reading(context: GradingContext, task: str, unit: str) -> float:
    """The score of a head, "1.3", of a recording's last network: see `head_scores`."""
    record = _recording(task)
    layer, _, head = unit.partition(".")
    scores = head_scores(record.model().network, record.plan.exercise)
    return float(scores[Site("decoder", int(layer), "self")][int(head)])


@measured(mark("the number of right answers in a hundred"))
def recorded_without(context: GradingContext, task: str, unit: str) -> float:
    """Right answers to a hundred held-out questions, by a recording's last network without a head,
    "1.3", or without several, "0.0 0.1"."""
    record = _recording(task)
    model, units = record.model(), [each.split(".") for each in unit.split()]
    off = [Ablate("decoder", int(layer), [int(head)]) for layer, head in units]
    return float(n_right(model.network, record.plan.exercise, hooks_of(off, model.config)))


@measured(mark("the loss at this step"))
def story_loss(context: GradingContext, step: int) -> float:
    """Validation loss, in nats per token, of a recorded training run by the recipe `stories`; its
    steps and texts are in recorded_runs/stories.json."""
    losses = {row["step"]: row["nats"] for row in json.loads(STORIES.read_text("utf-8"))}
    check_choice("step", step, losses)
    return float(losses[step])


@measured(mark("the number of right answers in a hundred"))
def trained_without(context: GradingContext, task: str, part: str) -> float:
    """The mean, over three seeds, of right answers to a hundred held-out questions by networks that
    were trained without a part: "no-residual" and other switches, "heads": with one, ""."""
    check_choice("task", task, counts := json.loads(WITHOUT.read_text("utf-8")))
    check_choice("part", part, counts[task])
    return sum(counts[task][part]) / len(counts[task][part])


@measured(mark("this setting of its training"))
def trained_with(context: GradingContext, setting: str) -> float:
    """A number of the plan by which the shown network was trained, or its "steps"."""
    about = _own(context).metadata
    return float(about["steps"] if setting == "steps" else about["training"][setting])


@measured(mark("the number of right answers in a hundred"))
def right_answers(context: GradingContext) -> float:
    """Right answers to a hundred held-out questions, by a network that was trained on the page,
    with the run's interventions."""
    _own(context)
    return float(context.models.ask(right_of, context.run))


def right_of(model: Model, run: Run) -> int:
    """The number of right answers to a hundred held-out questions."""
    exercise = EXERCISES[str((model.metadata or {})["exercise"])]
    prepared = Prepared(list(run.source_ids), list(run.ids[: run.n_prompt]))
    hooks = hooks_for(model, run.request, prepared)
    return n_right(model.network, exercise, hooks)


def _own(context: GradingContext) -> Any:
    model = context.models.model(context.run.model)
    if not isinstance(model.metadata, dict) or "training" not in model.metadata:
        raise not_measurable("training")
    return model


def _recording(task: str) -> Record:
    check_choice("task", task, BUNDLED)
    return bundled_recording(task)
