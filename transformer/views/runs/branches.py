"""Branches: the tokens that a step could have taken, and the runs that are still kept."""

from __future__ import annotations

from typing import Annotated

from transformer.messages import mark
from transformer.runs.run import Run
from transformer.views.declaration import Answer, View, picture
from transformer.views.parameters import Int
from transformer.views.prediction.prediction import N_SHOWN, step_of


def answer_choices(item: Run, *, step: Annotated[int, Int(default=0, use="selection")]) -> Answer:
    """The likeliest tokens of one step and the taken one: ids, labels, network's probabilities."""
    choice = step_of(item, step)
    candidates = list(choice.candidates[:N_SHOWN])
    if choice.chosen not in candidates:
        candidates.append(choice.chosen)
    return {
        "ids": [candidate.id for candidate in candidates],
        "labels": [item.candidate_labels[candidate.id] for candidate in candidates],
        "probabilities": [candidate.probability for candidate in candidates],
        "taken": choice.token,
        "searched": item.request.beams > 1,
        "sampled": item.request.sampling is not None,
    }


VIEW = View(
    name="branches",
    tab=mark("What if?"),
    order=510,
    folded=True,
    title=mark("What if another token had been taken?"),
    help="What a step could have taken, and the branches that were tried, as a tree.",
    pictures=(picture(answer_choices),),
)
