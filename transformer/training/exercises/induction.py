"""Different letters, and one of them again: what followed it the last time, and so on to the end?

How far back it stood changes from row to row, so that counting does not help: a head must find
where the letter stood before and read what followed (Olsson et al. 2022, "In-context Learning and
Induction Heads").
"""

from random import Random

from transformer.messages import mark
from transformer.training.exercises.exercise import Exercise

LETTERS = "abcdefghijklmnopqrst"
SHORTEST, LONGEST = 4, 10


def drawn(rng: Random) -> str:
    """Four to ten different letters, and one of them again, but not the last."""
    pattern = rng.sample(LETTERS, rng.randint(SHORTEST, LONGEST))
    return "".join([*pattern, rng.choice(pattern[:-1])])


def followed(question: str) -> str:
    """What stood after the last letter when it stood there first."""
    again = question[-1]
    return question[question.index(again) + 1 : -1] or again


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
    solve=followed,
    reads=mark("induction score"),
    ends=False,
)
