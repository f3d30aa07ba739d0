"""What silencing does: what each head alone matters, and the next token before and after."""

from __future__ import annotations

import math
from collections.abc import Sequence

from transformer.analysis.ablation import HeadImportance
from transformer.analysis.laboratory import Laboratory
from transformer.messages import mark
from transformer.runs.memo import remembered
from transformer.runs.run import Run
from transformer.views.declaration import Answer, Picture, View
from transformer.views.drawing.common import KIND, OF_STACK
from transformer.views.parameters import Choice, Flag, Whole
from transformer.views.silence.importance import foreseen, largest_change
from transformer.views.silence.importance import importance as importance_figure


def answer_importance(
    lab: Laboratory,
    item: Run,
    *,
    place: int,
    stack: str,
    kind: str,
    by: str = "zero",
    dark: bool = False,
) -> Answer:
    """What each head of a kind of attention matters for one token: numbers, picture, a sentence."""
    key = ("importance", place, by)
    found = remembered(item, key, lambda: lab.importance(item, place, by))
    label = item.labels[place]
    figure = importance_figure(found, stack, kind, label, by=by, dark=dark)
    return {
        "figure": figure,
        "change": found.change[stack, kind].tolist(),
        "limit": largest_change(found),
        "label": label,
        "log_probability": found.log_probability,
        "most": _most(found),
    }


def _most(found: HeadImportance) -> Answer:
    """The head that matters most, with the token's probability before and after its silence."""
    site, head = found.most()
    change = float(found.change[site.stack, site.kind][site.layer, head])
    before, after = found.log_probability, found.log_probability + change
    return site._asdict() | {"head": head, "before": math.exp(before), "after": math.exp(after)}


def answer_next_token(lab: Laboratory, item: Run, *, place: int, dark: bool = False) -> Answer:
    """What the intact and the altered network say comes at `place`, after the run's own text."""
    found = lab.next_token(item, place)
    labels = _labels(lab, item, found.ids)
    return {
        "figure": foreseen(found, labels, item.ids[place], dark=dark),
        "label": item.labels[place],
        "intact": found.intact.tolist(),
        "altered": found.intervened.tolist(),
        "labels": labels,
        "here": found.ids.index(item.ids[place]),
    }


def answer_intact_text(lab: Laboratory, item: Run, *, forced: bool = True) -> Answer:
    """What the intact network makes of the same request, and where the two texts part.

    forced False: without the tokens that were forced either.
    """
    ids = lab.intact_ids(item, forced)
    same = next(
        (at for at, (a, b) in enumerate(zip(ids, item.ids, strict=False)) if a != b),
        min(len(ids), len(item.ids)),
    )
    return {
        "labels": _labels(lab, item, ids),
        "n_prompt": item.n_prompt,
        "same": same,
        "equal": ids == item.ids,
    }


def _labels(lab: Laboratory, run: Run, ids: Sequence[int]) -> list[str]:
    return lab.model(run.model).tokenizer.labels(ids)


_PLACE = Whole(name="place", use="selection", default=1)
VIEW = View(
    name="silence",
    tab=mark("What if?"),
    title=mark("Silence heads"),
    help=mark(
        "How much each head alone matters for one token, and what comes next with some silenced."
    ),
    pictures=(
        Picture(
            name="importance",
            title=mark("How much each head matters"),
            help=mark(
                "The change of one token's log-probability when each head alone is silenced."
            ),
            figure=importance_figure,
            answer=answer_importance,
            network=True,
            parameters=(
                _PLACE,
                OF_STACK,
                KIND,
                Choice(
                    name="by",
                    title=mark("Silenced by"),
                    options={"zero": mark("zero"), "mean": mark("its mean")},
                    default="zero",
                    use="request",
                ),
            ),
        ),
        Picture(
            name="next_token",
            title=mark("Intact and altered"),
            help=mark(
                "What comes next after the same text, by the intact and by the altered network."
            ),
            figure=foreseen,
            answer=answer_next_token,
            network=True,
            parameters=(_PLACE,),
        ),
        Picture(
            name="intact_text",
            answer=answer_intact_text,
            network=True,
            parameters=(Flag(name="forced", default=True, use="request"),),
        ),
    ),
)
