"""Checkpoints: a language model at ten steps of its training, as they were recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.messages import mark, numeral, say
from transformer.views.attention.heatmap import weight_cells
from transformer.views.declaration import View
from transformer.views.drawing import style
from transformer.views.drawing.matrix import matrix_figure, reading_texts
from transformer.views.learn import curve, two_pictures
from transformer.views.parameters import Int

SCALE = "sqrt"  # as the small pictures are coloured
BEFORE = 0.5  # where step 0 stands: its logarithm has no place
LEAST = 0.1  # where the shares' axis ends, if all are less


def checkpoint_curves(
    training: tuple[Sequence[int], Sequence[float]],
    steps: Sequence[int],
    losses: Sequence[float],
    shares: Mapping[str, Sequence[float | None]],
    *,
    total: int,
    at: int,
) -> go.Figure:
    """Above: nats a token, of training text and, at the checkpoints, of held-out text;
    below: shares from 0 to 1 by their names. Steps are drawn by their logarithm.

    training: (steps, losses). losses: of held-out text. total: steps of the training; at: the one
    looked at.
    """
    colours = style.LIGHT
    lines = [
        curve(*training, say("training text"), colours.muted, mode="lines", width=1),
        curve(steps, losses, say("held-out text"), colours.text),
    ]
    below = [
        curve(steps, values, name, colour, dash=dash, share=True)
        for (name, values), colour, dash in zip(
            shares.items(), (colours.accent, colours.key, colours.text),
            ("solid", "dash", "dot"), strict=False,
        )
    ]  # fmt: skip
    for line in [*lines, *below]:
        line.x = [max(step, BEFORE) for step in line.x]
    largest = max((one or 0.0 for values in shares.values() for one in values), default=0.0)
    decades = [10**power for power in range(int(math.log10(total)) + 1)]
    return two_pictures(
        lines, below, title=say("Loss, and the best heads"), of=say("weight"), at=max(at, BEFORE),
        most=max(LEAST, 1.1 * largest), type="log", tickmode="array",
        range=[math.log10(0.8 * BEFORE), math.log10(1.15 * total)],
        tickvals=[BEFORE, *decades], ticktext=["0", *(numeral(one) for one in decades)],
    )  # fmt: skip


def recorded_head(
    weights: NDArray[np.float32],
    labels: Sequence[str],
    layer: int,
    head: int,
) -> go.Figure:
    """A head of causal self-attention. weights: (T, T), of which what lies above the diagonal is
    masked and NaN in the figure; labels: of the T tokens."""
    cells = weight_cells(
        weights,
        np.tri(len(labels), dtype=bool),
        SCALE,
        customdata=weights,
        text=reading_texts(labels, labels),
        hovertemplate=say("%{text}<br>weight %{customdata:.2f}") + "<extra></extra>",
        hoverongaps=False,
    )
    title = say("layer {layer}, head {head}", layer=layer, head=head)
    meta = {"layer": layer, "head": head}
    return matrix_figure(cells, title, "", labels, labels, meta=meta)


VIEW = View(
    name="checkpoints",
    tab=mark("Learn"),
    order=620,
    folded=True,
    title=mark("The story model through its training"),
    help=mark("Its loss, its heads, what it writes and what surprises it, at ten of its steps."),
    parameters=(
        Int(name="step", title=mark("Step"), optional=True),
        Int(name="sentence", title=mark("Sentence"), default=0),
        Int(name="layer", title=mark("Layer"), optional=True),
        Int(name="head", title=mark("Head"), optional=True),
    ),
    pictures=(),
    gets=("checkpoints",),
)
