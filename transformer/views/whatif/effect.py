"""The effect of the changes: the next token and the text, by the intact and the altered network."""

from __future__ import annotations

from collections.abc import Sequence

from transformer.analysis.ablation import intact_ids, next_token
from transformer.analysis.model_queries import ModelQueries
from transformer.messages import mark
from transformer.runs.run import Run
from transformer.views.declaration import Answer, Picture, View
from transformer.views.parameters import POSITION, Bool
from transformer.views.whatif.ablation import predicted


def answer_next_token(models: ModelQueries, item: Run, *, position: int) -> Answer:
    """Predictions of the intact and the altered network at `position`, after the run's text."""
    found = models.ask(next_token, item, position=position)
    labels = _labels(models, item, found.ids)
    return {
        "figure": predicted(found, labels, found.target),
        "label": labels[found.ids.index(found.target)],
        "intact": found.intact.tolist(),
        "altered": found.intervened.tolist(),
        "labels": labels,
        "here": found.ids.index(found.target),
    }


def answer_intact_text(models: ModelQueries, item: Run, *, forced: bool = True) -> Answer:
    """The intact network's run of the same request, and where the two texts diverge.

    forced False: without the tokens that were forced either.
    """
    ids = models.ask(intact_ids, item, forced=forced)
    same = next(
        (at for at, (a, b) in enumerate(zip(ids, item.ids, strict=False)) if a != b),
        min(len(ids), len(item.ids)),
    )
    return {
        "labels": _labels(models, item, ids),
        "n_prompt": item.n_prompt,
        "same": same,
        "equal": ids == item.ids,
    }


def _labels(models: ModelQueries, run: Run, ids: Sequence[int]) -> list[str]:
    return models.model(run.model).tokenizer.labels(ids)


VIEW = View(
    name="effect",
    tab=mark("What if?"),
    order=590,  # it appears with the first change; last, so that nothing moves under the pointer
    folded=True,
    title=mark("What do the changes do?"),
    help="What comes next after the same text, by the intact and by the altered network.",
    pictures=(
        Picture(
            name="next_token",
            title="Intact and altered",
            help=("What comes next after the same text, by the intact and by the altered network."),
            figure=predicted,
            answer=answer_next_token,
            network=True,
            parameters=(POSITION,),
        ),
        Picture(
            name="intact_text",
            answer=answer_intact_text,
            network=True,
            parameters=(Bool(name="forced", default=True, use="request"),),
        ),
    ),
)
