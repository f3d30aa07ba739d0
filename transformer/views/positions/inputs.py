"""What enters the first layer: each token's own vector, its position's vector, and their sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.checks import check_choice, check_whole
from transformer.messages import mark, numeral, say
from transformer.runs.head_data import array
from transformer.runs.run import Run
from transformer.views.drawing import style
from transformer.views.parameters import STACK, Int
from transformer.views.positions.encodings import check_added, line_figure

_COLOURED = 0.995  # quantile at the ends of the colour scale: a few outliers would flatten it
_ROW_PX, _LEAST_PX, _MOST_PX = 19, 90, 520  # of one token, and of all of them

Matrix = NDArray[np.float32]


class _Look(NamedTuple):
    """How a part is drawn: its panel among the strips, its line among the curves."""

    name: str
    heading: str
    axis: str  # of its panel
    panel: tuple[float, float]  # from 0 (left) to 1
    dash: str
    width: float


_LOOKS = {
    "token": _Look(mark("token"), mark("tokens"), "", (0, 0.3), "solid", 2),
    "position": _Look(mark("position"), mark("+ positions"), "2", (0.35, 0.65), "dot", 2),
    "sum": _Look(mark("sum"), mark("= sums"), "3", (0.7, 1), "dash", 1.5),
}
PARTS = tuple(_LOOKS)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class InputParts:
    """A stack's input for the traced tokens: token + position = sum.

    token, position, sum, first: (T, C) float32. first is what entered the first layer as recorded;
    it differs from the sum where the model norms its embeddings (`normalised`).
    """

    stack: str
    labels: tuple[str, ...]
    token: Matrix
    position: Matrix
    sum: Matrix
    first: Matrix
    normalised: bool

    def part(self, name: str) -> Matrix:
        """One of PARTS by its name."""
        vectors: Matrix = getattr(self, name)
        return vectors

    def mean_length(self, name: str) -> float:
        """The length of a row's vector of one of PARTS, on average over the tokens."""
        return float(np.linalg.norm(self.part(name).astype(np.float64), axis=1).mean())

    @property
    def difference(self) -> float:
        """Largest difference between the sum and what entered the first layer."""
        return float(np.abs(self.sum - self.first).max())


def input_parts(run: Run, stack: str | None = None) -> InputParts:
    """The parts of a stack's input; stack None: the model's only stack, or the decoder.

    Raises ValueError for a stack that was not recorded, and for a network that adds no positions.
    """
    stacks = tuple(run.trace.embed)
    if not stacks:
        raise ValueError("this run's trace holds no embeddings; needed: a network's own trace")
    check_added(run)
    chosen = stacks[-1] if stack is None else stack
    check_choice("stack", chosen, stacks)
    token, position = (array(of[chosen][0]) for of in (run.trace.embed, run.trace.pos_embed))
    return InputParts(
        stack=chosen,
        labels=run.queries(chosen),
        token=token,
        position=position,
        sum=token + position,
        first=array(run.trace.residuals[chosen][0][0]),
        normalised=run.config.norm_embeddings,
    )


def input_strips(run: Run, stack: str | None = None) -> go.Figure:
    """Token vectors, position vectors and their sum, each tokens x dimensions, side by side.

    One scale of colours for all three, which ends where 0.5 % of the numbers are still larger.
    Raises ValueError for a stack that was not recorded.
    """
    parts = input_parts(run, stack)
    count, size = parts.sum.shape
    every = np.abs(np.stack([parts.part(name) for name in PARTS]))
    bound = float(np.quantile(every, _COLOURED)) or 1.0
    cells = [
        style.signed_cells(
            parts.part(name),
            style.cell_hover(say("token"), say("dimension"), say(look.name)),
            bound=bound,
            bar=say("value"),
            showscale=name == "sum",
            xaxis=f"x{look.axis}",
        )
        for name, look in _LOOKS.items()
    ]
    axes = {
        f"xaxis{look.axis}": style.axis(
            say("dimension"), domain=look.panel, range=[-0.5, size - 0.5], anchor="y",
            nticks=5, tickformat="d",
        )
        for look in _LOOKS.values()
    }  # fmt: skip
    headings = [say(look.heading) for look in _LOOKS.values()]
    return style.figure(
        cells,
        f"What enters the first layer of the {parts.stack}",
        "token vector + position vector; the model then norms the sum of each token"
        if parts.normalised
        else "token vector + position vector; the sum is what the layer reads",
        height=min(_MOST_PX, max(_LEAST_PX, _ROW_PX * count)) + 72 + 90,
        margin={"l": 110, "r": 90, "t": 100, "b": 62},
        meta=_meta(parts) | {"row_labels": list(parts.labels), "headings": headings},
        annotations=[
            style.heading(
                say(
                    "{titles}, mean length {name}",
                    titles=say(look.heading),
                    name=numeral(parts.mean_length(name), ".2f"),
                ),
                look.panel[0],
                1,
            )
            for name, look in _LOOKS.items()
        ],
        yaxis=style.token_axis(say("token"), parts.labels, range=[count - 0.5, -0.5]),
        **axes,
    )


def _meta(parts: InputParts) -> dict[str, Any]:
    return {"stack": parts.stack, "normalised": parts.normalised}


def input_token(
    run: Run,
    position: Annotated[int | None, Int(use="selection")] = None,
    stack: Annotated[str | None, STACK] = None,
) -> go.Figure:
    """One token's vector, its position's, and their sum, as three lines over the dimensions.

    position: which traced token, by default the last. Raises ValueError for one that is not there.
    """
    parts = input_parts(run, stack)
    last = len(parts.sum) - 1
    chosen = check_whole("position", last if position is None else position, 0, last)
    colours = (style.LIGHT.accent, style.LIGHT.key, style.LIGHT.text)
    return line_figure(
        (f"Token {chosen} of the {parts.stack}: its vector, its position's, and their sum"),
        "one place a dimension",
        {
            say(look.name): (
                parts.part(name)[chosen],
                {"color": colour, "dash": look.dash, "width": look.width},
            )
            for colour, (name, look) in zip(colours, _LOOKS.items(), strict=True)
        },
        style.axis(say("dimension"), tickformat="d"),
        meta=_meta(parts) | {"position": chosen, "token": parts.labels[chosen]},
    )
