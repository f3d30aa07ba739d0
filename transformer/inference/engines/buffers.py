"""Buffers for a decoder's activations of one text, filled token by token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.model.config import ModelConfig
from transformer.model.sites import Site
from transformer.model.trace import Trace
from transformer.runs.compact_trace import qkv_at


@dataclass(frozen=True, kw_only=True, slots=True)
class Buffers:
    """One text's activations, by layer and position. Belongs to one run.

    heads: (L, max_len, H + 2G, D), queries, keys and values of self-attention, after rotation if
    there is one. G: heads of keys and values, H where none are shared.
    crossing: (L, max_len, H, D), queries of cross-attention, and memory: (L, Ts, 2, G, D), its keys
    and values; both empty without an encoder.
    stream: (L + 1, max_len, C), the residual stream before each layer and after the last.
    """

    heads: Tensor
    crossing: Tensor
    memory: Tensor
    stream: Tensor

    @property
    def crosses(self) -> bool:
        """Whether there is cross-attention."""
        return self.memory.shape[1] > 0

    @classmethod
    def empty(cls, config: ModelConfig, n_memory: int = 0) -> Buffers:
        """Empty buffers; n_memory: tokens of the encoder's memory."""
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
        """Buffers filled from the trace of a pass over the beginning of a text."""
        streams, share = trace.residuals["decoder"], config.heads_per_key
        crosses = _site(0, "cross") in trace.records
        across = [qkv_at(trace, _site(n, "cross"), share) for n in range(config.n_layers * crosses)]
        buffers = cls.empty(config, across[0].k.shape[2] if crosses else 0)
        for stream, recorded in zip(buffers.stream, streams, strict=True):
            stream[: recorded.shape[1]] = recorded[0]
        for n, row in enumerate(buffers.heads):
            read = qkv_at(trace, _site(n, "self"), share)
            _fill(row, read[:3])
        for row, memory, heads in zip(buffers.crossing, buffers.memory, across, strict=False):
            _fill(row, heads[:1])
            _fill(memory.flatten(1, 2), heads[1:3])
        return buffers


def _site(layer: int, kind: str) -> Site:
    return Site("decoder", layer, kind)


def _fill(room: Tensor, parts: Sequence[Tensor]) -> None:
    """Copy parts (1, n, T, D), one after the other, into buffers (T or more, N, D)."""
    first = 0
    for part in parts:
        _, n_heads, length, _ = part.shape
        room[:length, first : first + n_heads] = part[0].transpose(0, 1)
        first += n_heads
