"""What an encoder says of a token that is hidden from it, as bars."""

from __future__ import annotations

import plotly.graph_objects as go

from transformer.analysis.masked_token import MaskedToken
from transformer.messages import say
from transformer.views.drawing import style
from transformer.views.drawing.bars import bars, paired_layout, percent, token_ticks


def masked(found: MaskedToken, *, dark: bool = False) -> go.Figure:
    """Candidates for a masked token, from both sides and from the left alone; x: probability.

    The token that stands in the text has an arrow before its label.
    """
    colours = style.theme(dark)
    layout = paired_layout(
        say("What stands at place {place}?", place=found.place),
        say("{label} is masked: what the network says with the right side and without it",
            label=style.label(found.label)),
        token_ticks(found.labels, found.ids, found.token),
        max(*found.probabilities, *found.from_left),
        y_title=say("candidate token"),
        dark=dark,
        meta={"place": found.place, "labels": list(found.labels), "ids": list(found.ids)},
    )  # fmt: skip
    names = [style.hover(text) for text in found.labels]
    pairs = [
        bars(
            name,
            numbers,
            list(map(percent, numbers)),
            colour,
            customdata=names,
            hovertemplate="%{customdata}: %{x:.4%}<extra></extra>",
            hatched=hatched,
        )
        for name, numbers, colour, hatched in (
            (say("both sides"), found.probabilities, colours.accent, False),
            (say("the left side alone"), found.from_left, colours.muted, True),
        )
    ]
    return go.Figure(data=pairs, layout=layout)
