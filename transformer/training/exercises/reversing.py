"""The letters from the last to the first."""

from transformer.messages import mark
from transformer.training.exercises.copying import LETTERS, LONGEST, drawn
from transformer.training.exercises.exercise import Exercise

EXERCISE = Exercise(
    name="reverse",
    title=mark("Reverse"),
    words=mark("Write the letters from the last to the first."),
    letters=LETTERS,
    sign="=",
    longest=2 * LONGEST,
    n_steps=400,
    example="bdface",
    draw=drawn,
    solve=lambda question: question[::-1],
)
