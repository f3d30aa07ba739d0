"""How the vector of one position becomes that of another: the map from PE(pos) to PE(pos + k).

A sine and a cosine of one frequency turn as one hand of a clock: k steps on are a rotation by k
times the frequency, from wherever one starts. So for sinusoidal positions one matrix moves every
position by k. A learned matrix guarantees nothing; the best such map is fitted and its error
reported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import torch
from numpy.typing import NDArray

from transformer.checks import check_whole
from transformer.messages import say
from transformer.model.positions import POSITIONS
from transformer.runs.run import Run
from transformer.views.drawing import style
from transformer.views.positions.encodings import matrix_of, square_axes

Doubles = NDArray[np.float64]
# Of a Shift, in the meta of its figure.
META_FIELDS = ("stack", "k", "fitted", "n_pairs", "largest_miss", "relative_miss", "chance")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Shift:
    """The linear map M with M · PE(pos) ≈ PE(pos + k), (C, C) float64, and how well it does.

    fitted: by least squares over all pairs of positions k apart (`n_pairs` of them), else composed
    of rotations. largest_miss: largest |M · PE(pos) - PE(pos + k)| over all pairs and dimensions;
    relative_miss: the root of the summed squares of that, as a share of PE(pos + k)'s own.
    chance: the relative miss that a fit to a matrix of random numbers is expected to leave,
    √(1 - C / n_pairs); 0 if not fitted.
    """

    stack: str
    k: int
    matrix: Doubles
    fitted: bool
    n_pairs: int
    largest_miss: float
    relative_miss: float

    @property
    def chance(self) -> float:
        """The relative error of a fit to random numbers, with C unknowns for n_pairs equations."""
        return math.sqrt(1 - len(self.matrix) / self.n_pairs) if self.fitted else 0.0


def largest_shift(run: Run, stack: str | None = None) -> int:
    """The largest k that `shift` takes; below 1 where a fit would fit any matrix."""
    _, table, _ = matrix_of(run, stack)
    rows, size = table.shape
    return rows - 1 - (size if POSITIONS[run.config.positions].shift is None else 0)


def shift(run: Run, k: int, stack: str | None = None) -> Shift:
    """The map that moves a position of the model's own matrix by k.

    k: 1 to max_len - 1. The encoding's own map where it has one, else the best fit.
    Raises ValueError for another k, an unknown stack, and for a fit that has as many unknowns as
    equations: it would be without error for any matrix, and so say nothing.
    """
    chosen, table, _ = matrix_of(run, stack)
    rows, size = table.shape
    check_whole("k", k, 1, rows - 1)
    here, there = table[:-k].astype(np.float64), table[k:].astype(np.float64)
    exact = POSITIONS[run.config.positions].shift
    if k > largest_shift(run, stack):
        raise ValueError(
            f"a map of {size} dimensions fits any {len(here)} pairs of positions; "
            "choose a smaller k"
        )
    if (
        exact is None
    ):  # the squared distance of here · Mᵀ to there is smallest; by QR, not by an SVD
        of_here, of_there = torch.from_numpy(here), torch.from_numpy(there)
        matrix = torch.linalg.lstsq(of_here, of_there, driver="gelsy").solution.T.numpy()
    else:
        matrix = exact(k, size).numpy()
    missed = here @ matrix.T - there
    return Shift(
        stack=chosen,
        k=k,
        matrix=matrix,
        fitted=exact is None,
        n_pairs=len(here),
        largest_miss=float(np.abs(missed).max()),
        relative_miss=float(np.linalg.norm(missed) / np.linalg.norm(there)),
    )


def position_shift(
    run: Run, k: int, stack: str | None = None, *, shown: int | None = None
) -> go.Figure:
    """The map from PE(pos) to PE(pos + k), from dimension (column) to dimension (row).

    shown: opens on this many of the first dimensions, by default on all; z is always the whole
    matrix. Raises ValueError as `shift` does.
    """
    fit = shift(run, k, stack)
    size = len(fit.matrix)
    here, there = say("dimension of PE(pos)"), say("dimension of PE(pos + {k})", k=k)
    hover = style.cell_hover(there, here, say("factor"))
    stack = f"of the {fit.stack}"
    matrix = fit.matrix.astype(np.float32)
    return style.figure(
        style.signed_cells(matrix, hover, bar=say("factor")),
        f"One matrix that moves any position {stack} by {k}",
        (f"best fit; it misses by {100 * fit.relative_miss:.0f} % of the vectors' size")
        if fit.fitted
        else (
            f"a rotation for each pair of dimensions; it misses by at most {fit.largest_miss:.1e}"
        ),
        meta={name: getattr(fit, name) for name in META_FIELDS},
        **square_axes(here, there, min(size, shown or size), tickformat="d"),
    )
