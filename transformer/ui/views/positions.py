"""The positional encoding."""

from __future__ import annotations

from transformer import figures
from transformer.ui.store import RunStore
from transformer.ui.views.answers import Answer, as_json, one_of


def positions(
    store: RunStore,
    *,
    run: str,
    which: str,
    stack: str | None = None,
    dimensions: list[int] | None = None,
    dark: bool = False,
) -> Answer:
    """The positional matrix, curves of chosen dimensions, or the similarity of positions."""
    item = store.run(run)
    if which == "curves":
        return {"figure": as_json(figures.position_curves(item, dimensions or [], stack, dark))}
    draw = one_of(
        "which",
        which,
        {"matrix": figures.position_matrix, "similarity": figures.position_similarity},
    )
    return {"figure": as_json(draw(item, stack=stack, dark=dark))}
