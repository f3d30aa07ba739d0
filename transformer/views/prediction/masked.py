"""A masked token: what an encoder alone was trained to guess."""

from __future__ import annotations

from typing import Annotated

import plotly.graph_objects as go

from transformer.analysis.masked_token import MaskedToken, masked_token
from transformer.analysis.model_queries import ModelQueries
from transformer.messages import mark, say
from transformer.runs.run import Run
from transformer.views.declaration import Answer, view
from transformer.views.drawing import style
from transformer.views.drawing.bars import Series, paired_bars
from transformer.views.parameters import Int


def masked(guesses: MaskedToken) -> go.Figure:
    """Candidates for a masked token, from both sides and from the left alone; x: probability.

    The text's own token has an arrow before its label.
    """
    return paired_bars(
        f"What stands at place {guesses.position}?",
        f"{style.label(guesses.label)} is masked: the network with and without the right side",
        guesses.labels,
        (
            Series(say("both sides"), guesses.probabilities, style.LIGHT.accent),
            Series(say("the left side alone"), guesses.from_left, style.LIGHT.muted, hatched=True),
        ),
        y_title=mark("candidate token"),
        ids=guesses.ids,
        here=guesses.token,
        meta={"position": guesses.position, "ids": list(guesses.ids)},
    )  # fmt: skip


@view(
    tab="Prediction",
    order=410,
    title="A masked token",
    help="The likeliest tokens for a masked place, from both sides and from the left alone.",
    figure=masked,
)
def answer_masked(
    models: ModelQueries,
    item: Run,
    *,
    position: Annotated[int | None, Int(title="Place", use="selection")] = None,
) -> Answer:
    """Predictions for one masked token; figure is None if the tokenizer has no mask token."""
    fills = item.config.family == "encoder" and item.config.head == "tokens"
    if not fills or models.model(item.model).tokenizer.mask_id is None:
        return {"figure": None}
    chosen = models.model(item.model).last_read(item) if position is None else position
    guesses = models.ask(masked_token, item, position=chosen)
    return {
        "figure": masked(guesses),
        "position": chosen,
        "label": guesses.label,
        "labels": list(guesses.labels),
        "probabilities": list(guesses.probabilities),
        "from_left": list(guesses.from_left),
    }
