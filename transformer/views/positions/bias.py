"""Relative positions: what each head adds to a score for the distance of its two tokens."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.messages import mark, numeral, say
from transformer.model.positions import POSITIONS
from transformer.runs.head_data import Head, HeadView, SiteLike, head_view
from transformer.runs.run import Run
from transformer.views.declaration import Answer, view
from transformer.views.drawing import style
from transformer.views.drawing.matrix import cell_hover, matrix_figure
from transformer.views.parameters import HEAD, SITE


def _parts(run: Run, site: SiteLike, head: Head) -> tuple[HeadView, dict[str, NDArray[np.float32]]]:
    """A head, and its scores before the bias, the bias, and the scores after it: (Tq, Tk) each."""
    view = head_view(run, site, head)
    record = run.trace[view.site]
    if not run.config.biases_scores or record.q is None or record.k is None:
        raise ValueError(f"{run.model} adds no bias to its scores")
    plain = record.q @ record.k.transpose(-2, -1) / run.config.score_size**0.5
    heads = slice(None) if head == "mean" else [view.head]
    before = plain[0, heads].mean(dim=0).cpu().numpy()
    return view, {"before": before, "bias": view.scores - before, "after": view.scores}


def score_bias(
    run: Run, site: SiteLike = "decoder.0.self", head: Head = 0, part: str = "bias"
) -> go.Figure:
    """Query by key: what a head adds to each score. part: "before" for the scores without it,
    "after" for those with it."""
    view, parts = _parts(run, site, head)
    ending = f"<br>{say('score')} %{{customdata:.4f}}<extra></extra>"
    hover = cell_hover(view.query_labels, view.key_labels, ending, parts[part])
    cells = style.signed_cells(parts[part], hover.pop("hovertemplate"), **hover)
    return matrix_figure(
        cells,
        f"Scores of layer {view.site.layer}, head {view.head}: {part}",
        "green: above 0; purple: below 0",
        view.query_labels,
        view.key_labels,
        meta={"site": str(view.site), "head": view.head},
    )


@view(
    tab=mark("Positions"),
    order=330,
    title=mark("Positions"),
    help="What each head adds to its scores for the distance of the two tokens.",
    figure=score_bias,
)
def answer_bias(
    item: Run, *, site: Annotated[str, SITE] = "decoder.0.self", head: Annotated[Head, HEAD] = 0
) -> Answer:
    """One head's scores before the bias, the bias, and the scores after it."""
    if not item.config.biases_scores:
        return {"says": ""}
    does = POSITIONS[item.config.positions]
    figures = {part: score_bias(item, site, head, part) for part in ("before", "bias", "after")}
    size = item.config.score_size
    product = "q·k" if size == 1 else f"q·k / √{numeral(size, 'g')}"
    return {"says": say(does.does) if does.is_bias else "", "product": product, **figures}
