"""One head's attention, large, as a heatmap of query x key.

What the figure carries, besides the cells:

- `layout.meta`: query_labels and key_labels as plain, unescaped text, and site, stack, layer, kind,
  head, stage, scale, range, row. It is data for a page's own script, which must write it with
  `textContent`. Plotly itself never shows it.
- `customdata` (Tq, Tk, 3) float32: score, weight, allowed (0 or 1) of each cell, whatever `stage`
  and `scale` draw. `hover=False` leaves it out, for a page that has the numbers already.
- A hover label: numbers, positions, and the tokens, escaped, as the cells' `text` up to TEXT_LIMIT
  tokens (a text for each of 512 x 512 cells would be ten times the rest).

The page gets this figure without the numbers, once for all looks: see `head_frame`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, get_args

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.checks import check_choice
from transformer.messages import capital, mark, numeral, say
from transformer.network_words import attention_name, head_name
from transformer.runs.batch import Batch
from transformer.runs.drawing import ColourRange, Scale
from transformer.runs.head_data import (
    STAGES,
    Head,
    HeadView,
    SiteLike,
    head_view,
)
from transformer.runs.run import Run
from transformer.views.declaration import Answer
from transformer.views.drawing import style
from transformer.views.drawing.matrix import (
    cell_hover,
    hover_template,
    matrix_figure,
    matrix_layout,
)
from transformer.views.parameters import HEAD, ROW, SITE, Bool, Choice

SCALES: tuple[Scale, ...] = get_args(Scale)
RANGES: tuple[ColourRange, ...] = get_args(ColourRange)
LOG_FLOOR = 1e-4  # weights below this share the darkest colour of the log scale

STAGE = Choice(
    title=mark("Stage"),
    options={"scores": mark("scores"), "masked": mark("masked scores"), "weights": mark("weights")},
    default="weights",
    link="stage",
)
SCALE = Choice(
    title=mark("Colour"),
    options={
        "linear": mark("even"),
        "sqrt": mark("boost small weights"),
        "log": mark("boost more (log)"),
    },
    default="sqrt",
    link="scale",
)
RANGE = Choice(
    title=mark("Range"),
    options={"fixed": mark("0 to 1"), "own": mark("to this picture's largest")},
    default="fixed",
    link="range",
)
NUMBERS = Bool(use="request")
MIN_SAVING = 2  # queries and keys are sent in place of so many times as many scores, or more

_STAGE_TITLES = {
    "scores": "{scores}, before the mask",
    "masked": "{scores}, masked",
    "weights": "weights, each row sums to 1",
}


def attention_heatmap(
    run: Run | Batch,
    site: SiteLike,
    head: Head,
    *,
    stage: str = "weights",
    scale: str = "linear",
    range_: str = "fixed",
    row: int = 0,
    hover: bool = True,
    most: int | None = None,
) -> go.Figure:
    """One head (or "mean") of one sentence; row: which sentence of a Batch.

    stage: "scores" (before the mask, every cell), "masked" (the same, forbidden cells left out) or
    "weights" (after the softmax; 0 for a head that is switched off, as its title then says).
    Forbidden cells are NaN: the page's background shows through, hatched.
    scale: how weights become colours, "linear", "sqrt" or "log" (from LOG_FLOOR up); `z` is the
    number that is coloured, `customdata` keeps the weight itself.
    range_: the weights that the colours span: "fixed", from 0 to 1, so that heads can be compared,
    or "own", from 0 to this head's own largest weight.
    most: cells on a side; for a longer text, each cell is the largest of a square of them.
    Raises ValueError, listing what is allowed, for an unknown site, head, stage, scale, range_ or
    row.
    """
    check_choice("stage", stage, STAGES)
    check_choice("scale", scale, SCALES)
    check_choice("range_", range_, RANGES)
    view = head_view(run, site, head, row)
    labels = view.query_labels, view.key_labels
    drawn = view.allowed | (stage == "scores")
    side = 1 if most is None else -(-max(drawn.shape) // most)
    scores = _largest(np.where(drawn, view.scores, -np.inf), side)
    weights, allowed = _largest(view.weights, side), _largest(view.allowed, side)
    options: dict[str, Any] = {"hoverinfo": "none"}
    if hover:
        raw = scores if side > 1 else view.scores
        numbers = np.stack([raw, weights, allowed.astype(np.float32)], axis=-1)
        options = cell_hover(*labels, _numbers(), numbers)
    if side > 1:  # positions stay those of tokens
        options |= dict.fromkeys(("x0", "y0"), (side - 1) / 2) | dict.fromkeys(("dx", "dy"), side)
    if stage == "weights":
        cells = weight_cells(weights, allowed, scale, range_, **options)
    else:  # the same bound before and after the mask, so that switching changes no colour
        cells = go.Heatmap(
            z=np.where(np.isfinite(scores), scores, np.float32(np.nan)),
            hoverongaps=True,
            **score_colours(style.bound_of(view.scores)),
            **options,
        )
    of = {"site": str(view.site), **view.site._asdict(), "head": view.head}
    words = "scores q·k/√d" if run.config.scores_from_heads else "scores"
    subtitle = _STAGE_TITLES[stage].format(scores=words)
    if side > 1:
        subtitle += f"; each cell is the largest of {side} × {side}"
    return matrix_figure(
        cells,
        head_title(view),
        subtitle,
        *labels,
        meta=of | {"stage": stage, "scale": scale, "row": row, "range": range_},
    )


def _largest(cells: NDArray[Any], side: int) -> NDArray[Any]:
    """(Tq, Tk) -> the largest of each square of side x side cells."""
    for along in (0, 1) if side > 1 else ():
        starts = np.arange(0, cells.shape[along], side)
        cells = np.maximum.reduceat(cells, starts, axis=along)
    return cells


COMBINED = "<br>%{customdata:.4f}<extra></extra>"  # of a hover label over many heads


def head_frame(
    query_labels: Sequence[str], key_labels: Sequence[str], *, combined: bool = False
) -> dict[str, Any]:
    """The figure of any head over these tokens, or of many combined, without numbers and title.

    The page fills in z, the range of the colours, customdata and text (web/heatmap.js).
    `layout.meta.looks`: the colours of scores and, by scale, those of weights.
    """
    ending = COMBINED if combined else _numbers()
    cells = {
        "type": "heatmap",
        "hoverongaps": True,
        "hovertemplate": hover_template(query_labels, key_labels, ending),
    }
    looks = {"scores": score_colours(1.0)} | {scale: weight_colours(scale) for scale in SCALES}
    layout = matrix_layout(query_labels, key_labels, {"looks": looks})
    return {"data": [cells], "layout": layout}


def _numbers() -> str:
    weight, score = "%{customdata[1]:.4f}", "%{customdata[0]:.3f}"
    return f"<br>{say('weight')} {weight}<br>{say('score')} {score}<extra></extra>"


def weight_cells(
    weights: NDArray[np.float32],
    allowed: NDArray[np.bool_],
    scale: str = "linear",
    range_: str = "fixed",
    **more: Any,
) -> go.Heatmap:
    """The cells of a matrix of weights, NaN where the mask forbids; `more` adds to them."""
    largest = float(weights.max(initial=0.0, where=allowed)) if range_ == "own" else 1.0
    return go.Heatmap(
        z=np.where(allowed, rescale(weights, scale), np.float32(np.nan)),
        **{"hoverongaps": True} | weight_colours(scale, largest) | more,
    )


def rescale(weights: NDArray[np.float32], scale: str) -> NDArray[np.float32]:
    """Weights in [0, 1] to colour values in [0, 1], 0 and 1 kept in place."""
    if scale == "sqrt":
        return np.sqrt(weights)
    if scale == "log":
        decades = -np.log10(LOG_FLOOR)
        return (1 + np.log10(np.maximum(weights, LOG_FLOOR)) / decades).astype(np.float32)
    return weights


def score_colours(bound: float) -> dict[str, Any]:
    """Colours and colour bar of scores from -bound to bound."""
    return style.signed(bound) | {"colorbar": style.colorbar(say("score"))}


def weight_colours(scale: str, largest: float = 1.0) -> dict[str, Any]:
    """Colours and colour bar of weights from 0 to the largest, numbers on the bar as they are."""
    top = largest if largest > LOG_FLOOR else 1.0
    bar = style.colorbar(say("weight"), **_ticks(scale))
    zmax = 1 if top == 1 else _one(top, scale)
    return {"colorscale": style.WEIGHTS, "zmin": 0, "zmax": zmax, "colorbar": bar}


def _ticks(scale: str) -> dict[str, Any]:
    """Weights as the labels of rescaled colours; Plotly chooses those of a linear scale."""
    if scale == "linear":
        return {}
    weights = [1e-4, 1e-3, 1e-2, 0.1, 1] if scale == "log" else [0, 0.01, 0.05, 0.1, 0.2, 0.5, 1]
    text = [numeral(weight, "g") for weight in weights]
    if scale == "log":
        text[0] = f"≤ {text[0]}"
    places = [round(_one(weight, scale), 4) for weight in weights]
    return {"tickmode": "array", "tickvals": places, "ticktext": text}


def _one(weight: float, scale: str) -> float:
    return float(rescale(np.asarray([weight], dtype=np.float32), scale)[0])


def head_title(view: HeadView) -> str:
    """ "Decoder self-attention, layer 5, head 0"."""
    site = view.site
    attention = attention_name(site.stack, site.kind)
    return say(
        "{attention}, layer {layer}, {head}",
        attention=capital(attention),
        layer=site.layer,
        head=head_name(view.head, view.is_off),
    )


def answer_heatmap(
    item: Run | Batch,
    *,
    site: Annotated[str, SITE],
    head: Annotated[Head, HEAD],
    stage: Annotated[str, STAGE],
    scale: Annotated[str, SCALE],
    range: Annotated[str, RANGE],
    row: Annotated[int, ROW],
    numbers: Annotated[bool, NUMBERS],
) -> Answer:
    """One head large: `attention_heatmap`; or its `head_frame` and its numbers, from which a page
    draws it at any stage and scale.

    numbers: the mask and the scores, or the queries and keys of which the scores are made, where
    these are many fewer; the weights follow from them, except for a head that is switched off.
    """
    if not numbers:
        figure = attention_heatmap(
            item, site, head, stage=stage, scale=scale, range_=range, row=row, hover=False
        )
        return {"figure": figure}
    view = head_view(item, site, head, row)
    frame = head_frame(view.query_labels, view.key_labels)
    answer, vectors = mask_answer(view.allowed) | {"figure": frame}, view.vectors
    if view.is_off:
        return answer | {"scores": view.scores, "weights": view.weights}
    if vectors is None or MIN_SAVING * sum(part.size for part in vectors) > view.allowed.size:
        return answer | {"scores": view.scores}
    return answer | dict(zip(("queries", "keys"), vectors, strict=True))


def mask_answer(allowed: NDArray[np.bool_]) -> Answer:
    """A mask, one bit per cell."""
    return {"shape": list(allowed.shape), "allowed": np.packbits(allowed)}
