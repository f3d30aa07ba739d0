"""One decoder layer for one new position, on packed weights."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from transformer.inference.engines.packed_weights import Added, Expanded, Norm, Product, WithBias
from transformer.model.attention import MultiHeadAttention
from transformer.model.blocks import Layer
from transformer.model.config import ModelConfig
from transformer.model.rotary import Turn, rotated

_NOTHING = torch.zeros(1, 1, 1)


class Scratch:
    """Room for what a layer computes on the way; one for each text that is being read."""

    def __init__(self, config: ModelConfig, layer: PackedLayer) -> None:
        self.attended = WithBias(config.n_heads * config.d_head, layer.output)
        self.heads = self.attended.inner.view(config.key_heads, -1, config.d_head)
        self.hidden = WithBias(config.d_ff, layer.contract)
        self.middle = [torch.empty(config.d_model) for _ in range(2)]


class Crossing(NamedTuple):
    """A layer's part for its cross-attention.

    row: (blocks, 1, H D / blocks) and query: (G, H / G, D), the same numbers: where the query goes.
    keys: (G, D, Ts), values: (G, Ts, D), of the memory.
    """

    row: Tensor
    query: Tensor
    keys: Tensor
    values: Tensor


class Position(NamedTuple):
    """Where a layer finds and leaves what belongs to the new position: views of a run's buffers.

    x, out: (C,), the residual stream before and after. row: (blocks, 1, (H + 2G) D / blocks), where
    the new query, key and value go; query: (G, H / G, D) and key: (G, D), the same numbers. keys:
    (G, D, T), values: (G, T, D), all that may be read, the new one included.
    """

    x: Tensor
    out: Tensor
    row: Tensor
    query: Tensor
    key: Tensor
    keys: Tensor
    values: Tensor
    crossing: Crossing | None = None


class PackedLayer:
    """One decoder layer for one new position."""

    def __init__(self, layer: Layer, config: ModelConfig, blocks: int) -> None:
        own = layer.self_attention
        self.scale, self.parallel = config.d_head**-0.5, layer.parallel
        self.query_key_value = Product([own.query, own.key, own.value], blocks)
        norms = (own.query_norm, own.key_norm)
        self.norms = [Norm(norm) for norm in norms if norm is not None]  # of queries and keys
        self.output = Added(own.output, layer.self_residual, blocks)
        self.cross_query: Product | None = None
        if layer.crosses:
            crossing: MultiHeadAttention = layer.cross_attention
            self.cross_query = Product([crossing.query], blocks)
            self.cross_norm = None if crossing.query_norm is None else Norm(crossing.query_norm)
            self.cross_output = Added(crossing.output, layer.cross_residual, blocks)
        self.expanded = Expanded(layer.feed_forward, blocks)
        self.contract = Added(
            layer.feed_forward.contract, layer.feed_forward_residual, blocks, self.expanded.by
        )

    def __call__(self, place: Position, scratch: Scratch, turn: Turn | None) -> None:
        """Read place.x; write place.out, and the new query, key and value."""
        x, attended = scratch.middle[0], scratch.attended
        self.query_key_value(self.output.before(place.x), place.row)
        self._place(place, turn)
        self._attend(place.query, place.keys, place.values, scratch.heads)
        self.output(attended.rows, place.x, x)
        if self.cross_query is not None and place.crossing is not None:
            row, query, keys, values = place.crossing
            self.cross_query(self.cross_output.before(place.x if self.parallel else x), row)
            if self.cross_norm is not None:
                query.copy_(self.cross_norm(query))
            self._attend(query, keys, values, scratch.heads)
            x = self.cross_output(attended.rows, x, scratch.middle[1])
        read = self.contract.before(place.x if self.parallel else x)
        self.expanded(read, scratch.hidden.inner)
        self.contract(scratch.hidden.rows, x, place.out)

    def _place(self, place: Position, turn: Turn | None) -> None:
        """Norm the new query and key, and turn them, where the network does."""
        for part, at in ((place.query, 0), (place.key, 1)):
            if self.norms:
                part.copy_(self.norms[at](part))
            if turn is not None:
                part.copy_(rotated(part, turn))

    def _attend(self, query: Tensor, keys: Tensor, values: Tensor, out: Tensor) -> None:
        """(G, H / G, D), (G, D, T), (G, T, D) -> (G, H / G, D)."""
        scores = torch.baddbmm(_NOTHING, query, keys, beta=0, alpha=self.scale)
        torch.bmm(torch.softmax(scores, dim=-1), values, out=out)
