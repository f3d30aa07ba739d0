"""Exercises, how a network is trained on one step by step, and what is kept of a training."""

import io
import itertools
import random
from random import Random

import pytest
import torch

from transformer import PRESETS
from transformer.learning import steps
from transformer.learning.exercises import EXERCISES, is_held_out, share_right, weight_on_wanted
from transformer.learning.stepwise import Plan
from transformer.learning.summary import sudden_fall
from transformer.learning.training_record import (
    BUNDLED,
    Record,
    bundled_recording,
    record_training,
    watched,
)
from transformer.learning.worker import receive, send
from transformer.views.learn import TASKS, VIEW


@pytest.mark.parametrize("task", EXERCISES)
def test_an_exercise_has_the_questions_it_describes(task):
    exercise = EXERCISES[task]
    rng = random.Random(2)
    rows = exercise.rows(rng, 200, held_out=False)
    assert not any(is_held_out(question) for question, _ in rows)
    assert all(is_held_out(question) for question, _ in exercise.rows(rng, 50, held_out=True))
    assert max(len(q) + len(exercise.sign) + len(a) for q, a in rows) <= exercise.longest + 1
    for question, answer in [*rows, (exercise.example, exercise.solve(exercise.example))]:
        assert set(question + answer) <= set(exercise.letters)
        if task == "addition":
            assert int(answer) == sum(map(int, question.split("+")))
        elif task == "sort":
            assert list(answer) == sorted(question)
        elif task == "induction":
            *pattern, again = question
            assert len(set(pattern)) == len(pattern)
            assert "".join(pattern).endswith(again + answer)
        else:
            assert answer == (question if task == "copy" else "".join(reversed(question)))


def test_the_same_arguments_give_the_same_steps_whatever_else_is_drawn():
    wanted = dict(task="sort", n_steps=3, d_model=16, n_heads=2, d_ff=16)
    state, (one, *_) = torch.get_rng_state(), steps(**wanted)
    assert torch.equal(torch.get_rng_state(), state)  # nothing was drawn from the shared generator
    torch.rand(3)
    training = steps(**wanted)
    first = next(training)
    assert (first.number, first.total, first.loss) == (1, 3, one.loss)
    early = first.model("early")
    kept = {name: value.clone() for name, value in early.network.state_dict().items()}
    next(training)
    training.close()
    assert all(torch.equal(value, kept[name]) for name, value in early.network.state_dict().items())
    assert early.metadata["exercise"] == "sort"
    assert next(steps(**wanted | {"seed": 5})).loss != one.loss


def test_impossible_trainings_are_refused():
    for wanted, sentence in (
        (dict(task="fly"), r"task must be one of \['copy', 'reverse', .*\]; got 'fly'"),
        (dict(task="copy", n_steps=0), "n_steps must be a whole number from 1 to 5,000; got 0"),
        (dict(task="copy", preset="huge"), "unknown preset 'huge'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            steps(**wanted)


TINY = Plan(task="reverse", preset="vaswani-2017", n_steps=12, width=8, n_heads=2, n_layers=1)


def test_the_tab_offers_every_exercise_with_its_own_title():
    assert {name: exercise.title for name, exercise in EXERCISES.items()} == TASKS
    assert set(BUNDLED) == set(EXERCISES)
    opening = {parameter.name: parameter.default for parameter in VIEW.parameters}
    assert Plan(**opening) == BUNDLED[opening["task"]]


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_watched_and_all_of_it_learns(preset):
    plan = Plan(task="induction", preset=preset, n_steps=2, width=16, n_heads=4, n_layers=1)
    first, last = watched(plan)
    assert (first.step, last.step) == (1, 2)
    still = {name for name, was in first.weights.items() if (last.weights[name] == was).all()}
    assert all(name.endswith("key.bias") for name in still)  # adds one number to all scores
    for small in last.pictures.values():
        assert small.pixels.shape[:2] == (1, 4)
    assert 0 <= last.measurement.score <= 1


def test_a_training_is_written_and_read_back():
    record = record_training(TINY)
    again = Record.of_bytes(record.to_bytes())
    assert (again.plan, again.measurements) == (record.plan, record.measurements)
    assert again.losses == pytest.approx(record.losses)
    assert sorted(again.snapshots) == TINY.kept() == [1, 10, 12]
    one, other = (each.model(10, "x").network.state_dict() for each in (record, again))
    assert all(torch.equal(one[name], other[name]) for name in one)
    for kind, small in record.snapshots[10].pictures.items():
        assert (again.snapshots[10].pictures[kind].pixels == small.pixels).all()


def test_half_a_message_from_the_training_process_is_its_end():
    file, message = io.BytesIO(), ("key", "ask", "é‹")
    send(file, message)
    assert receive(io.BytesIO(file.getvalue())) == message
    with pytest.raises(EOFError):
        receive(io.BytesIO(file.getvalue()[:-1]))


@pytest.mark.parametrize("task", BUNDLED)
def test_the_command_makes_the_recorded_trainings(task):
    """The first twenty steps: the numbers of another processor part later."""
    kept = bundled_recording(task)
    assert kept.plan == BUNDLED[task]
    assert sorted(kept.snapshots) == kept.plan.kept()
    begun = Record(plan=BUNDLED[task])
    for report in itertools.islice(watched(BUNDLED[task]), 3):
        report.put_into(begun)
    assert begun.step == 20
    assert begun.losses == pytest.approx(kept.losses[:20], rel=2e-3)
    early, late = begun.snapshots[10].weights, kept.snapshots[10].weights
    assert all(early[name] == pytest.approx(late[name], abs=5e-3) for name in late)


@pytest.mark.parametrize("task", BUNDLED)
def test_a_recorded_network_is_as_good_as_its_curve_says(task):
    record = bundled_recording(task)
    model = record.model(record.step, "learned")
    last = record.measurements[-1]
    exercise = EXERCISES[task]
    assert last.accuracy >= 0.97
    rows = exercise.rows(Random(-1), 100, held_out=True)
    assert share_right(model.network, exercise, rows) == pytest.approx(last.accuracy, abs=0.02)
    if last.score is not None:
        found = weight_on_wanted(model.network, exercise, rows[:50])
        assert max(float(heads.max()) for heads in found.values()) == pytest.approx(
            last.score, abs=0.02
        )


def test_a_sudden_fall_is_found_where_it_is_and_a_slow_one_is_none():
    plateau = [3.0] * 200 + [3.0 - 0.05 * step for step in range(50)] + [0.5] * 150
    first, last = sudden_fall(plateau) or (0, 0)
    assert 180 <= first <= 210
    assert 240 <= last <= 270
    assert sudden_fall([3.0 - 0.002 * step for step in range(400)]) is None
    assert sudden_fall([3.0] * 20) is None
