"""Learn: a small network learns in front of the visitor, and is then looked at like any other."""

from __future__ import annotations

from transformer.messages import mark
from transformer.model.presets import PRESETS
from transformer.views.declaration import View
from transformer.views.parameters import Bool, Choice, Int, Number

# The exercises of `transformer.training`, which no view may import; a test holds them together.
TASKS = {
    "copy": mark("Copy"),
    "reverse": mark("Reverse"),
    "sort": mark("Sort"),
    "addition": mark("Add"),
    "induction": mark("Repeat what followed"),
}
VIEW = View(
    name="learn",
    tab=mark("Learn"),
    order=610,
    part="learned",
    title=mark("Watch it learn"),
    help=mark("A small network learns an exercise: its loss, its accuracy, and its heads."),
    parameters=(
        Choice(name="task", title=mark("Exercise"), options=TASKS, default="induction"),
        Choice(
            name="preset",
            title=mark("Preset"),
            options={name: name for name in PRESETS},
            default="gpt",
        ),
        Int(name="n_layers", title=mark("Layers"), default=2, least=1, most=4),
        Int(name="n_heads", title=mark("Heads"), default=4, least=1, most=8),
        Int(name="width", title=mark("Width"), default=32, least=8, most=96),
        Bool(name="feed_forward", title=mark("Feed-forward layers"), default=False),
        Int(name="n_steps", title=mark("Steps"), default=400, least=1, most=2000),
        Number(
            name="learning_rate", title=mark("Learning rate"), default=0.01,
            least=0.0001, most=0.05,
        ),
        Int(name="seed", title=mark("Seed"), default=0, most=2**32 - 1),
    ),
    pictures=(),
    gets=("tasks", "checkpoints"),
)  # fmt: skip
