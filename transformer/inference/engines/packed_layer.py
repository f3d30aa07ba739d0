"""Weights laid out for products of one row, and a decoder layer for one new position made of them;
`packed.py` says why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from transformer.model.activations import ACTIVATIONS
from transformer.model.attention import MultiHeadAttention
from transformer.model.blocks import FeedForward, Layer, Residual
from transformer.model.config import ModelConfig
from transformer.model.norms import RMSNorm
from transformer.model.rotary import Turn, rotated

GELU_SCALE = 2**-0.5
_NOTHING = torch.zeros(1, 1, 1)


class Norm:
    """A norm called directly: nn.Module and functional take as long again for one row."""

    def __init__(self, norm: nn.Module) -> None:
        self.function: Callable[..., Tensor] = torch.layer_norm
        self.rest: tuple[Any, ...]
        if isinstance(norm, RMSNorm):
            scale = norm.scale.detach()
            self.function, self.rest = torch.rms_norm, (list(scale.shape), scale, norm.eps)
        else:
            assert isinstance(norm, nn.LayerNorm)
            weights = norm.weight.detach(), norm.bias.detach()
            self.rest = (norm.normalized_shape, *weights, norm.eps)

    def __call__(self, x: Tensor) -> Tensor:
        return self.function(x, *self.rest)


class Product:
    """Linear maps of one input, side by side; the result times `by`."""

    def __init__(self, maps: Sequence[nn.Linear], blocks: int, by: float = 1.0) -> None:
        rows = _pack(maps)
        self.weight, self.bias = _blocks(rows[:-1], blocks), by * _blocks(rows[-1:], blocks)
        self.n_blocks, self.by = len(self.weight), by

    def __call__(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """x: (in,) -> (blocks, 1, out / blocks): the features in order."""
        rows = x.expand(self.n_blocks, 1, -1)
        return torch.baddbmm(self.bias, rows, self.weight, alpha=self.by, out=out)


class Expanded:
    """The first half of a feed-forward, with its activation.

    by: 1 / what the result must be multiplied with. For GELU, whose factors are given to the
    products on both sides of it, x + x erf(x) is left, of x scaled by 1/sqrt(2).
    """

    def __init__(self, feed_forward: FeedForward, blocks: int) -> None:
        self.activation, gate = feed_forward.activation, feed_forward.gate
        self.gated = gate is not None
        self.plain_gelu = self.activation is ACTIVATIONS["gelu"].function and not self.gated
        self.by = GELU_SCALE if self.plain_gelu else 1.0
        maps = [feed_forward.expand] if gate is None else [gate, feed_forward.expand]
        self.product = Product(maps, blocks, self.by)

    def __call__(self, x: Tensor, out: Tensor) -> None:
        """(C,) -> out (d_ff,)."""
        made = self.product(x).view(-1)
        if self.plain_gelu:
            torch.addcmul(made, made, torch.erf(made), out=out)
        elif self.gated:
            gate, made = made.view(2, -1)
            torch.mul(self.activation(gate), made, out=out)
        elif self.activation is ACTIVATIONS["relu"].function:
            torch.clamp_min(made, 0, out=out)
        else:
            out.copy_(self.activation(made))


class Added:
    """A linear map whose result joins the residual stream, with the norm before or after.

    by: a factor for the product; the bias, as it is, is what 1 / by in the input's last place adds.
    """

    def __init__(self, linear: nn.Linear, residual: Residual, blocks: int, by: float = 1.0) -> None:
        self.weight, self.by = _blocks(_pack([linear]), blocks), by
        self.n_blocks = len(self.weight)
        self.norm = Norm(residual.norm)
        self.norm_first = residual.norm_first

    def before(self, x: Tensor) -> Tensor:
        """What the sub-layer reads of the stream."""
        return self.norm(x) if self.norm_first else x

    def __call__(self, rows: Tensor, stream: Tensor, out: Tensor) -> Tensor:
        """rows: (blocks, 1, in + 1); stream, out: (C,). Returns out."""
        parts = (self.n_blocks, 1, -1)
        torch.baddbmm(stream.view(parts), rows, self.weight, alpha=self.by, out=out.view(parts))
        return out if self.norm_first else out.copy_(self.norm(out))


class WithBias:
    """An input of `Added`: inner (n,), and all of it for each block, (blocks, 1, n + 1)."""

    def __init__(self, size: int, added: Added) -> None:
        whole = torch.full((size + 1,), 1 / added.by)
        self.inner = whole[:size]
        self.rows = whole.expand(added.n_blocks, 1, -1)


def _pack(maps: Sequence[nn.Linear]) -> Tensor:
    """(in + 1, out): weights side by side and a row of biases; the maps become views of it.

    An embedding that is tied to a map is the same parameter and becomes that view too.
    """
    rows = torch.cat([torch.cat([m.weight.T, _bias(m)[None]]) for m in maps], dim=1).detach()
    for linear, columns in zip(maps, rows.split([m.out_features for m in maps], 1), strict=True):
        linear.weight.data = columns[:-1].T
        if linear.bias is not None:
            linear.bias.data = columns[-1]
    return rows


def _bias(linear: nn.Linear) -> Tensor:
    """Its bias, or zeros."""
    bias: Tensor | None = linear.bias
    return torch.zeros(linear.out_features) if bias is None else bias


def _blocks(columns: Tensor, blocks: int) -> Tensor:
    """(in, out) -> (blocks, in, out / blocks), a view; one block where out cannot be cut."""
    n_out = columns.shape[1]
    count = blocks if n_out % blocks == 0 else 1
    return columns.unflatten(1, (count, n_out // count)).transpose(0, 1)


class Scratch:
    """Buffers for a layer's intermediate results, one for each text being read."""

    def __init__(self, config: ModelConfig, layer: PackedLayer) -> None:
        self.attended = WithBias(config.n_heads * config.d_head, layer.output)
        self.heads = self.attended.inner.view(config.key_heads, -1, config.d_head)
        self.hidden = WithBias(config.d_ff, layer.contract)
        self.middle = torch.empty(config.d_model)


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
        x, attended = scratch.middle, scratch.attended
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
            self.cross_output(attended.rows, x, x)
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
