"""Exercises, how a network is trained on one step by step, and what is kept of a training."""

import base64
import io
import itertools
import os
import random
import threading
from dataclasses import replace
from queue import SimpleQueue
from types import SimpleNamespace

import pytest
import torch

from transformer import PRESETS
from transformer.learning import Plan, Record, train, worker
from transformer.learning.exercises import (
    EXERCISES,
    HELD_OUT,
    answer_of,
    best_head,
    check_question,
    held_out,
    is_held_out,
    n_right,
    right_letters,
)
from transformer.learning.summary import sudden_fall, summary
from transformer.learning.training import BUNDLED, Measurement, bundled_recording, pictures_of
from transformer.learning.worker import DONE, LATE, STOPPED, opened, received, send
from transformer.views.learn import TASKS, VIEW

TINY = Plan(task="reverse", preset="vaswani-2017", n_steps=12, width=8, n_heads=2, n_layers=1)


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


@pytest.mark.parametrize("task", EXERCISES)
def test_a_question_may_be_one_letter_longer_than_what_was_learned(task):
    exercise = EXERCISES[task]
    most = exercise.longest // 2 + 1
    question = exercise.letters[0] * most
    assert check_question(exercise, question) == question
    for wrong in ("", question + question[0], "é"):
        with pytest.raises(ValueError, match=f"must be 1 to {most} of the characters"):
            check_question(exercise, wrong)


def test_the_same_plan_gives_the_same_network_whatever_else_is_drawn():
    state, first = torch.get_rng_state(), next(train(TINY))
    assert torch.equal(torch.get_rng_state(), state)  # nothing was drawn from the shared generator
    torch.rand(3)
    again, other = next(train(TINY)), next(train(replace(TINY, seed=5)))
    assert again.losses == first.losses != other.losses
    assert (again.networks[1] == first.networks[1]).all()
    model = first.model()
    assert (model.name, model.metadata["exercise"]) == ("reverse-1", "reverse")


def test_impossible_trainings_are_refused():
    for wanted, sentence in (
        (dict(task="fly"), r"task must be one of \['copy', 'reverse', .*\]; got 'fly'"),
        (dict(task="copy", n_steps=0), "n_steps must be a whole number from 1 to 5,000; got 0"),
        (dict(task="copy", preset="huge"), r"preset must be one of \['pre-norm', .*got 'huge'"),
        (dict(task="copy", n_heads=5), "n_heads must divide d_model; got d_model=32, n_heads=5"),
    ):
        with pytest.raises(ValueError, match=sentence):
            Plan(**wanted)


def test_the_tab_offers_every_exercise_with_its_own_title():
    assert {name: exercise.title for name, exercise in EXERCISES.items()} == TASKS
    assert set(BUNDLED) == set(EXERCISES)
    opening = {parameter.name: parameter.default for parameter in VIEW.parameters}
    assert opening.pop("at") is None  # the step that is looked at
    assert Plan(**opening) == BUNDLED[opening["task"]]


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_trained_and_all_of_it_learns(preset):
    plan = Plan(task="induction", preset=preset, n_steps=2, width=16, n_heads=4, n_layers=1)
    *_, record = train(plan)
    first, last = (record.model(step) for step in (1, 2))
    then = first.network.state_dict()
    still = {name for name, now in last.network.state_dict().items() if (then[name] == now).all()}
    assert all(name.endswith("key.bias") for name in still)  # adds one number to all scores
    for small in pictures_of(last, plan.exercise).values():
        assert small.pixels.shape[:2] == (1, 4)
    assert 0 <= record.measurements[-1].score <= 1


def test_a_training_keeps_the_networks_of_its_plan_and_is_read_back():
    begun = itertools.islice(train(replace(TINY, n_steps=400)), 6)
    kept = [sorted(record.networks) for record in begun]
    assert kept[-2:] == [[1, 10, 20, 30, 40], [1, 10, 20, 30, 50]]  # 40 was the last one
    *_, record = train(TINY)
    again = Record.of_bytes(record.to_bytes())
    assert (again.plan, again.measurements) == (record.plan, record.measurements)
    assert again.losses == pytest.approx(record.losses)
    assert sorted(again.networks) == TINY.kept() == [1, 10, 12]
    assert all((again.networks[step] == record.networks[step]).all() for step in (1, 10, 12))
    with pytest.raises(ValueError, match=r"step must be one of \[1, 10, 12\]; got 11"):
        again.model(11)


def train_with(monkeypatch, seconds, **orders):
    """Why a training ended, and its messages: each state, with the step and the number of losses of
    its part. orders: the command that answers a state's nth message, "paused1"; a pause takes an
    hour."""
    clock, messages, commands = SimpleNamespace(now=0.0), [], SimpleQueue()
    monkeypatch.setattr(worker.time, "monotonic", lambda: clock.now)

    def tell(state: str, part: str) -> None:
        record = Record.of_bytes(base64.b64decode(part)) if part else None
        messages.append((state, record and (record.measurements[0].step, len(record.losses))))
        clock.now += 3600 * (state == "paused")
        times = [before for before, _ in messages].count(state)
        if order := orders.get(f"{state}{times}"):
            commands.put([order])

    if first := orders.get("first"):
        commands.put([first])
    return worker.run(TINY, seconds, commands, tell), messages


