"""The positional encoding: its matrix, its sum with the tokens, and the map between positions."""

from __future__ import annotations

from typing import Annotated

from transformer.messages import mark
from transformer.runs.run import Run
from transformer.views.declaration import Answer, View, picture
from transformer.views.parameters import STACK, Choice, Int, IntList
from transformer.views.positions.encodings import (
    position_curves,
    position_matrix,
    position_similarity,
)
from transformer.views.positions.inputs import PARTS, input_parts, input_strips, input_token
from transformer.views.positions.rotation import largest_shift, position_shift

_WHICH = Choice(
    options={
        "matrix": "matrix",
        "similarity": "similarity",
        "curves": "curves",
    },
    use="request",
)


def answer_positions(
    item: Run,
    *,
    which: Annotated[str, _WHICH] = "matrix",
    stack: Annotated[str | None, STACK] = None,
    dimensions: Annotated[list[int] | None, IntList(title="Dimensions", use="request")] = None,
) -> Answer:
    """The positional matrix, curves of chosen dimensions, or the similarity of positions."""
    if which == "curves":
        return {"figure": position_curves(item, dimensions or [], stack)}
    draw = position_matrix if which == "matrix" else position_similarity
    return {"figure": draw(item, stack)}


def answer_inputs(
    item: Run,
    *,
    stack: Annotated[str | None, STACK] = None,
    position: Annotated[int | None, Int(use="selection")] = None,
) -> Answer:
    """Token vectors, position vectors and their sums; those of one token as lines.

    position: which traced token; None, or beyond the trace: the last.
    """
    parts = input_parts(item, stack)
    chosen = None if isinstance(position, int) and position >= len(parts.labels) else position
    token = input_token(item, chosen, stack)
    return {
        "strips": input_strips(item, stack),
        "token": token,
        "position": token.layout.meta["position"],
        "label": token.layout.meta["token"],
        "lengths": {part: parts.mean_length(part) for part in PARTS},
        "normalised": parts.normalised,
        "difference": parts.difference,
    }


def answer_shift(
    item: Run,
    *,
    k: Annotated[int, Int(title="Steps between positions", least=1, link="steps")] = 1,
    stack: Annotated[str | None, STACK] = None,
    shown: Annotated[int | None, Int(title="Dimensions shown", use="request")] = None,
) -> Answer:
    """The linear map that moves a position by k, and how well it does.

    figure is None, and nothing else is returned, if a fit would fit any matrix.
    """
    largest = largest_shift(item, stack)
    if largest < 1:
        return {"figure": None, "largest": largest}
    figure = position_shift(item, k, stack, shown=shown)
    return {"figure": figure, "largest": largest, **figure.layout.meta}


VIEW = View(
    name="positions",
    tab=mark("Positions"),
    order=310,
    title=mark("Positions"),
    help="The numbers that tell the network where a token stands, and how they move.",
    parameters=(
        Int(name="stack", title="Stack", default=0, use="place", link="stack"),
        IntList(
            name="dimensions",
            title="Dimensions",
            default=[0, 1, 8, 32],
            use="place",
            link="dimensions",
        ),
        Choice(
            name="shown",
            title="Dimensions shown",
            options={"16": mark("first 16 dimensions"), "": mark("all dimensions")},
            default="16",
            link="shown",
        ),
    ),
    pictures=(
        picture(
            answer_positions,
            figure=position_matrix,
            title=mark("Position matrix"),
            help="The numbers that tell the network where a token stands: one row a position.",
        ),
        picture(
            position_curves,
            name="curves",
            title=mark("Position curves"),
            help="Chosen dimensions of the position matrix as lines over the positions.",
        ),
        picture(
            position_similarity,
            name="similarity",
            title=mark("Similarity of positions"),
            help="The cosine between the vectors of every two positions.",
        ),
        picture(
            answer_inputs,
            figure=input_strips,
            title=mark("What enters the first layer"),
            help="Token vectors, position vectors and their sum, one row a token.",
        ),
        picture(
            input_token,
            name="input",
            title="What enters for one token",
            help="One token's vector, its position's vector and their sum, as lines.",
        ),
        picture(
            answer_shift,
            figure=position_shift,
            title=mark("A step of positions"),
            help="The one matrix that moves the vector of any position by k positions.",
        ),
    ),
)
