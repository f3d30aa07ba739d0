"""All heads of one kind of attention as small pictures: numbers, which the page, figures and the
recorded trainings share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer.runs.batch import Batch
from transformer.runs.head_data import (
    array,
    head_view,
    n_heads_at,
    one_head,
    sites_of,
    weights_read,
)
from transformer.runs.run import Run

MAX_SIDE = 64  # px; a longer text is reduced to this
MAX_PIXELS = 380_000  # of all heads together: with more, pictures are smaller, to MIN_SIDE
MIN_SIDE = 24

Pixels = NDArray[np.uint8]


class Atlas(NamedTuple):
    """pixels: (L, H, Sq, Sk) uint8; masked: (Sq, Sk) uint8, 1 = nothing here may be read.

    A pixel is round(255 * sqrt(weight)); the weight is (pixel / 255) ** 2 to within 0.004.
    Sq = min(Tq, MAX_SIDE), Sk alike, and less for very many heads. A longer text is reduced by
    taking the largest weight of the cells that fall on a pixel, so that a single bright cell stays
    as bright; a pixel is masked only if all of its cells are. Masked pixels are 0, and so are those
    of a head that is switched off.
    """

    pixels: Pixels
    masked: Pixels

    def answer(self) -> dict[str, Any]:
        """The arrays that the page's scripts draw."""
        return {"shape": list(self.pixels.shape), "pixels": self.pixels, "masked": self.masked}


def atlas(run: Run | Batch, stack: str, kind: str, row: int = 0) -> Atlas:
    """Thumbnails of every head of one kind of attention, for one sentence.

    Raises ValueError, listing what there is, for an unknown stack, kind or row.
    """
    sites = sites_of(run, stack, kind)
    side = _side(len(sites) * n_heads_at(run.trace, sites[0]))
    allowed = head_view(run, sites[0], 0, row).allowed
    layers = []
    for site in sites:  # one at a time: all weights of a long text take gigabytes
        pattern = one_head(run.trace, site, row, None).pattern
        weights = array(weights_read(run, site, pattern)[0])
        layers.append(_reduce(np.where(allowed, weights, 0), side))
    pixels = np.rint(255 * np.sqrt(np.stack(layers))).astype(np.uint8)
    return Atlas(pixels, 1 - _reduce(allowed.astype(np.uint8), side))


def _side(n_heads: int) -> int:
    """The longest side of a small picture, in px."""
    return max(MIN_SIDE, min(MAX_SIDE, int((MAX_PIXELS / n_heads) ** 0.5)))


def _reduce(cells: NDArray[Any], side: int) -> NDArray[Any]:
    """(..., Tq, Tk) -> (..., Sq, Sk), the maximum of the cells that share a place."""
    for along in (-2, -1):
        length = cells.shape[along]
        if length > side:
            starts = np.arange(side) * length // side
            cells = np.maximum.reduceat(cells, starts, axis=along)
    return cells
