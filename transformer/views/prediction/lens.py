"""The logit lens: the prediction of each layer, as if the network ended there.

The model's own final norm (if it has one) and head are applied to the residual stream after every
layer, for which they were not trained. Source: nostalgebraist 2020, "interpreting GPT: the logit
lens".

What the figure carries besides the cells: `layout.meta` has column_labels (the tokens read) and
row_labels (the streams) as plain text, `next` (the tokens that came next, None after the last),
`best` (rows of labels, the likeliest token of each cell), `settled` (for each column the lowest row
from which on all rows predict the same as the last), `first` and `total` (which columns of how many
are shown) and `n_earlier` (the place of the first traced token in the whole text).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.checks import check_whole
from transformer.messages import numeral, say
from transformer.model.primitives import PLACEMENTS
from transformer.model.summary import last_stack
from transformer.runs.run import Run
from transformer.views.drawing import style

CELL_PX, ROW_PX = 60, 34
TICK_CHARACTERS = 10
MARGIN = {"l": 150, "r": 90, "t": 196, "b": 120}
DARK_TYPE_UP_TO = (
    0.625  # from this place of the colour scale on, the type of the other theme is read better
)
MIN_WIDTH = 560


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LensView:
    """The shown columns. ids, probabilities: (L + 1, T, K), best first, row 0 the input.

    same: (L + 1, T) bool, the cells whose best token is the last row's. settled: (T,) int, the
    lowest row from which on all have the last row's best token.
    """

    ids: NDArray[np.int64]
    probabilities: NDArray[np.float32]
    same: NDArray[np.bool_]
    settled: NDArray[np.int64]
    read: tuple[str, ...]
    follows: tuple[str | None, ...]
    first: int
    total: int


def lens_view(run: Run, first: int = 0, count: int | None = None) -> LensView:
    """`count` columns (None: all from there on) of a run's lens, from traced token `first` on.

    Raises ValueError for a first that is not a traced token, a count below 1, and a run without
    its lens.
    """
    lens = run.lens
    if lens is None:
        raise ValueError(
            "this run has no logit lens yet, which takes the network; needed: the run "
            "that transformer.with_lens(model, run) gives"
        )
    total = lens.ids.shape[1]
    check_whole("first", first, 0, total - 1)
    if count is not None:
        check_whole("count", count, 1, 1_000_000)
    window = slice(first, total if count is None else min(total, first + count))
    ids = lens.ids.cpu().numpy()[:, window]
    same = ids[:, :, 0] == ids[-1, :, 0]
    labels = run.queries(last_stack(run.config))
    following: tuple[str | None, ...] = (*labels[1:], None)
    return LensView(
        ids=ids,
        probabilities=lens.probabilities.float().cpu().numpy()[:, window],
        same=same,
        settled=len(same) - np.logical_and.accumulate(same[::-1]).sum(axis=0),
        read=labels[window],
        follows=following[window],
        first=first,
        total=total,
    )


def logit_lens(run: Run, *, first: int = 0, count: int | None = None) -> go.Figure:
    """Layers upwards (the input at the bottom, the model's own prediction on top) by tokens.

    z is the probability of the cell's best token, whose text is in the cell; underlined cells
    predict the same as the model. The text above a column is the token that came next.
    `layout.width` is CELL_PX a column: a page scrolls a long text sideways. first, count: see
    lens_view, with its ValueErrors.
    """
    view, after = lens_view(run, first, count), last_stack(run.config)
    rows, columns = view.same.shape
    layers = [say("after layer {layer}", layer=layer) for layer in range(rows - 2)]
    names = [say("input"), *layers, say("model's own")]
    above: dict[str, Any] = {"overlaying": "x", "side": "top", "matches": "x", "showline": False}
    above["visible"] = run.config.family != "encoder"
    # an axis is drawn only if some trace is on it
    nothing = go.Scatter(x=[], y=[], xaxis="x2", showlegend=False, hoverinfo="skip")
    return style.figure(
        [_cells(run, view, names), _texts(run, view), nothing],
        f"Logit lens of the {after}",
        f"{what_is_done(run)}<br>underlined: the same best token as the model's own, on top",
        margin=MARGIN,
        dragmode=False,
        width=max(MIN_WIDTH, MARGIN["l"] + CELL_PX * columns + MARGIN["r"]),
        height=MARGIN["t"] + ROW_PX * rows + MARGIN["b"],
        xaxis=_tokens(say("token read"), view.read),
        # above the cells what came next; an encoder predicts nothing
        xaxis2=_tokens(say("came next"), view.follows, **above),
        yaxis=style.named_axis(say("residual stream"), names, fixedrange=True),
        shapes=_underlines(view),
        meta={
            "column_labels": list(view.read),
            "row_labels": names,
            "next": list(view.follows),
            "best": _best(run, view),
            "settled": view.settled.tolist(),
            "first": view.first,
            "total": view.total,
            "n_earlier": run.trace_start,
        },
    )  # fmt: skip


def what_is_done(run: Run) -> str:
    """The norm and head that are applied to each layer, in a sentence."""
    if not PLACEMENTS[run.config.norm].of_sum:
        return (
            "the model's final norm and output layer, put on streams that they were not trained for"
        )
    return (
        "the model's output layer, put on streams that it was not trained for (a post-norm model "
        "has no final norm)"
    )


def _tokens(title: str, labels: tuple[str | None, ...], **more: Any) -> dict[str, Any]:
    texts = ["" if text is None else style.label(text, TICK_CHARACTERS) for text in labels]
    return style.named_axis(title, texts, tickangle=-90, fixedrange=True, **more)


def _cells(run: Run, view: LensView, names: list[str]) -> go.Heatmap:
    rows, columns = view.same.shape
    return go.Heatmap(
        z=np.ascontiguousarray(view.probabilities[:, :, 0]),
        zmin=0,
        zmax=1,
        colorscale=style.WEIGHTS,
        colorbar=style.colorbar(say("probability of the best token")),
        xgap=2,
        ygap=2,
        hovertext=[
            [_hover(run, view, names, row, column) for column in range(columns)]
            for row in range(rows)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )


def _best(run: Run, view: LensView) -> list[list[str]]:
    """The label of each cell's best token."""
    return [[run.candidate_labels[int(token)] for token in row] for row in view.ids[:, :, 0]]


def _in_black(view: LensView) -> NDArray[np.bool_]:
    return view.probabilities[:, :, 0] <= DARK_TYPE_UP_TO


def _texts(run: Run, view: LensView) -> go.Scatter:
    """The best tokens, black or white, whichever is read better on their cells."""
    rows, columns = np.indices(view.same.shape).reshape(2, -1)
    return go.Scatter(
        x=columns,
        y=rows + 0.06,
        mode="text",
        text=[style.fitted(label, CELL_PX - 8)[0] for row in _best(run, view) for label in row],
        textfont={
            "size": style.FONT_SIZE,
            "color": ["#000000" if black else "#ffffff" for black in _in_black(view).ravel()],
        },
        hoverinfo="skip",
        showlegend=False,
    )


def _hover(run: Run, view: LensView, names: list[str], row: int, column: int) -> str:
    """The cell's best tokens with their probabilities, and what came next."""
    best = zip(view.ids[row, column], view.probabilities[row, column], strict=True)
    labels = run.candidate_labels
    lines = [f"{style.hover(labels[int(token)])} {numeral(share, '.4f')}" for token, share in best]
    read, follows = view.read[column], view.follows[column]
    head = say("{layer}, having read {token}:", layer=names[row], token=style.hover(read))
    if run.config.family != "encoder" and follows is not None:
        lines.append(say("came next: {follows}", follows=style.hover(follows)))
    lines.append(
        say("the model's own answer stands from “{layer}” on", layer=names[view.settled[column]])
    )
    return "<br>".join([head, *lines])


def _underlines(view: LensView) -> list[dict[str, Any]]:
    """Two paths, in the colours of the type."""
    black = _in_black(view)
    return [
        {"type": "path", "path": "".join(path), "line": {"color": colour, "width": 2.5}}
        for colour, where in (("#000000", black), ("#ffffff", ~black))
        if (
            path := [
                f"M{column - 0.36:.2f},{row - 0.36:.2f}L{column + 0.36:.2f},{row - 0.36:.2f}"
                for row, column in np.argwhere(view.same & where).tolist()
            ]
        )
    ]
