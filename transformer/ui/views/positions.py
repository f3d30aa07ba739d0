"""The positional encoding: its matrix, what it is added to, and how it moves."""

from __future__ import annotations

from transformer import figures
from transformer.figures.inputs import PARTS, input_parts
from transformer.figures.positions import formula_difference
from transformer.figures.rotation import largest_shift
from transformer.ui.store import RunStore
from transformer.ui.views.answers import Answer, as_json, one_of


def positions(
    store: RunStore,
    *,
    run: str,
    which: str,
    stack: str | None = None,
    dimensions: list[int] | None = None,
    formula: bool = False,
    dark: bool = False,
) -> Answer:
    """The positional matrix, curves of chosen dimensions, or the similarity of positions.

    formula: of the sinusoidal formula in place of the model's own (not for curves); figure is None
    for an odd d_model, which has none. With it come the kind of positions and the largest
    difference of the two.
    """
    item = store.run(run)
    if which == "curves":
        return {"figure": as_json(figures.position_curves(item, dimensions or [], stack, dark))}
    draw = one_of(
        "which",
        which,
        {"matrix": figures.position_matrix, "similarity": figures.position_similarity},
    )
    if formula and item.config.d_model % 2:
        return {"figure": None}
    answer = {"figure": as_json(draw(item, stack=stack, dark=dark, formula=formula))}
    if not formula:
        return answer
    difference = formula_difference(item, stack)
    return answer | {"positions": item.config.positions, "difference": difference}


def inputs(
    store: RunStore,
    *,
    run: str,
    stack: str | None = None,
    place: int | None = None,
    dark: bool = False,
) -> Answer:
    """Token vectors, position vectors and their sums; the same of one token as lines.

    place: which traced token; None, or beyond the trace: the last.
    """
    item = store.run(run)
    found = input_parts(item, stack)
    chosen = None if isinstance(place, int) and place >= len(found.labels) else place
    token = figures.input_token(item, chosen, stack, dark=dark)
    return {
        "strips": as_json(figures.input_strips(item, stack, dark=dark)),
        "token": as_json(token),
        "place": token.layout.meta["place"],
        "label": token.layout.meta["token"],
        "lengths": {part: found.mean_length(part) for part in PARTS},
        "normed": found.normed,
        "difference": found.difference,
    }


def shift(
    store: RunStore,
    *,
    run: str,
    k: int,
    stack: str | None = None,
    shown: int | None = None,
    dark: bool = False,
) -> Answer:
    """The linear map that moves a position by k, and how well it does.

    figure is None, and nothing else is told, where a fit would fit any matrix.
    """
    item = store.run(run)
    largest = largest_shift(item, stack)
    if largest < 1:
        return {"figure": None, "largest": largest}
    figure = figures.position_shift(item, k, stack, shown=shown, dark=dark)
    return {"figure": as_json(figure), "largest": largest, **figure.layout.meta}
