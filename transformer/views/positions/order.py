"""Order: what a text becomes when the network does not know its tokens' positions."""

from __future__ import annotations

from transformer.messages import mark
from transformer.views.declaration import View

VIEW = View(
    name="order",
    tab=mark("Positions"),
    order=300,
    title="Without positions",
    help="What a text becomes when the network is not told where its tokens stand.",
    pictures=(),
)
