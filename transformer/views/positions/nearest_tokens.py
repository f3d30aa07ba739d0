"""Nearest tokens: whose row of the embedding table points where the chosen token's does."""

from __future__ import annotations

from typing import Annotated

import plotly.graph_objects as go

from transformer.analysis.model_queries import ModelQueries
from transformer.analysis.nearest_tokens import NearestTokens
from transformer.analysis.nearest_tokens import nearest_tokens as nearest_of
from transformer.messages import mark, numeral, say
from transformer.runs.run import Run
from transformer.views.declaration import Answer, view
from transformer.views.drawing import style
from transformer.views.parameters import Int


def nearest_tokens(run: Run, nearest: NearestTokens) -> go.Figure:
    """Bars, one per token, as long as its cosine: the chosen token's own, then the nearest."""
    names = [f"<b>{style.label(nearest.label)}</b>", *map(style.label, nearest.labels)]
    cosines = [1.0, *nearest.cosines]
    colours = [style.LIGHT.muted, *[style.LIGHT.accent] * len(nearest.labels)]
    bars = go.Bar(
        x=cosines, y=list(range(len(names))), orientation="h",
        text=[numeral(cosine, ".2f") for cosine in cosines], textposition="outside",
        cliponaxis=False, hoverinfo="skip", marker={"color": colours},
    )  # fmt: skip
    return style.figure(
        bars,
        "Nearest tokens",
        xaxis=style.axis(say("cosine"), range=[min(0.0, *cosines), 1.1]),
        yaxis=style.named_axis("", names, range=[len(names) - 0.4, -0.6]),
        height=140 + 32 * len(names),
    )


@view(
    tab="Positions",
    order=340,
    folded=True,
    title=mark("Nearest tokens"),
    help=mark(
        "The tokens whose embeddings point most nearly in the direction of the chosen token's, "
        "each with the cosine. Choose another token in the text."
    ),
    figure=nearest_tokens,
)
def answer_nearest_tokens(
    models: ModelQueries,
    item: Run,
    *,
    position: Annotated[int | None, Int(title="Token", use="selection")] = None,
) -> Answer:
    """The nearest tokens and their cosines. position: that of a token of the text; None: the last
    that was given."""
    place = item.n_prompt - 1 if position is None else position
    nearest = nearest_of(models.model(item.model), item, place)
    return {
        "figure": nearest_tokens(item, nearest),
        "position": nearest.position,
        "labels": list(nearest.labels),
        "cosines": list(nearest.cosines),
    }
