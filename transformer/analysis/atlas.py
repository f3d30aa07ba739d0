"""All heads of one kind of attention: as small pictures, whose numbers the page, figures and the
recorded training runs share, and their weights from one token to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.checks import check_whole
from transformer.model.sites import Site
from transformer.model.trace import AttentionRecord
from transformer.runs.batch import Batch
from transformer.runs.compact_trace import qkv_at, stored_at
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
    """pixels: (L, H, Sq, Sk) uint8; masked: (L, Sq, Sk) uint8, 1 = nothing here may be read.

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
    layers, masked = [], []
    for site in sites:  # one at a time: all weights of a long text take gigabytes
        allowed = head_view(run, site, 0, row).allowed
        pattern = one_head(run.trace, site, row, None).pattern
        weights = array(weights_read(run, site, pattern)[0])
        layers.append(_reduce(np.where(allowed, weights, 0), side))
        masked.append(1 - _reduce(allowed.astype(np.uint8), side))
    pixels = np.rint(255 * np.sqrt(np.stack(layers))).astype(np.uint8)
    return Atlas(pixels, np.stack(masked))


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


@torch.no_grad()
def reading_weights(run: Run, stack: str, kind: str, query: int, key: int) -> Tensor:
    """(L, H): how much each head of a kind of attention reads the token `key` at the token `query`.

    query: a position in the stack's text; key: in the same, or in the source for cross-attention.
    Raises ValueError for what the run does not have.
    """
    sites = sites_of(run, stack, kind)
    column = _row("key", run, "encoder" if kind == "cross" else stack, key, run.keys(stack, kind))
    row = _row("query", run, stack, query, run.queries(stack))
    return torch.stack([_row_weights(run, site, row)[:, column] for site in sites])


def _row_weights(run: Run, site: Site, row: int) -> Tensor:
    """(H, Tk): the weights of every head of a site at a row, 0 for an ablated head; no other row is
    computed."""
    part = stored_at(run.trace, site)
    if isinstance(part, AttentionRecord):
        return weights_read(run, site, part.pattern[:, :, row])[0].cpu()
    heads = qkv_at(run.trace, site)
    mask = heads.mask
    if mask is not None and mask.shape[-2] > 1:
        mask = mask[..., row : row + 1, :]
    alone = heads._replace(q=heads.q[:, :, row : row + 1], mask=mask)
    return weights_read(run, site, alone.record(site).pattern[:, :, 0])[0].cpu()


def _row(name: str, run: Run, stack: str, position: int, tokens: Sequence[str]) -> int:
    """The row of a token in a stack's trace."""
    is_source = stack == "encoder" and run.config.family == "encoder-decoder"
    start = 0 if is_source else run.trace_start
    return check_whole(name, position, start, start + len(tokens) - 1) - start
