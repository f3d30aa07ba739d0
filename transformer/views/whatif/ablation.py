"""Ablation: the importance of each head for one token."""

from __future__ import annotations

import math
from typing import Annotated

import plotly.graph_objects as go

from transformer.analysis.ablation import HeadImportance, head_importance
from transformer.analysis.model_queries import ModelQueries
from transformer.messages import mark, say
from transformer.network_words import attention_name
from transformer.runs.head_data import array
from transformer.runs.run import Run
from transformer.views.declaration import Answer, View, picture
from transformer.views.drawing import style
from transformer.views.drawing.matrix import head_layout
from transformer.views.parameters import KIND, STACK, Choice, Int

NUMBERS_UP_TO = 16  # layers across; more would not leave room for a number in each cell
_HOW = {"zero": "its output set to 0", "mean": "its output replaced by its mean"}


def importance(
    effects: HeadImportance,
    stack: str,
    kind: str,
    label: str,
    *,
    by: str = "zero",
) -> go.Figure:
    """The change of ln p of one token when each head alone is ablated: layers across, heads down.

    label: the token. by: how heads were ablated, "zero" or "mean". Purple: the token becomes less
    likely, so the head helped it; orange: likelier. Colours reach as far to both sides as the
    largest change of any kind of attention; `layout.meta` has row_labels, column_labels, limit.
    Raises ValueError, listing what there is, for an unknown kind of attention.
    """
    kinds = ", ".join(f"{a} {b}" for a, b in effects.change)
    if (stack, kind) not in effects.change:
        raise ValueError(f"no {stack} {kind}-attention was ablated; ablated: {kinds}")
    change = array(effects.change[stack, kind]).T
    limit = max(style.bound_of(array(each), 1e-6) for each in effects.change.values())
    title = f"Change of ln p when each head alone is switched off, {attention_name(stack, kind)}"
    subtitle = (
        f"token {effects.position}, {style.label(label)}: p = "
        f"{math.exp(effects.log_probability):.4f} with all heads; replaced by: {_HOW[by]}"
    )
    # decimals that show at least one digit of the largest change
    digits = min(4, max(2, 1 + math.ceil(-math.log10(limit))))
    cells = style.signed_cells(
        change,
        style.cell_hover(say("head"), say("layer"), say("change of ln p")),
        colorscale=style.EFFECTS,
        bound=limit,
        bar=say("change of ln p"),
        texttemplate=f"%{{z:+.{digits}f}}" if change.shape[1] <= NUMBERS_UP_TO else None,
        textfont={"size": style.FONT_SIZE},
    )
    layout = head_layout(change.shape, {"limit": limit})
    return style.figure(cells, title, subtitle, **layout)


_BY = Choice(
    title="Replaced by", options={"zero": mark("zero"), "mean": mark("its mean")}, use="request"
)


def answer_importance(
    models: ModelQueries,
    item: Run,
    *,
    position: Annotated[int, Int(use="selection")] = 1,
    stack: Annotated[str, STACK],
    kind: Annotated[str, KIND],
    by: Annotated[str, _BY] = "zero",
) -> Answer:
    """The importance of each head of a kind of attention for one token: numbers, picture, a
    sentence."""
    effects = models.ask(head_importance, item, position=position, by=by)
    label = models.model(item.model).tokenizer.label(effects.target)
    figure = importance(effects, stack, kind, label, by=by)
    site, head = effects.most()
    before = effects.log_probability
    after = before + float(effects.change[site.stack, site.kind][site.layer, head])
    chances = {"before": math.exp(before), "after": math.exp(after)}  # of the token
    return {
        "figure": figure,
        "change": effects.change[stack, kind].tolist(),
        "limit": figure.layout.meta["limit"],
        "label": label,
        "log_probability": effects.log_probability,
        "most": site._asdict() | {"head": head} | chances,
    }


VIEW = View(
    name="ablation",
    tab=mark("What if?"),
    order=520,
    folded=True,
    title=mark("What if heads were switched off?"),
    help="How much each head alone matters for one token.",
    pictures=(
        picture(
            answer_importance,
            figure=importance,
            title="How much each head matters",
            help="The change of one token's log-probability when each head alone is switched off.",
        ),
    ),
)
