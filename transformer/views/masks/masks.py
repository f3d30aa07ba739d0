"""Who may read whom: padding, causal and combined masks, and the batch that is padded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from transformer.analysis.mask_removal import BoolArray, masks_of
from transformer.checks import check_choice
from transformer.messages import invalid, mark, say
from transformer.runs.run import Batch
from transformer.views.drawing import style
from transformer.views.drawing.matrix import TEXT_LIMIT, cell_hover, hatching, matrix_figure

MASKS = ("padding", "causal", "combined")

_TITLES = {
    "padding": mark("Padding mask: no one reads keys that are padding"),
    "causal": mark("Causal mask: no one reads keys that come later"),
    "combined": mark("Combined mask: what both masks allow"),
}


def mask_heatmap(
    query_labels: Sequence[str],
    key_labels: Sequence[str],
    allowed: BoolArray,
    title: str,
    *,
    dark: bool = False,
) -> go.Figure:
    """A mask as cells: filled = may be read, hatched background = may not.

    allowed: (Tq, Tk) bool, True = may attend; z is 1 where allowed and NaN elsewhere.
    title: text of ours, never a token's. Raises ValueError if the labels do not fit the mask.
    """
    if allowed.shape != (len(query_labels), len(key_labels)):
        raise invalid(
            "a mask needs one label for each query and key; got {n_query_labels} and "
            "{n_key_labels} labels for a mask of {n_rows} x {n_columns}",
            n_query_labels=len(query_labels),
            n_key_labels=len(key_labels),
            n_rows=allowed.shape[0],
            n_columns=allowed.shape[1],
        )
    ending = say("<br>allowed %{customdata}<extra></extra>")
    cells = _filled(
        allowed,
        hoverongaps=True,
        xgap=1 if len(key_labels) <= TEXT_LIMIT else 0,
        ygap=1 if len(query_labels) <= TEXT_LIMIT else 0,
        **cell_hover(query_labels, key_labels, ending, allowed.astype(np.uint8)),
    )
    says = say("filled: may be read; hatched: hidden")
    return matrix_figure(cells, title, says, query_labels, key_labels, dark=dark, meta={})


def _filled(where: BoolArray, **more: Any) -> go.Heatmap:
    """Cells of one colour where something is, NaN elsewhere."""
    z = np.where(where, np.float32(1), np.float32(np.nan))
    colours = [[place, style.LIGHT.accent] for place in (0, 1)]
    return go.Heatmap(z=z, colorscale=colours, zmin=0, zmax=1, showscale=False, **more)


def mask_figure(
    batch: Batch,
    row: int,
    which: str,
    dark: bool = False,
    *,
    stack: str | None = None,
    kind: str = "self",
) -> go.Figure:
    """One of the masks of one sentence. Raises ValueError for an unknown row, mask or attention."""
    check_choice("which", which, MASKS)
    stack = stack or batch.trace.kinds()[0][0]
    allowed = masks_of(batch, row, stack, kind)[which]
    queries, keys = batch.queries(stack, row), batch.keys(stack, kind, row)
    return mask_heatmap(queries, keys, allowed, say(_TITLES[which]), dark=dark)


def padded_batch(batch: Batch, dark: bool = False, *, stack: str | None = None) -> go.Figure:
    """What a stack (by default the first) read, sentence x position: filled = a token, hatched =
    padding.

    z is 1 for tokens, NaN for padding. Raises ValueError for a stack that the batch does not have.
    """
    stacks = tuple(dict.fromkeys(name for name, _ in batch.trace.kinds()))
    stack = stack or stacks[0]
    check_choice("stack", stack, stacks)
    real = batch.real(stack).cpu().numpy()
    n_rows, length = real.shape
    shown = _tokens(batch, stack, real)
    cells = _filled(real, xgap=2, ygap=4, customdata=real.astype(np.uint8), **shown)
    size = {"n_rows": n_rows, "length": length}
    return style.figure(
        cells,
        say("Padded batch: {n_rows} sentences, each {length} tokens long", **size),
        say("filled: a token; hatched: padding"),
        dark=dark,
        shapes=[hatching(n_rows, length)],
        xaxis=style.axis(
            say("position"), range=[-0.5, length - 0.5],
            tick0=0, dtick=_whole_step(length),
        ),
        yaxis=style.axis(
            say("sentence") if n_rows > 1 else "", range=[n_rows - 0.5, -0.5],
            tickmode="array", tickvals=list(range(n_rows)),
            ticktext=[str(row) for row in range(n_rows)],
        ),
    )  # fmt: skip


def _whole_step(length: int) -> int:
    """Between two labels of an axis of so many positions; Plotly's own steps can be halves."""
    return next(step for step in (1, 2, 5, 10, 20, 50, 100, length) if length <= 20 * step)


def _tokens(batch: Batch, stack: str, real: BoolArray) -> dict[str, object]:
    """The padded batch's tokens, in its cells and in the hover text, as far as there is room."""
    n_rows, length = real.shape
    text = [
        [style.label(token, 8) if real[row, place] else "" for place, token in enumerate(labels)]
        for row, labels in enumerate(batch.queries(stack, row) for row in range(n_rows))
    ]
    small = length <= TEXT_LIMIT
    return {
        "text": text if small else None,
        "texttemplate": "%{text}" if small else None,
        "textfont": {"size": style.FONT_SIZE},
        "hovertemplate": say("sentence %{y:d}, position %{x:d}")
        + (": %{text}" if small else "")
        + say("<br>token %{customdata}<extra></extra>"),
    }
