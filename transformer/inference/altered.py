"""Running a network with interventions: nothing of the past is kept between two tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from transformer.model.attention import KeyValueCache
from transformer.model.changes import Activity, Changes, changes_of
from transformer.model.interventions import Patch, check_all
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly

if TYPE_CHECKING:
    from transformer.inference.model import Model
    from transformer.inference.record import Prepared
    from transformer.inference.request import Request


class AlteredReader:
    """Reads one row with changes, all of it anew for each token.

    A change may let a place read the future, or stand for a mean over the text, so keys and values
    of the past cannot be kept.
    """

    cache: KeyValueCache | None = None

    def __init__(
        self,
        network: DecoderOnly | EncoderDecoder,
        row: list[int],
        source: Sequence[int] | None,
        changes: Changes,
    ) -> None:
        self.network, self.row, self.changes = network, row, changes
        if isinstance(network, EncoderDecoder):
            if not source:
                raise ValueError("an encoder-decoder needs a source of at least one token")
            self.source = torch.tensor([list(source)], device=network.device)
            self.memory = network.encode(self.source, changes=changes)

    def logits(self) -> Tensor:
        """(1, V), for the token after the row."""
        ids = torch.tensor(self.windows(), device=self.network.device)
        if isinstance(self.network, EncoderDecoder):
            read = self.network.decode(ids, self.memory, self.source, changes=self.changes)
        else:
            read = self.network(ids, changes=self.changes)
        return read[:, -1]

    def windows(self) -> list[list[int]]:
        """What of the row the network sees."""
        if isinstance(self.network, EncoderDecoder):
            return [self.row]
        return [self.row[-self.network.config.max_len :]]

    @property
    def full(self) -> bool:
        """Whether no further token fits."""
        slides = not isinstance(self.network, EncoderDecoder)
        return not slides and len(self.row) > self.network.config.max_len


def check_interventions(model: Model, request: Request, prepared: Prepared) -> None:
    """Raise ValueError for what the network, or another text of a patch, does not have."""
    check_all(request.interventions, model.config)
    for patch in request.interventions:
        if not isinstance(patch, Patch):
            continue
        source, ids = model.prepare(patch.text)
        read = source if patch.stack == "encoder" and source else ids
        if source and patch.stack == "decoder":
            read = [*prepared.ids, *request.taken]
        if len(ids) > model.config.max_len:
            raise ValueError(
                f"the other text of a patch is {len(ids)} tokens long; {model.name} reads at most "
                f"{model.config.max_len}"
            )
        if patch.positions and patch.positions[-1] >= len(read):
            raise ValueError(
                f"the other run has places from 0 to {len(read) - 1} there; got "
                f"{patch.positions[-1]}"
            )


def changes_for(model: Model, request: Request, prepared: Prepared) -> Changes | None:
    """What the network is to apply for this request; None for the intact network.

    Raises ValueError for what the network does not have.
    """
    texts = {i.text: None for i in request.interventions if isinstance(i, Patch)}
    decoded = [*prepared.ids, *request.taken]
    activity = {text: activity_of(model, text, decoded) for text in texts}
    return changes_of(request.interventions, model.config, activity)


@torch.inference_mode()
def activity_of(model: Model, text: str, decoded: Sequence[int]) -> Activity:
    """What the intact network does with another text.

    decoded: what the decoder behind an encoder reads; a network without one reads the text alone.
    """
    source, ids = model.prepare(text)
    activity = Activity()
    network = model.network
    if isinstance(network, EncoderDecoder):
        read = torch.tensor([source], device=network.device)
        target = torch.tensor([list(decoded)], device=network.device)
        network(read, target, changes=activity)
    else:
        assert isinstance(network, DecoderOnly | EncoderOnly)
        network(torch.tensor([ids], device=network.device), changes=activity)
    return activity
