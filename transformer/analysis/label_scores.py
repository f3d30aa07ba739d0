"""A classifier's scores for its labels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.analysis.logit_lens import streams_of
from transformer.inference.loaded import LoadedModel
from transformer.interventions.descriptions import Break
from transformer.interventions.hooks import hooks_of
from transformer.model.heads import HEADS, LABEL_PROBABILITIES
from transformer.model.hooks import ForwardContext
from transformer.runs.run import Run


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelScores:
    """scores, probabilities: (labels,) of the whole text, or (T, labels) of each token. The
    probabilities of a regression are its scores."""

    labels: tuple[str, ...]
    scores: Tensor
    probabilities: Tensor
    are_probabilities: bool


@torch.no_grad()
def label_scores(model: LoadedModel, run: Run) -> LabelScores:
    """The scores of a run's text, or of its tokens, with the run's breaks of the last norm.

    Raises ValueError for a model without a classifier, and for a run of another model.
    """
    config, network = model.config, model.network
    if not HEADS[config.head].labelled:
        raise ValueError(f"{model.name} has no head that scores labels")
    last = streams_of(model, run, network.last_stack.name)[-1].to(network.device, network.dtype)
    breaks = [change for change in run.request.interventions if isinstance(change, Break)]
    context = ForwardContext(hooks=hooks_of(breaks, config))
    scores = network.project(network.last_stack.end(last, context))[0].float().cpu()
    return LabelScores(
        labels=config.labels,
        scores=scores,
        probabilities=LABEL_PROBABILITIES[config.label_probabilities](scores),
        are_probabilities=config.label_probabilities != "none",
    )
