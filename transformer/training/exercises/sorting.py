"""The letters in the order of the alphabet."""

from transformer.messages import mark
from transformer.training.exercises.copying import LETTERS, LONGEST, drawn
from transformer.training.exercises.exercise import Exercise

EXERCISE = Exercise(
    name="sort",
    title=mark("Sort"),
    words=mark("Write the letters in the order of the alphabet."),
    letters=LETTERS,
    sign="=",
    longest=2 * LONGEST,
    n_steps=400,
    example="hcafbd",
    draw=drawn,
    solve=lambda question: "".join(sorted(question)),
)
