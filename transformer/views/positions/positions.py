"""The positional encoding: its matrix, what it is added to, and how it moves."""

from __future__ import annotations

from transformer.messages import mark
from transformer.runs.run import Run
from transformer.views.declaration import Answer, Picture, View
from transformer.views.parameters import STACK, Choice, Int, IntList
from transformer.views.positions.encodings import (
    position_curves,
    position_matrix,
    position_similarity,
)
from transformer.views.positions.inputs import PARTS, input_parts, input_strips, input_token
from transformer.views.positions.rotation import largest_shift, position_shift


def answer_positions(
    item: Run, *, which: str, stack: str | None = None, dimensions: list[int] | None = None
) -> Answer:
    """The positional matrix, curves of chosen dimensions, or the similarity of positions."""
    if which == "curves":
        return {"figure": position_curves(item, dimensions or [], stack)}
    draw = position_matrix if which == "matrix" else position_similarity
    return {"figure": draw(item, stack)}


def answer_inputs(item: Run, *, stack: str | None = None, position: int | None = None) -> Answer:
    """Token vectors, position vectors and their sums; those of one token as lines.

    position: which traced token; None, or beyond the trace: the last.
    """
    found = input_parts(item, stack)
    chosen = None if isinstance(position, int) and position >= len(found.labels) else position
    token = input_token(item, chosen, stack)
    return {
        "strips": input_strips(item, stack),
        "token": token,
        "position": token.layout.meta["position"],
        "label": token.layout.meta["token"],
        "lengths": {part: found.mean_length(part) for part in PARTS},
        "normalised": found.normalised,
        "difference": found.difference,
    }


def answer_shift(
    item: Run, *, k: int, stack: str | None = None, shown: int | None = None
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
        Picture(
            name="positions",
            title=mark("Position matrix"),
            help=("The numbers that tell the network where a token stands: one row a position."),
            figure=position_matrix,
            answer=answer_positions,
            parameters=(
                Choice(
                    name="which",
                    options={
                        "matrix": mark("matrix"),
                        "similarity": mark("similarity"),
                        "curves": mark("curves"),
                    },
                    default="matrix",
                    use="request",
                ),
                STACK,
                IntList(name="dimensions", title="Dimensions", optional=True, use="request"),
            ),
        ),
        Picture(
            name="curves",
            title=mark("Position curves"),
            help="Chosen dimensions of the position matrix as lines over the positions.",
            figure=position_curves,
            parameters=(
                IntList(name="dimensions", title="Dimensions", default=[0, 1], use="request"),
                STACK,
            ),
        ),
        Picture(
            name="similarity",
            title=mark("Similarity of positions"),
            help="The cosine between the vectors of every two positions.",
            figure=position_similarity,
            parameters=(STACK,),
        ),
        Picture(
            name="inputs",
            title=mark("What enters the first layer"),
            help="Token vectors, position vectors and their sum, one row a token.",
            figure=input_strips,
            answer=answer_inputs,
            parameters=(STACK, Int(name="position", use="selection", optional=True)),
        ),
        Picture(
            name="input",
            title="What enters for one token",
            help="One token's vector, its position's vector and their sum, as lines.",
            figure=input_token,
            parameters=(Int(name="position", use="selection", optional=True), STACK),
        ),
        Picture(
            name="shift",
            title=mark("A step of positions"),
            help="The one matrix that moves the vector of any position by k positions.",
            figure=position_shift,
            answer=answer_shift,
            parameters=(
                Int(
                    name="k",
                    title="Steps between positions",
                    default=1,
                    least=1,
                    link="steps",
                ),
                STACK,
                Int(name="shown", title="Dimensions shown", optional=True, use="request"),
            ),
        ),
    ),
)
