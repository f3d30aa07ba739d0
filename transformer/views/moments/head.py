"""One head of a recorded sentence, large: its weights, of which no scores were kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.messages import say
from transformer.views.attention.heatmap import rescale, weight_colours
from transformer.views.drawing.matrix import matrix_layout, reading_texts

SCALE = "sqrt"  # as the small pictures are coloured


def recorded_head(
    weights: NDArray[np.float32],
    labels: Sequence[str],
    layer: int,
    head: int,
    *,
    dark: bool = False,
) -> go.Figure:
    """A head of causal self-attention. weights: (T, T), of which what lies above the diagonal is
    masked and NaN in the figure; labels: of the T tokens."""
    allowed = np.tri(len(labels), dtype=bool)
    cells = go.Heatmap(
        z=np.where(allowed, rescale(weights, SCALE), np.float32(np.nan)),
        customdata=weights,
        text=reading_texts(labels, labels),
        hovertemplate=say("%{text}<br>weight %{customdata:.2f}") + "<extra></extra>",
        hoverongaps=False,
        **weight_colours(SCALE, dark=dark),
    )
    title = say("layer {layer}, head {head}", layer=layer, head=head)
    meta = {"layer": layer, "head": head}
    layout = matrix_layout(title, "", labels, labels, dark=dark, meta=meta)
    return go.Figure(data=[cells], layout=layout)
