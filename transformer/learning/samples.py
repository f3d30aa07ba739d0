"""An exercise's own texts: held-out questions, written as a network of each family reads them."""

from __future__ import annotations

from random import Random

from transformer.checkpoint import HeldOutSample
from transformer.messages import mark, say
from transformer.training.exercises import Exercise, Row

HELD_OUT_SEED = -1
SAMPLE = 40  # questions
ABOUT = mark(
    "Held-out questions with their answers; the letters of a question are drawn at random, so that "
    "nobody could foresee them."
)


def held_out(exercise: Exercise, count: int) -> list[Row]:
    """Questions that no training sees, always the same."""
    return exercise.rows(Random(HELD_OUT_SEED), count, held_out=True)


def prompt_of(exercise: Exercise, family: str, question: str) -> str:
    """A question as it is typed to a network."""
    return question + exercise.sign if family == "decoder" else question


def sample_of(exercise: Exercise, family: str) -> HeldOutSample | None:
    """Text to measure a loss on; None for a reader, which does not foresee what it reads."""
    rows = held_out(exercise, SAMPLE)
    if family == "encoder":
        return None
    texts: list[tuple[str, ...]] = list(rows)
    if family == "decoder":
        texts = [(prompt_of(exercise, family, question) + answer,) for question, answer in rows]
    return HeldOutSample(about=say(ABOUT), texts=tuple(texts))
