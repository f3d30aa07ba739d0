"""Exercises that a small network learns in about a minute; each file is one of them."""

from transformer.training.exercises import addition, copying, induction, reversing, sorting
from transformer.training.exercises.exercise import Exercise, Row, is_held_out

__all__ = ["EXERCISES", "Exercise", "Row", "is_held_out"]

EXERCISES: dict[str, Exercise] = {
    module.EXERCISE.name: module.EXERCISE
    for module in (copying, reversing, sorting, addition, induction)
}
