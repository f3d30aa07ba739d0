"""The exercises: what they ask, and how a network is trained on one step by step. That it learns:
test_training_record.py."""

import random

import pytest
import torch

from transformer.learning import steps
from transformer.learning.exercises import EXERCISES, is_held_out


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
