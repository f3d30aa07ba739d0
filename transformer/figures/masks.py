"""Who may read whom: padding, causal and combined masks, and the batch that is padded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.figures import style
from transformer.figures.attention import TEXT_LIMIT
from transformer.figures.data import check_choice, check_row, records_of
from transformer.figures.matrix import hatching, matrix_layout, reading_texts
from transformer.inference.run import Batch
from transformer.model.masks import causal_mask

WRITTEN_LIMIT = 16  # tokens a row that fit into the cells of `padded_batch`
MASKS = ("padding", "causal", "combined")

_TITLES = {
    "padding": "Padding mask: no one reads keys that are padding",
    "causal": "Causal mask: no one reads keys that come later",
    "combined": "Combined mask: what both masks allow",
}

BoolArray = NDArray[np.bool_]


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
        raise ValueError(
            f"a mask needs one label for each query and key; got {len(query_labels)} and "
            f"{len(key_labels)} labels for a mask of {allowed.shape[0]} x {allowed.shape[1]}"
        )
    colours = style.theme(dark)
    cells = go.Heatmap(
        z=np.where(allowed, np.float32(1), np.float32(np.nan)),
        customdata=allowed.astype(np.uint8),
        colorscale=[[0, colours.accent], [1, colours.accent]],
        zmin=0,
        zmax=1,
        showscale=False,
        hoverongaps=True,
        xgap=1 if len(key_labels) <= TEXT_LIMIT else 0,
        ygap=1 if len(query_labels) <= TEXT_LIMIT else 0,
        **_hover(query_labels, key_labels),
    )
    says = "filled: may be read; hatched: hidden"
    layout = matrix_layout(title, says, query_labels, key_labels, dark=dark, meta={})
    return go.Figure(data=[cells], layout=layout)


def _hover(query_labels: Sequence[str], key_labels: Sequence[str]) -> dict[str, object]:
    ending = "<br>allowed %{customdata}<extra></extra>"
    if max(len(query_labels), len(key_labels)) > TEXT_LIMIT:
        return {"hovertemplate": "query %{y:d}, key %{x:d}" + ending}
    text = reading_texts(query_labels, key_labels)
    return {"text": text, "hovertemplate": "query %{y:d}, key %{x:d}: %{text}" + ending}


def masks_of(
    batch: Batch, row: int, stack: str | None = None, kind: str = "self"
) -> dict[str, BoolArray]:
    """The masks of one sentence in one kind of attention, by default the first that there is.

    Returns "padding", "causal" and "combined", each (Tq, Tk) bool, True = may attend. combined is
    what the network used, from the trace; padding and causal are made anew. Causal allows
    everything but in a decoder's self-attention.
    Raises ValueError for a row or an attention that the batch does not have.
    """
    check_row(batch, row)
    stack = stack or batch.trace.kinds()[0][0]
    record = records_of(batch, stack, kind)[0]
    shape = record.weights.shape[-2:]
    real = batch.real("encoder" if kind == "cross" else stack)[row]
    causal = np.ones(shape, dtype=np.bool_)
    if (stack, kind) == ("decoder", "self"):
        causal = causal_mask(*shape).numpy()
    return {
        "padding": np.broadcast_to(real.cpu().numpy(), shape).copy(),
        "causal": causal,
        "combined": record.allowed[row].cpu().numpy(),
    }


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
    return mask_heatmap(queries, keys, allowed, _TITLES[which], dark=dark)


def padded_batch(batch: Batch, dark: bool = False, *, stack: str | None = None) -> go.Figure:
    """What a stack (by default the first) read, sentence x position: filled = a token, hatched =
    padding.

    z is 1 for tokens, NaN for padding. Raises ValueError for a stack that the batch does not have.
    """
    stacks = tuple(dict.fromkeys(name for name, _ in batch.trace.kinds()))
    stack = stack or stacks[0]
    check_choice("stack", stack, stacks)
    colours = style.theme(dark)
    real = batch.real(stack).cpu().numpy()
    n_rows, length = real.shape
    cells = go.Heatmap(
        z=np.where(real, np.float32(1), np.float32(np.nan)),
        colorscale=[[0, colours.accent], [1, colours.accent]],
        zmin=0,
        zmax=1,
        showscale=False,
        xgap=2,
        ygap=4,
        customdata=real.astype(np.uint8),
        **_tokens(batch, stack, real),
    )
    layout = style.layout(
        f"Padded batch: {n_rows} sentences, one length of {length}",
        "filled: a token; hatched: padding",
        dark=dark,
        shapes=[hatching(n_rows, length, dark)],
        xaxis=style.axis("position", dark=dark, range=[-0.5, length - 0.5], tickformat="d"),
        yaxis=style.axis(
            "sentence", dark=dark, range=[n_rows - 0.5, -0.5], tickmode="array",
            tickvals=list(range(n_rows)), ticktext=[str(row) for row in range(n_rows)],
        ),
    )  # fmt: skip
    return go.Figure(data=[cells], layout=layout)


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
        "texttemplate": "%{text}" if length <= WRITTEN_LIMIT else None,
        "textfont": {"size": style.FONT_SIZE},
        "hovertemplate": "sentence %{y:d}, position %{x:d}"
        + (": %{text}" if small else "")
        + "<br>token %{customdata}<extra></extra>",
    }
