"""One token of a text hidden from an encoder, and what the network says stands there."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from transformer.inference.loaded import LoadedModel
from transformer.messages import say
from transformer.model.transformer import EncoderOnly
from transformer.runs.checks import is_whole
from transformer.runs.run import Run

N_BEST = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskedToken:
    """What is said of the place of one token.

    ids, labels: the likeliest tokens with it masked, the likeliest first, and the token itself
    where it is not among them. probabilities: theirs, and unmasked: theirs where it can be read.
    """

    place: int
    token: int
    label: str
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    probabilities: tuple[float, ...]
    unmasked: tuple[float, ...]


@torch.inference_mode()
def masked_token(model: LoadedModel, run: Run, place: int) -> MaskedToken:
    """What an encoder says of the token at `place` of the run's ids, masked and as it stands.

    Raises ValueError for another family, for a tokenizer without a token that masks, and for a
    place that the run does not have.
    """
    mask, network = model.tokenizer.mask_id, model.network
    if not isinstance(network, EncoderOnly) or mask is None:
        raise ValueError(
            say(
                "only an encoder alone whose tokenizer has a mask token guesses a masked token; "
                "{name} is {family}",
                name=model.name,
                family=model.config.family,
            )
        )
    if not is_whole(place) or not 0 <= place < len(run.ids):
        raise ValueError(
            say(
                "place must be a whole number from 0 to {last}; got {got}",
                last=len(run.ids) - 1,
                got=repr(place),
            )
        )
    rows = torch.tensor([run.ids, run.ids], device=model.device)
    rows[0, place] = mask
    masked, unmasked = network(rows)[:, place].float().softmax(dim=-1).cpu()
    ids = masked.topk(min(N_BEST, len(masked))).indices.tolist()
    ids += [] if run.ids[place] in ids else [run.ids[place]]
    return MaskedToken(
        place=place,
        token=run.ids[place],
        label=run.labels[place],
        ids=tuple(ids),
        labels=tuple(model.tokenizer.labels(ids)),
        probabilities=tuple(masked[ids].tolist()),
        unmasked=tuple(unmasked[ids].tolist()),
    )
