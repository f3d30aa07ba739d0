"""One more token by PyTorch's own operations, on weights packed for one row at a time.

What `compiled.py` does where there is a C compiler; this works everywhere. Reading the weights from
memory is much of the work, so they are laid out as these operations read them fastest:

- [in, out] instead of nn.Linear's [out, in], which took 1.4 to 2.8 times as long for one row;
- seen as one block of columns a thread, as a batch: MKL does not thread a one-row product;
- queries, keys and values side by side;
- a bias as one more weight row where a product is added to the residual stream, so that one call
  does all three;
- the factors of a GELU given to the products on both sides of it, so that an erf and a
  multiplication are left: 3 instead of 6.5 microseconds for 1,024 numbers.

There is one copy of the weights: packing makes the network's own parameters views of the packed
matrices, with the shapes and values that they had. Its products of several rows are as fast so
(16 rows, 2 threads: 2.5 against 2.3 ms for all weights of 6 x 8 x 256; 80 rows: 6.6 against 6.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.inference.buffers import Buffers, ReadToken, embedding_of
from transformer.model.attention import MultiHeadAttention
from transformer.model.layers import Layer, Residual
from transformer.model.transformer import DecoderOnly, EncoderDecoder

GELU_SCALE = 2**-0.5
_NOTHING = torch.zeros(1, 1, 1)


class PackedDecoder:
    """The decoder of a network, packed. Shared by all texts and never changed.

    threads: how many blocks of columns each weight is seen as. The network's parameters become
    views of the packed weights: do this before anybody else uses it, and change no weight
    afterwards. Raises ValueError for weights that are not float32 on a CPU.
    """

    name = "packed"

    def __init__(self, network: DecoderOnly | EncoderDecoder, threads: int | None = None) -> None:
        if network.device.type != "cpu" or network.head.weight.dtype != torch.float32:
            raise ValueError(
                f"packing needs float32 weights on a CPU; got {network.head.weight.dtype} on "
                f"{network.device.type}"
            )
        blocks = threads or torch.get_num_threads()
        self.network = network
        self.embedding = embedding_of(network)
        self.layers = [PackedLayer(layer, blocks) for layer in network.decoder.layers]  # type: ignore[arg-type]
        self.norm = None if network.decoder.norm is None else Norm(network.decoder.norm)
        self.head = Product([network.head], blocks)

    def reader(self, buffers: Buffers) -> ReadToken:
        """What reads one text's tokens."""
        return _PackedText(self, buffers)

    def embed(self, token: int, place: int, into: Tensor) -> None:
        """Token and position vector into (C,), which is then normed where the model does so."""
        embedding = self.embedding
        vector, position = embedding.tokens.weight[token], embedding.positions.matrix[place]
        torch.add(position, vector, alpha=embedding.scale, out=into)
        if embedding.norm is not None:
            into.copy_(embedding.norm(into))

    def logits(self, x: Tensor) -> Tensor:
        """What leaves the last layer, (C,) -> (V,)."""
        return self.head(x if self.norm is None else self.norm(x)).view(-1)


class Scratch:
    """Room for what a layer computes on the way; one for each text that is being read."""

    def __init__(self, packed: PackedDecoder) -> None:
        config, layer = packed.network.config, packed.layers[0]
        self.attended = _WithBias(config.d_model, layer.output)
        self.heads = self.attended.inner.view(config.n_heads, 1, config.d_head)
        self.hidden = _WithBias(config.d_ff, layer.contract)
        self.activated = self.hidden.inner.view(layer.expand.n_blocks, 1, -1)
        self.middle = [torch.empty(config.d_model) for _ in range(2)]


class Crossing(NamedTuple):
    """A layer's part for its cross-attention.

    row: (blocks, 1, C / blocks) and query: (H, 1, D), the same numbers: where the query goes. keys:
    (H, D, Ts), values: (H, Ts, D), of the memory.
    """

    row: Tensor
    query: Tensor
    keys: Tensor
    values: Tensor


class Place(NamedTuple):
    """Where a layer finds and leaves what belongs to the new position: views of a run's buffers.

    x, out: (C,), the residual stream before and after. row: (blocks, 1, 3 C / blocks), where the
    new query (H, 1, D), key and value go. keys: (H, D, T), values: (H, T, D), the new one included.
    """

    x: Tensor
    out: Tensor
    row: Tensor
    query: Tensor
    keys: Tensor
    values: Tensor
    crossing: Crossing | None = None


