"""Mask one token of an encoder's text and compare the network's guesses."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from transformer.analysis.text_before import TextBefore, altered, check_made_by
from transformer.checks import check_whole
from transformer.inference.fill import check_fills
from transformer.inference.loaded import LoadedModel
from transformer.runs.run import Run
from transformer.tokenizer import around

N_BEST, N_FROM_LEFT = 8, 3


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskedToken:
    """Predictions for the position of one token.

    ids, labels: the N_BEST likeliest tokens with it masked, the likeliest first; those of the
    N_FROM_LEFT likeliest from the left alone that are not among them; and the token itself, if it
    is among neither and the text does not hide it. probabilities: from the whole text; from_left:
    with the text to the right of the position cut off.
    """

    position: int
    token: int
    label: str
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    probabilities: tuple[float, ...]
    from_left: tuple[float, ...]


@torch.no_grad()
def masked_token(model: LoadedModel, run: Run, position: int) -> MaskedToken:
    """Predict the token at `position` of the run's ids with it masked and with the run's
    interventions: from the whole text, and from the text to its left.

    Raises ValueError for another family, for a tokenizer without a mask token, and for a position
    that the run does not have.
    """
    network, mask = check_fills(model)
    check_made_by(model, run)
    position = check_whole("position", position, 0, len(run.ids) - 1)
    whole = [*run.ids[:position], mask, *run.ids[position + 1 :]]
    end = _end(model, run, position)
    cut = [*whole[: position + 1], *end]
    types = tuple(run.request.token_type_ids)
    types_of_cut = (*types[: position + 1], *types[len(types) - len(end) :])
    hooks = altered(model, run)
    both, from_left = (
        TextBefore(network, (), tuple(ids), position, kinds).log_probabilities(hooks)[0].exp().cpu()
        for ids, kinds in ((whole, types), (cut, types_of_cut))
    )
    ids = both.topk(min(N_BEST, len(both))).indices.tolist()
    left_best = from_left.topk(min(N_FROM_LEFT, len(both))).indices.tolist()
    ids += [index for index in left_best if index not in ids]
    ids += [] if run.ids[position] in (*ids, mask) else [run.ids[position]]
    return MaskedToken(
        position=position,
        token=run.ids[position],
        label=run.labels[position],
        ids=tuple(ids),
        labels=tuple(model.tokenizer.labels(ids)),
        probabilities=tuple(both[ids].tolist()),
        from_left=tuple(from_left[ids].tolist()),
    )


def _end(model: LoadedModel, run: Run, position: int) -> list[int]:
    """The tokens that the tokenizer appends to every text, if they follow the position."""
    _, behind = around(model.tokenizer)
    stands = bool(behind) and list(run.ids[-len(behind) :]) == behind
    return behind if stands and position < len(run.ids) - len(behind) else []
