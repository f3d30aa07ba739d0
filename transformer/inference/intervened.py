"""Running a network with interventions: nothing of the past is kept between two tokens."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from transformer.checks import InvalidRequest
from transformer.inference.loaded import LoadedModel, Prepared
from transformer.inference.logit_sources import LogitSource
from transformer.interventions.descriptions import Patch, check_all
from transformer.interventions.hooks import ActivationCache, hooks_of
from transformer.model.hooks import Hook
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly
from transformer.runs.request import Request


class IntervenedSource(LogitSource):
    """Logits of one row read through hooks that alter, all of it anew for each token.

    An intervention may let a place read the future, or stand for a mean over the text, so keys and
    values of the past cannot be kept.
    """

    def __init__(
        self,
        network: DecoderOnly | EncoderDecoder,
        row: list[int],
        source: Sequence[int] | None,
        hooks: Sequence[Hook],
    ) -> None:
        super().__init__(network, [row])
        self.network, self.row, self.hooks = network, row, hooks
        if isinstance(network, EncoderDecoder):
            if not source:
                raise ValueError("an encoder-decoder needs a source of at least one token")
            self.source = torch.tensor([list(source)], device=network.device)
            self.memory = network.encode(self.source, hooks=hooks)

    def logits(self) -> Tensor:
        """(1, V), for the token after the row."""
        (start,) = self.starts()
        ids = torch.tensor([self.row[start:]], device=self.network.device)
        if isinstance(self.network, EncoderDecoder):
            read = self.network.decode(ids, self.memory, self.source, hooks=self.hooks)
        else:
            read = self.network(ids, hooks=self.hooks)
        return read[:, -1]


def check_interventions(model: LoadedModel, request: Request, prepared: Prepared) -> None:
    """Raise ValueError for a part that the network, or a patch's other text, does not have."""
    check_all(request.interventions, model.config)
    for patch in request.interventions:
        if not isinstance(patch, Patch):
            continue
        source, ids = model.prepare(patch.text)
        read = source if patch.stack == "encoder" and source else ids
        if source and patch.stack == "decoder":
            read = [*prepared.ids, *request.forced_tokens]
        if len(ids) > model.config.max_len:
            raise InvalidRequest(
                "too_long",
                "the other text of a patch is {n_tokens} tokens long; {name} reads at "
                "most {max_len}",
                n_tokens=len(ids),
                name=model.name,
                max_len=model.config.max_len,
            )
        if patch.positions and patch.positions[-1] >= len(read):
            raise InvalidRequest(
                "out_of_range",
                "the other run has places from 0 to {last} there; got {got}",
                last=len(read) - 1,
                got=patch.positions[-1],
            )


def hooks_for(model: LoadedModel, request: Request, prepared: Prepared) -> Sequence[Hook]:
    """What applies the interventions of this request; empty for the intact network.

    Raises ValueError for what the network does not have.
    """
    texts = {i.text: None for i in request.interventions if isinstance(i, Patch)}
    decoded = [*prepared.ids, *request.forced_tokens]
    caches = {text: activations_of(model, text, decoded) for text in texts}
    return hooks_of(request.interventions, model.config, caches)


@torch.no_grad()
def activations_of(model: LoadedModel, text: str, decoded: Sequence[int]) -> ActivationCache:
    """What the intact network does with another text.

    decoded: what the decoder behind an encoder reads; a network without one reads the text alone.
    """
    source, ids = model.prepare(text)
    cache = ActivationCache()
    network = model.network
    if isinstance(network, EncoderDecoder):
        read = torch.tensor([source], device=network.device)
        target = torch.tensor([list(decoded)], device=network.device)
        network(read, target, hooks=[cache])
    else:
        assert isinstance(network, DecoderOnly | EncoderOnly)
        network(torch.tensor([ids], device=network.device), hooks=[cache])
    return cache
