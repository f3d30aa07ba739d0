"""What each part of the network adds to the logit of one token."""

from __future__ import annotations

from transformer.analysis.logit_contribution import logit_contribution
from transformer.analysis.model_queries import ModelQueries
from transformer.messages import mark
from transformer.runs.run import Run
from transformer.views.contribution.contribution import contribution, sentence
from transformer.views.declaration import Answer, Picture, View
from transformer.views.drawing.common import PLACE
from transformer.views.parameters import Int


def answer_contribution(
    models: ModelQueries, item: Run, *, place: int, target: int | None = None, dark: bool = False
) -> Answer:
    """The map of what each part adds, its sum beside the network's own logit, and a sentence."""
    found = models.ask(logit_contribution, item, place=place, target=target)
    label = models.model(item.model).tokenizer.label(found.target)
    figure = contribution(found, label)
    return {
        "figure": figure,
        "label": label,
        "logit": found.logit,
        "total": found.total,
        "limit": figure.layout.meta["limit"],
        "sentence": sentence(found),
        "heads": {kind: heads.tolist() for kind, heads in found.heads.items()},
        "feed_forward": found.feed_forward.tolist(),
        "biases": found.biases.tolist(),
        "others": dict(found.others),
    }


VIEW = View(
    name="contribution",
    tab=mark("What if?"),
    order=530,
    folded=True,
    title=mark("What did each part add to a token?"),
    help=mark(
        "How much each head and feed-forward adds to the logit of one token; all cells sum to it."
    ),
    pictures=(
        Picture(
            name="contribution",
            title=mark("Contribution to one logit"),
            help=mark("What each head and feed-forward adds to one logit, scales of norms held."),
            figure=contribution,
            answer=answer_contribution,
            network=True,
            parameters=(
                PLACE,
                Int(
                    name="target",
                    title=mark("Token"),
                    help=mark(
                        "The id of the token whose logit it is; without one, the one that "
                        "stands there."
                    ),
                    use="request",
                    optional=True,
                ),
            ),
        ),
    ),
)
