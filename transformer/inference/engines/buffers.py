"""Room for all that a decoder computes of one text, filled token by token."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from transformer.inference.engines.changes import Fingerprint, is_as_configured
from transformer.messages import say
from transformer.model.config import ModelConfig
from transformer.model.sites import Site
from transformer.model.trace import Trace
from transformer.model.transformer import DecoderOnly, EncoderDecoder
from transformer.runs.compact_trace import heads_at

# What the engines repeat, which have the arithmetic of the parts written out: the values that they
# know of these fields. A name that is added to one of the tables of `transformer/model/` is not
# here until the engines are taught it.
WRITTEN_OUT: dict[str, frozenset[str | bool]] = {
    "family": frozenset({"decoder", "encoder-decoder"}),
    "norm": frozenset({"pre", "post"}),
    "norm_kind": frozenset({"layer", "rms", "rms-plus-one"}),
    "positions": frozenset({"sinusoidal", "sinusoidal-halves", "learned", "rotary"}),
    "score_divisor": frozenset({"d_head"}),
    "shared_projection": frozenset({False}),
    "activation": frozenset({"relu", "gelu", "gelu-tanh", "silu"}),
}

# (tokens, the first one's position) -> logits (V,) for the token after the last
ReadTokens = Callable[[Sequence[int], int], Tensor]


class Greedy(NamedTuple):
    """What is read after a token if always the likeliest is taken.

    most: as many tokens, the first one included. ends: what is not read. never: no token to take.
    """

    most: int
    ends: Collection[int]
    never: int | None


@runtime_checkable
class ReadsAhead(Protocol):
    """Of what reads a text's tokens: whether several can be had sooner than one by one."""

    def ahead(self, token: int, position: int, greedy: Greedy) -> list[tuple[int, Tensor]]:
        """Reads a token and what follows it: each with the logits (V,) for the one after it."""


class Packing:
    """What engines share: their copy of the network's weights, made anew when these change."""

    network: DecoderOnly | EncoderDecoder

    def __init__(self, network: DecoderOnly | EncoderDecoder) -> None:
        self.network, self._lock = network, threading.Lock()
        self._usable = True
        self._packed = Fingerprint(network, self.pack())

    @classmethod
    def lacks(cls, network: DecoderOnly | EncoderDecoder) -> str | None:
        """See Engine."""
        raise NotImplementedError

    def pack(self) -> Sequence[Tensor]:
        """Read the network's weights. Returns those of which it keeps a copy.

        Texts that were begun keep what was packed before. Raises ValueError for weights that it
        cannot read.
        """
        raise NotImplementedError

    def refresh(self) -> bool:
        """Called where a text begins: packs anew if the network was changed. Returns whether it
        reads what the network is now."""
        if not self._packed.same:
            with self._lock:
                if not self._packed.same:  # and no other thread has packed meanwhile
                    self._repack()
        return self._usable and not self._packed.is_hooked

    @torch.inference_mode(False)  # the network's weights may become views of what is packed
    def _repack(self) -> None:
        copied: Sequence[Tensor] = ()
        try:
            fits = self._packed.same_parts or is_as_configured(self.network)
            self._usable = fits and self.lacks(self.network) is None
            if self._usable:
                copied = self.pack()
        except ValueError:
            self._usable = False
        self._packed = Fingerprint(self.network, copied)


class Engine(Protocol):
    """Reads one more token of a text faster than the network does. Shared by all texts.

    reads_prompts: whether it also reads prompts faster, of a decoder alone.
    """

    reads_prompts: bool

    @property
    def name(self) -> str:
        """What a run says that it was made with."""

    @property
    def about(self) -> str:
        """How it reads the weights on this machine."""

    @classmethod
    def lacks(cls, network: DecoderOnly | EncoderDecoder) -> str | None:
        """What it needs and this network or this machine does not have; None: nothing."""

    @property
    def network(self) -> DecoderOnly | EncoderDecoder:
        """The network that it repeats."""

    @property
    def copies(self) -> Sequence[Tensor]:
        """Weights that it keeps beside the network's own."""

    def refresh(self) -> bool:
        """See Packing."""

    def reader(self, buffers: Buffers) -> ReadTokens:
        """What reads the tokens of the text that these buffers belong to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Buffers:
    """One text's numbers, by layer and position. Belongs to one run.

    heads: (L, max_len, H + 2G, D), queries, keys and values of the self-attention, as they meet:
    turned where positions turn them. G: heads of keys and values, H where none are shared.
    crossing: (L, max_len, H, D), queries of the cross-attention, and memory: (L, Ts, 2, G, D), the
    keys and values that it reads; both empty without an encoder.
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
    def empty(cls, config: ModelConfig, n_memory: int = 0) -> Buffers:
        """For a text of which nothing was read; n_memory: tokens of the encoder's memory."""
        n_layers, max_len, d_head = config.n_layers, config.output_max_len, config.d_head
        n_heads, keys = config.n_heads, config.key_heads
        return cls(
            heads=torch.empty(n_layers, max_len, n_heads + 2 * keys, d_head),
            crossing=torch.empty(n_layers, max_len * (n_memory > 0), n_heads, d_head),
            memory=torch.empty(n_layers, n_memory, 2, keys, d_head),
            stream=torch.empty(n_layers + 1, max_len, config.d_model),
        )

    @classmethod
    def of(cls, trace: Trace, config: ModelConfig) -> Buffers:
        """Filled with what a pass over the beginning of a text recorded."""
        streams, share = trace.residuals["decoder"], config.heads_per_key
        crosses = _site(0, "cross") in trace.records
        across = [
            heads_at(trace, _site(n, "cross"), share) for n in range(config.n_layers * crosses)
        ]
        buffers = cls.empty(config, across[0].k.shape[2] if crosses else 0)
        for stream, found in zip(buffers.stream, streams, strict=True):
            stream[: found.shape[1]] = found[0]
        for n, row in enumerate(buffers.heads):
            read = heads_at(trace, _site(n, "self"), share)
            _fill(row, read[:3])
        for row, memory, heads in zip(buffers.crossing, buffers.memory, across, strict=False):
            _fill(row, heads[:1])
            _fill(memory.flatten(1, 2), heads[1:3])
        return buffers


def unknown_in(config: ModelConfig) -> list[str]:
    """The choices of a configuration that no engine knows, each as NAME=VALUE."""
    return [
        f"{name}={getattr(config, name)!r}"
        for name, known in WRITTEN_OUT.items()
        if getattr(config, name) not in known
    ]


def lacks_plain_weights(network: DecoderOnly | EncoderDecoder) -> str | None:
    """What an engine for float32 on a CPU misses."""
    plain = network.device.type == "cpu" and network.dtype == torch.float32
    return None if plain else say("float32 weights on a CPU")


def check_position(network: DecoderOnly | EncoderDecoder, token: int, position: int) -> None:
    """Raises IndexError for a token or a position that the network does not have."""
    size, room = network.head.out_features, network.config.output_max_len
    if not (0 <= token < size and 0 <= position < room):
        raise IndexError(
            say(
                "token {token} at place {place}; allowed: tokens below {size}, places below {room}",
                token=token,
                place=position,
                size=size,
                room=room,
            )
        )


def _site(layer: int, kind: str) -> Site:
    return Site("decoder", layer, kind)


def _fill(room: Tensor, parts: Sequence[Tensor]) -> None:
    """Parts (1, n, T, D) of one text, their heads one after the other, into (T or more, N, D)."""
    first = 0
    for part in parts:
        _, n_heads, length, _ = part.shape
        room[:length, first : first + n_heads] = part[0].transpose(0, 1)
        first += n_heads