def test_a_training_makes_single_steps_goes_on_and_stops(monkeypatch):
    one_by_one = [("paused", (1, 1)), ("running", None), ("paused", (2, 1)), ("running", None)]
    steps = {"first": "step", "paused1": "step", "paused2": "go"}
    why, messages = train_with(monkeypatch, 60, **steps)
    assert why == DONE  # its pauses took none of the 60 s
    assert messages == [*one_by_one, ("running", (10, 8)), ("running", (12, 2))]
    why, messages = train_with(monkeypatch, 60, **steps, running3="stop")
    assert why == STOPPED
    assert messages == [*one_by_one, ("running", (10, 8)), ("running", (11, 1))]
    why, messages = train_with(monkeypatch, 60, first="pause", paused1="stop")
    assert (why, messages) == (STOPPED, [("paused", (1, 1)), ("running", None)])
    assert train_with(monkeypatch, -1) == ((LATE, {"seconds": -1}), [("running", (1, 1))])


def test_half_a_message_from_the_training_process_is_its_end():
    file, message = io.BytesIO(), ["running", None, "é‹"]
    send(file, *message)
    send(file, *message)
    assert [*received(io.BytesIO(file.getvalue()[:-2]))] == [message]


def test_messages_of_two_threads_are_whole_on_unbuffered_output():
    reads, writes = os.pipe()
    stdout = io.TextIOWrapper(io.FileIO(writes, "w"), write_through=True)  # as PYTHONUNBUFFERED's
    out, large = opened(stdout), "x" * 200_000

    def record() -> None:
        for _ in range(20):
            send(out, large)

    def beat() -> None:
        while recorder.is_alive():
            send(out)
        stdout.close()

    recorder, beating = (threading.Thread(target=work, daemon=True) for work in (record, beat))
    for thread in (recorder, beating):
        thread.start()
    with open(reads, "rb") as file:
        found = [*received(file)]
    beating.join()
    assert found.count([large]) == 20


@pytest.mark.parametrize("task", BUNDLED)
def test_the_command_makes_the_recorded_trainings(task):
    """The first twenty steps: the numbers of another processor part later."""
    kept = bundled_recording(task)
    assert kept.plan == BUNDLED[task]
    assert sorted(kept.networks) == kept.plan.kept()
    *_, begun = itertools.islice(train(BUNDLED[task]), 3)
    assert begun.step == 20
    assert begun.losses == pytest.approx(kept.losses[:20], rel=2e-3)
    assert begun.networks[10] == pytest.approx(kept.networks[10], abs=5e-3)


@pytest.mark.parametrize("task", BUNDLED)
def test_a_recorded_network_is_as_good_as_its_curve_says(task):
    record, exercise = bundled_recording(task), EXERCISES[task]
    network, last = record.model().network, record.measurements[-1]
    assert last.accuracy >= 0.97
    assert n_right(network, exercise) == pytest.approx(HELD_OUT * last.accuracy, abs=2)
    if last.score is not None:
        score, site, head = best_head(network, exercise)
        assert (str(site), head) == (last.site, last.head)
        assert score == pytest.approx(last.score, abs=0.02)


@pytest.mark.parametrize("task", ["reverse", "addition", "induction"])
def test_a_network_half_way_is_right_where_its_own_answer_is(task):
    """One of each family: greedy decoding is the oracle of the answers that are read at once."""
    record, exercise = bundled_recording(task), EXERCISES[task]
    half_way = min(record.measurements, key=lambda each: abs(each.accuracy - 0.5)).step
    step = min(record.networks, key=lambda each: abs(each - half_way))
    model = record.model(step)
    is_right = [
        answer_of(model, exercise, question) == answer
        for question, answer in held_out(exercise)[:20]
    ]
    assert set(is_right) == {True, False}
    assert [all(letters) for letters in right_letters(model.network, exercise)][:20] == is_right


def losses_of(*parts: tuple[float, int]) -> list[float]:
    return [loss for loss, count in parts for _ in range(count)]


def test_a_training_is_summed_up_in_sentences_of_its_numbers():
    plan = BUNDLED["induction"]
    record = Record(plan=plan, losses=losses_of((10.0, 100), (7.0, 100)))
    assert summary(record, 200) == []  # nothing is measured yet
    record.measurements = [
        Measurement(step=100, accuracy=0.25, score=0.125, site="decoder.0.self", head=1),
        Measurement(step=160, accuracy=0.5, score=0.425, site="decoder.1.self", head=3),
        Measurement(step=200, accuracy=0.755, score=0.5, site="decoder.1.self", head=2),
    ]
    measured, best, *rest = summary(record, 200)
    assert measured == (
        f"After step 200 of {plan.n_steps}: loss 7.00 nats, 76 % of the held-out questions right."
    )
    assert best == "Induction score: 0.50, in layer 1, head 2."
    assert rest == [
        "From step 100 to 160 the loss fell from 10.00 to 7.00.",
        "During these steps, layer 1, head 3 formed: induction score 0.12 → 0.42.",
    ]
    assert summary(record, 105)[0].startswith(f"After step 100 of {plan.n_steps}: loss 8.50 nats")
    record.measurements[1] = replace(record.measurements[1], score=0.4)  # rises by less than 0.3
    assert len(summary(record, 200)) == 3


@pytest.mark.parametrize(("low", "fall"), [(7.0, (100, 160)), (7.01, None)])
def test_a_loss_falls_suddenly_by_three_tenths_of_the_first_in_60_steps(low, fall):
    assert sudden_fall(losses_of((10.0, 100), (low, 100))) == fall


def test_a_sudden_fall_is_found_where_it_is_and_a_slow_one_is_none():
    plateau = [3.0] * 200 + [3.0 - 0.05 * step for step in range(50)] + [0.5] * 150
    first, last = sudden_fall(plateau) or (0, 0)
    assert 180 <= first <= 210
    assert 240 <= last <= 270
    assert sudden_fall([3.0 - 0.002 * step for step in range(400)]) is None
    assert sudden_fall([3.0] * 20) is None
