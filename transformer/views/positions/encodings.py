"""The positional encoding itself: the matrix, chosen dimensions as curves, and similarity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.checks import check_choice, is_whole, shortened
from transformer.messages import say
from transformer.model.positions import POSITIONS
from transformer.network_words import stack_name
from transformer.runs.head_data import array
from transformer.runs.run import Run
from transformer.views.drawing import style
from transformer.views.parameters import STACK, IntList

MAX_CURVES = 12
MAX_CELLS = 28_000  # of a picture: at most 120 KB, and rows of some three pixels
_DASHES = ("solid", "dash", "dot", "dashdot")
# Okabe and Ito's colours, less those too pale on white or too dark on black; the first is not
# spelled as in theme.css, so that the dark theme does not replace it.
_CURVES = ("rgb(0,114,178)", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")

Matrix = NDArray[np.float32]


def matrix_of(run: Run, stack: str | None = None) -> tuple[str, Matrix, int]:
    """(stack, its (max_len, C) position matrix, how many rows this run used).

    stack None: the model's only stack, or the decoder. The used rows are always the first ones: a
    window that slid starts again at position 0. Raises ValueError for a stack that is not there,
    and for a network that adds no vectors to its tokens.
    """
    check_added(run)
    stacks = list(run.position_matrices)
    chosen = stacks[-1] if stack is None else stack
    check_choice("stack", chosen, stacks)
    return chosen, array(run.position_matrices[chosen]), len(run.queries(chosen))


def check_added(run: Run) -> None:
    """Raise ValueError for a run whose network adds no vectors of positions to its tokens."""
    if not (POSITIONS[run.config.positions].adds and run.position_matrices):
        raise ValueError(f"{run.model} adds no vectors of positions to its tokens")


def drawn_positions(matrix: Matrix) -> NDArray[np.int32]:
    """The positions of a picture of a (max_len, C) matrix: all; with more than MAX_CELLS numbers,
    half of those that fit are the first ones, the others follow at equal steps up to the last."""
    n_positions, size = matrix.shape
    half = max(8, MAX_CELLS // size // 2)
    if n_positions <= 2 * half:
        return np.arange(n_positions, dtype=np.int32)
    rest = np.linspace(half, n_positions - 1, half).round()
    return np.concatenate([np.arange(half), rest]).astype(np.int32)


def position_matrix(run: Run, stack: str | None = None) -> go.Figure:
    """Position x dimension, of positions from the first to the last that the model knows (see
    `drawn_positions`); z are rows of the matrix itself.

    A line marks the positions that this run used: those above it. Raises ValueError for a stack
    that the model does not have.
    """
    chosen, matrix, used = matrix_of(run, stack)
    hover = style.cell_hover(say("position"), say("dimension"), say("value"))
    (max_len, size), places = matrix.shape, drawn_positions(matrix)
    rows = {"y": places} if len(places) < max_len else {}
    edge = {"xref": "x domain", "x0": 0, "x1": 1, "y0": used - 0.5, "y1": used - 0.5}
    line = {"type": "line", "line": _dashed(), **edge}
    return style.figure(
        style.signed_cells(
            matrix[places], hover, bound=style.bound_of(matrix), bar=say("value"), **rows
        ),
        f"Position matrix of the {chosen} ({run.config.positions})",
        f"the row of a position is added to its token; this run used {used} of {max_len} rows",
        xaxis=style.axis(say("dimension"), range=[-0.5, size - 0.5]),
        yaxis=style.axis(say("position"), range=[max_len - 0.5, -0.5]),
        shapes=[line],
        annotations=[_used_note(used, max_len)],
        meta={"stack": chosen, "used": used},
    )


def position_curves(
    run: Run,
    dimensions: Annotated[
        Sequence[int], IntList(title="Dimensions", default=[0, 1], use="request")
    ],
    stack: Annotated[str | None, STACK] = None,
) -> go.Figure:
    """The chosen dimensions as lines over the positions; y is a column of the matrix.

    dimensions: 1 to MAX_CURVES different numbers below d_model; else ValueError.
    """
    chosen, matrix, used = matrix_of(run, stack)
    _check_dimensions(dimensions, matrix.shape[1])
    lines = {
        say("dimension {dimension}", dimension=dimension): (
            matrix[:, dimension],
            {
                "color": _CURVES[order % len(_CURVES)],
                "dash": _DASHES[order // len(_CURVES) % len(_DASHES)],
                "width": 2,
            },
        )
        for order, dimension in enumerate(dimensions)
    }
    band = {
        "type": "rect",
        "yref": "y domain",
        "x0": -0.5,
        "x1": used - 0.5,
        "y0": 0,
        "y1": 1,
        "layer": "below",
        "line": {"width": 0},
        "fillcolor": style.LIGHT.line,
        "opacity": 0.5,
    }
    positions, here = run.config.positions, f"of the {chosen}"
    return line_figure(
        f"Position curves {here} ({positions})",
        f"one line a dimension; grey: the {used} positions that this run used",
        lines,
        style.axis(say("position"), range=[-0.5, len(matrix) - 0.5], tickformat="d"),
        shapes=[band],
        meta={"stack": chosen, "used": used},
    )


def line_figure(
    title: str,
    subtitle: str,
    lines: dict[str, tuple[Matrix, dict[str, Any]]],
    xaxis: dict[str, Any],
    **more: Any,
) -> go.Figure:
    """Values over 0, 1, ... as lines, by name, each with the look that Plotly gives it."""
    traces = [
        go.Scatter(
            x=np.arange(len(values), dtype=np.int32),
            y=np.ascontiguousarray(values),
            mode="lines",
            name=name,
            line=look,
            hovertemplate="%{y:.4f}",
        )
        for name, (values, look) in lines.items()
    ]
    return style.figure(
        traces,
        title,
        subtitle,
        xaxis=xaxis,
        yaxis=style.axis(say("value"), showgrid=True),
        hovermode="x unified",
        showlegend=True,
        legend=style.LEGEND_ABOVE,
        height=364,
        margin={"l": 64, "r": 16, "t": 100, "b": 56},
        **more,
    )


def position_similarity(run: Run, stack: Annotated[str | None, STACK] = None) -> go.Figure:
    """Cosine of the angle between every two positions' vectors; z in [-1, 1], 1 on the diagonal.
    The positions are those of `position_matrix`.

    A vector of zeros has no direction: its similarities are shown as 0.
    """
    chosen, matrix, used = matrix_of(run, stack)
    places = drawn_positions(matrix)
    both = {"x": places, "y": places} if len(places) < len(matrix) else {}
    vectors = matrix[places].astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths > 0, lengths, 1)
    hover = style.cell_hover(say("position"), say("position"), say("cosine"))
    cosines = (unit @ unit.T).astype(np.float32)
    square = {"x0": -0.5, "y0": -0.5, "x1": used - 0.5, "y1": used - 0.5}
    cells = style.signed_cells(cosines, hover, bound=1, bar=say("cosine"), **both)
    return style.figure(
        cells,
        f"Similarity of positions, {stack_name(chosen)} ({run.config.positions})",
        f"cosine of their vectors; dashed: the {used} positions that this run used",
        **square_axes(say("position"), say("position"), len(matrix)),
        shapes=[{"type": "rect", "line": _dashed(), **square}],
        meta={"stack": chosen, "used": used},
    )


def square_axes(x_title: str, y_title: str, shown: int, **more: Any) -> Any:
    """Axes of square cells, row 0 on top, of which the first `shown` are seen."""
    side = [-0.5, shown - 0.5]
    shared = {"constrain": "domain", **more}
    return {
        "xaxis": style.axis(x_title, range=side, **shared),
        "yaxis": style.axis(
            y_title, range=side[::-1], constraintoward="top", scaleanchor="x", **shared
        ),
    }


def _check_dimensions(dimensions: Sequence[int], size: int) -> None:
    in_range = all(is_whole(dimension) and 0 <= dimension < size for dimension in dimensions)
    differ = in_range and len(set(dimensions)) == len(dimensions)
    if not differ or not 1 <= len(dimensions) <= MAX_CURVES:
        raise ValueError(
            f"dimensions must be 1 to {MAX_CURVES} different numbers from 0 to "
            f"{size - 1}; got {shortened(list(dimensions))}"
        )


def _dashed() -> dict[str, Any]:
    return {"color": style.LIGHT.text, "width": 2, "dash": "dash"}


def _used_note(used: int, max_len: int) -> dict[str, Any]:
    return {
        "text": say("this run used the rows above"),
        "xref": "x domain",
        "x": 1,
        "xanchor": "right",
        "y": used - 0.5,
        "yanchor": "top" if used < 0.9 * max_len else "bottom",
        "showarrow": False,
        "font": {"color": style.LIGHT.text, "size": style.FONT_SIZE},
        "bgcolor": "rgba(255,255,255,0.8)",
    }
