"""Room for all that a decoder computes of one text, filled token by token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from transformer.inference.kept import heads_of
from transformer.model.stacks import Embedding
from transformer.model.trace import Site, Trace
from transformer.model.transformer import DecoderOnly, EncoderDecoder

ReadToken = Callable[[int, int], Tensor]  # (token, its place) -> logits (V,) for the next one


class Engine(Protocol):
    """Reads one more token of a text faster than the network does. Shared by all texts."""

    @property
    def name(self) -> str:
        """What a run says that it was made with."""

    @property
    def network(self) -> DecoderOnly | EncoderDecoder:
        """The network that it repeats."""

    def reader(self, buffers: Buffers) -> ReadToken:
        """What reads the tokens of the text that these buffers belong to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Buffers:
    """One text's numbers, by layer and place. Belongs to one run.

    heads: (L, max_len, 3, H, D), queries, keys and values of the self-attention. crossing:
    (L, max_len, H, D), queries of the cross-attention, and memory: (L, Ts, 2, H, D), the keys and
    values that it reads; both empty without an encoder.
    stream: (L + 1, max_len, C), the residual stream before each layer and after the last.
    """

    heads: Tensor
    crossing: Tensor
    memory: Tensor
    stream: Tensor

    @property
    def crosses(self) -> bool:
        """Whether there is an encoder's memory to read."""
        return self.memory.shape[1] > 0

    @classmethod
    def of(cls, trace: Trace, max_len: int) -> Buffers:
        """Filled with what a pass over the beginning of a text recorded."""
        streams = torch.stack([x[0] for x in trace.residuals["decoder"]])
        layers = range(len(streams) - 1)
        own = torch.stack([_joined(*heads_of(trace[_site(layer, "self")])[:3]) for layer in layers])
        asked, memory = own[:, :0, 0], own[:, :0, 1:]
        if _site(0, "cross") in trace.records:
            across = [heads_of(trace[_site(layer, "cross")]) for layer in layers]
            asked = torch.stack([heads.queries[0].transpose(0, 1) for heads in across])
            memory = torch.stack([_joined(heads.keys, heads.values) for heads in across])
        return cls(
            heads=_with_room(own, max_len),
            crossing=_with_room(asked, max_len if asked.shape[1] else 0),
            memory=memory.contiguous(),
            stream=_with_room(streams, max_len),
        )


def check_place(network: DecoderOnly | EncoderDecoder, token: int, place: int) -> None:
    """Raises IndexError for a token or a place that the network does not have."""
    size, room = network.head.out_features, network.config.max_len
    if not (0 <= token < size and 0 <= place < room):
        raise IndexError(
            f"token {token} at place {place}; allowed: tokens below {size}, places below {room}"
        )


def embedding_of(network: DecoderOnly | EncoderDecoder) -> Embedding:
    """What the decoder reads."""
    return network.target_embedding if isinstance(network, EncoderDecoder) else network.embedding


def _site(layer: int, kind: str) -> Site:
    return Site("decoder", layer, kind)


def _joined(*parts: Tensor) -> Tensor:
    """Parts (1, H, T, D) of one text side by side: (T, parts, H, D)."""
    return torch.stack([x[0].transpose(0, 1) for x in parts], dim=1)


def _with_room(made: Tensor, max_len: int) -> Tensor:
    """(L, T, ...) as the beginning of (L, max_len, ...)."""
    room = made.new_empty(made.shape[0], max_len, *made.shape[2:])
    room[:, : made.shape[1]] = made
    return room
