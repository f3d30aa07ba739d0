"""Moments: a language model at ten steps of its training, as they were recorded."""

from __future__ import annotations

from transformer.messages import mark
from transformer.views.declaration import View
from transformer.views.parameters import Whole

VIEW = View(
    name="moments",
    tab=mark("Learn"),
    order=620,
    folded=True,
    title=mark("The story model through its training"),
    help=mark("Its loss, its heads, what it writes and what surprises it, at ten of its steps."),
    parameters=(
        Whole(name="step", title=mark("Step"), optional=True),
        Whole(name="sentence", title=mark("Sentence"), default=0),
        Whole(name="layer", title=mark("Layer"), optional=True),
        Whole(name="head", title=mark("Head"), optional=True),
    ),
    pictures=(),
    gets=("moments",),
)
