"""What ablation does: how much each head alone matters."""

from __future__ import annotations

import math

from transformer.analysis.ablation import HeadImportance, head_importance
from transformer.analysis.model_queries import ModelQueries
from transformer.messages import mark
from transformer.runs.run import Run
from transformer.views.ablation.importance import importance as importance_figure
from transformer.views.declaration import Answer, Picture, View
from transformer.views.drawing.common import KIND, OF_STACK, POSITION
from transformer.views.parameters import Choice


def answer_importance(
    models: ModelQueries,
    item: Run,
    *,
    position: int,
    stack: str,
    kind: str,
    by: str = "zero",
) -> Answer:
    """What each head of a kind of attention matters for one token: numbers, picture, a sentence."""
    found = models.ask(head_importance, item, position=position, by=by)
    label = models.model(item.model).tokenizer.label(found.target)
    figure = importance_figure(found, stack, kind, label, by=by)
    return {
        "figure": figure,
        "change": found.change[stack, kind].tolist(),
        "limit": figure.layout.meta["limit"],
        "label": label,
        "log_probability": found.log_probability,
        "most": _most(found),
    }


def _most(found: HeadImportance) -> Answer:
    """The head that matters most, with the token's probability before and after its ablation."""
    site, head = found.most()
    change = float(found.change[site.stack, site.kind][site.layer, head])
    before, after = found.log_probability, found.log_probability + change
    return site._asdict() | {"head": head, "before": math.exp(before), "after": math.exp(after)}


VIEW = View(
    name="ablation",
    tab=mark("What if?"),
    order=520,
    part="altered",
    folded=True,
    title=mark("What if heads were switched off?"),
    help=mark(
        "How much each head alone matters for one token, and what comes next with some switched "
        "off."
    ),
    pictures=(
        Picture(
            name="importance",
            title=mark("How much each head matters"),
            help=mark(
                "The change of one token's log-probability when each head alone is switched off."
            ),
            figure=importance_figure,
            answer=answer_importance,
            network=True,
            parameters=(
                POSITION,
                OF_STACK,
                KIND,
                Choice(
                    name="by",
                    title=mark("Replaced by"),
                    options={"zero": mark("zero"), "mean": mark("its mean")},
                    default="zero",
                    use="request",
                ),
            ),
        ),
    ),
)
