"""A pattern of different letters that begins again: what followed each of them the last time?

The places of the pattern change from row to row, so that counting does not help: a head must find
where the letter stood before and read what followed (Olsson et al. 2022, "In-context Learning and
Induction Heads").
"""

from random import Random

from transformer.messages import mark
from transformer.training.exercises.exercise import Exercise

LETTERS = "abcdefghijklmnopqrst"
SHORTEST, LONGEST = 4, 10


def drawn(rng: Random) -> str:
    """A pattern of four to ten different letters, and its first letter again."""
    pattern = "".join(rng.sample(LETTERS, rng.randint(SHORTEST, LONGEST)))
    return pattern + pattern[0]


EXERCISE = Exercise(
    name="induction",
    title=mark("Repeat what followed"),
    words=mark("Random letters begin again: go on as it went the last time."),
    letters=LETTERS,
    sign="",
    longest=2 * LONGEST,
    n_steps=400,
    example="kfbdhqk",
    draw=drawn,
    solve=lambda question: question[1:-1],
)
