"""The sum of two numbers below 100, each written with two digits, the sum with three."""

from random import Random

from transformer.messages import mark
from transformer.training.exercises.exercise import Exercise


def drawn(rng: Random) -> str:
    """Two numbers with a plus between them."""
    return f"{rng.randrange(100):02}+{rng.randrange(100):02}"


def total(question: str) -> str:
    """The sum of the two numbers."""
    left, right = question.split("+")
    return f"{int(left) + int(right):03}"


EXERCISE = Exercise(
    name="addition",
    title=mark("Add"),
    words=mark("Add two numbers below 100."),
    letters="0123456789+",
    sign="=",
    longest=8,
    n_steps=800,
    example="47+38",
    draw=drawn,
    solve=total,
    reads="",
)
