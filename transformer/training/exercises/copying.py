"""The letters as they are."""

from random import Random

from transformer.messages import mark
from transformer.training.exercises.exercise import Exercise

LETTERS = "abcdefgh"
SHORTEST, LONGEST = 2, 6


def drawn(rng: Random) -> str:
    """Two to six letters."""
    return "".join(rng.choices(LETTERS, k=rng.randint(SHORTEST, LONGEST)))


EXERCISE = Exercise(
    name="copy",
    title=mark("Copy"),
    words=mark("Write the letters again."),
    letters=LETTERS,
    sign="=",
    longest=2 * LONGEST,
    n_steps=300,
    example="bdface",
    draw=drawn,
    solve=str,
)
