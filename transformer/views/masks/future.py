"""Why not the future?: what each token of the visitor's text may read."""

from __future__ import annotations

from transformer.messages import mark
from transformer.views.declaration import View

VIEW = View(
    name="future",
    tab=mark("Masks"),
    order=205,
    title=mark("Why not the future?"),
    help="What each token of a text may read: a causal mask hides all that comes later.",
    pictures=(),
)
