"""Presets learn to reverse what they have never seen.

What shapes cannot show: masks, positions, both norms and the cached decoding work together. The
rows of a batch differ in length, so that padding stands behind sources, targets and prompts.
"""

from __future__ import annotations

import random

import pytest
import torch

from transformer import Model
from transformer.inference.logit_sources import pad
from transformer.training import steps
from transformer.training.exercises import EXERCISES, Row, is_held_out

pytestmark = pytest.mark.slow

SMALL = dict(d_model=64, d_ff=64, n_heads=2)
# One of each family, and of each kind of positions.
LEARNERS = {"vaswani-2017": {}, "llama": dict(n_key_heads=1), "bert": {}}


def written(model: Model, sign: str, rows: list[Row]) -> list[str]:
    """What the model makes of each question, by the ways in which the project decodes."""
    if model.config.family == "encoder":
        ids = [model.tokenizer.prompt(question) for question, _ in rows]
        with torch.inference_mode():
            read = model.network(pad(ids, model.tokenizer.padding_id)).argmax(dim=-1).tolist()
        return [
            model.tokenizer.decode(found[: len(answer)])
            for found, (_, answer) in zip(read, rows, strict=True)
        ]
    texts = [question + sign for question, _ in rows]
    if model.config.family == "decoder":
        runs = model.generate_batch(texts, max_new_tokens=12)
        return [run.text.removeprefix(text) for run, text in zip(runs, texts, strict=True)]
    runs = model.translate_batch([question for question, _ in rows], max_new_tokens=12).outputs
    return list(runs)


@pytest.mark.parametrize("preset", LEARNERS)
def test_a_preset_learns_to_reverse(preset):
    """Whole words, of which guessing would find one in thousands."""
    task = "reverse"
    asked = dict(task=task, preset=preset, n_steps=180, learning_rate=0.02, measure_every=180)
    *_, step = steps(**asked, **SMALL, **LEARNERS[preset])
    assert step.accuracy >= 0.85
    rows = EXERCISES[task].rows(random.Random(1), 100, held_out=True)
    model, sign = step.model(), EXERCISES[task].sign
    answers = written(model, sign if model.config.family == "decoder" else "", rows)
    right = sum(answer == wanted for answer, (_, wanted) in zip(answers, rows, strict=True))
    assert right >= 0.85 * len(rows)


@pytest.mark.parametrize("task", EXERCISES)
def test_an_exercise_asks_what_it_says(task):
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


def test_a_step_can_be_asked_and_the_same_arguments_give_the_same_whatever_else_is_drawn():
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


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (dict(task="fly"), r"task must be one of \['copy', 'reverse', .*\]; got 'fly'"),
        (dict(task="copy", n_steps=0), "n_steps must be 1 to 5000; got 0"),
        (dict(task="copy", preset="huge"), "unknown preset 'huge'"),
        (dict(task="copy", n_heads=3), "n_heads"),
    ],
)
def test_what_cannot_be_trained_is_told(wanted, told):
    with pytest.raises(ValueError, match=told):
        steps(**wanted)