class _PackedText:
    """One text's buffers, and the views of them that every step cuts its own from."""

    def __init__(self, packed: PackedDecoder, buffers: Buffers) -> None:
        self.packed, self.stream = packed, buffers.stream
        heads, first = buffers.heads, packed.layers[0]
        n_layers, max_len = heads.shape[:2]
        self._scratch = Scratch(packed)
        self._rows = heads.view(n_layers, max_len, first.query_key_value.n_blocks, 1, -1)
        self._queries = heads[:, :, 0].unsqueeze(-2)  # (L, max_len, H, 1, D)
        self._keys, self._values = _by_head(heads[:, :, 1:])
        if first.cross_query is not None:
            crossing, blocks = buffers.crossing, first.cross_query.n_blocks
            self._cross_rows = crossing.view(n_layers, max_len, blocks, 1, -1)
            self._cross_queries = crossing.unsqueeze(-2)
            self._memory = [part.unbind() for part in _by_head(buffers.memory)]

    def __call__(self, token: int, place: int) -> Tensor:
        """Read a token into its place: logits (V,) for the one after it."""
        packed, stream = self.packed, self.stream[:, place].unbind()
        packed.embed(token, place, stream[0])
        for layer, at in zip(packed.layers, self._places(place, stream), strict=True):
            layer(at, self._scratch)
        return packed.logits(stream[-1])

    def _places(self, place: int, stream: Sequence[Tensor]) -> Iterator[Place]:
        """For each layer, its views of the buffers."""
        return map(
            Place,
            stream[:-1],
            stream[1:],
            self._rows[:, place].unbind(),
            self._queries[:, place].unbind(),
            self._keys[..., : place + 1].unbind(),
            self._values[:, :, : place + 1].unbind(),
            self._crossings(place),
        )

    def _crossings(self, place: int) -> Iterable[Crossing | None]:
        if self.packed.layers[0].cross_query is None:
            return repeat(None)
        return map(
            Crossing,
            self._cross_rows[:, place].unbind(),
            self._cross_queries[:, place].unbind(),
            *self._memory,
        )


def _by_head(pairs: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values (L, T, 2, H, D) as (L, H, D, T) and (L, H, T, D)."""
    return pairs[:, :, 0].permute(0, 2, 3, 1), pairs[:, :, 1].transpose(1, 2)


class PackedLayer:
    """One decoder layer for one new position."""

    def __init__(self, layer: Layer, blocks: int) -> None:
        own, feed_forward = layer.self_attention, layer.feed_forward
        self.scale = (own.query.in_features // own.n_heads) ** -0.5
        self.query_key_value = Product([own.query, own.key, own.value], blocks)
        self.output = Added(own.output, layer.self_residual, blocks)
        self.cross_query: Product | None = None
        if hasattr(layer, "cross_attention"):
            crossing: MultiHeadAttention = layer.cross_attention
            self.cross_query = Product([crossing.query], blocks)
            self.cross_output = Added(crossing.output, layer.cross_residual, blocks)
        self.gelu = feed_forward.activation is F.gelu
        by = GELU_SCALE if self.gelu else 1.0
        self.expand = Product([feed_forward.expand], blocks, by)
        self.contract = Added(feed_forward.contract, layer.feed_forward_residual, blocks, by)

    def __call__(self, place: Place, scratch: Scratch) -> None:
        """Read place.x; write place.out, and the new query, key and value."""
        x, attended = scratch.middle[0], scratch.attended
        self.query_key_value(self.output.before(place.x), place.row)
        self._attend(place.query, place.keys, place.values, scratch.heads)
        self.output(attended.rows, place.x, x)
        if self.cross_query is not None and place.crossing is not None:
            row, query, keys, values = place.crossing
            self.cross_query(self.cross_output.before(x), row)
            self._attend(query, keys, values, scratch.heads)
            x = self.cross_output(attended.rows, x, scratch.middle[1])
        self._activate(self.expand(self.contract.before(x)), scratch.activated)
        self.contract(scratch.hidden.rows, x, place.out)

    def _attend(self, query: Tensor, keys: Tensor, values: Tensor, out: Tensor) -> None:
        """(H, 1, D), (H, D, T), (H, T, D) -> (H, 1, D)."""
        scores = torch.baddbmm(_NOTHING, query, keys, beta=0, alpha=self.scale)
        torch.bmm(torch.softmax(scores, dim=-1), values, out=out)

    def _activate(self, x: Tensor, out: Tensor) -> None:
        """ReLU, or what the products leave of a GELU: x + x erf(x), for x scaled by 1/sqrt(2)."""
        if self.gelu:
            torch.addcmul(x, x, torch.erf(x), out=out)
        else:
            torch.clamp_min(x, 0, out=out)


class Norm:
    """A LayerNorm called directly: nn.Module and functional take as long again for one row."""

    def __init__(self, norm: nn.LayerNorm) -> None:
        self.rest = (norm.normalized_shape, norm.weight.detach(), norm.bias.detach(), norm.eps)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, *self.rest)


class Product:
    """Linear maps of one input, side by side; the result times `by`."""

    def __init__(self, maps: list[nn.Linear], blocks: int, by: float = 1.0) -> None:
        rows = _pack(maps)
        self.weight, self.bias = _blocks(rows[:-1], blocks), by * _blocks(rows[-1:], blocks)
        self.n_blocks, self.by = len(self.weight), by

    def __call__(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """x: (in,) -> (blocks, 1, out / blocks): the features in order."""
        rows = x.expand(self.n_blocks, 1, -1)
        return torch.baddbmm(self.bias, rows, self.weight, alpha=self.by, out=out)


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


class _WithBias:
    """An input of `Added`: inner (n,), and all of it for each block, (blocks, 1, n + 1)."""

    def __init__(self, size: int, added: Added) -> None:
        whole = torch.full((size + 1,), 1 / added.by)
        self.inner = whole[:size]
        self.rows = whole.expand(added.n_blocks, 1, -1)


def _pack(maps: list[nn.Linear]) -> Tensor:
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
