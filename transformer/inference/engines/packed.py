"""One more token by PyTorch's own operations, on weights packed for one row at a time.

What `compiled.py` does where there is a C compiler; this works everywhere, and is why it is kept:
on a network of 6 x 8 x 256 it took 2.2 to 2.4 times as long as the compiled step, and half as long
as the network itself (docs/figures.md).
Reading the weights from memory is much of the work, so they are laid out as these operations read
them fastest:

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

import copy
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

import torch
from torch import Tensor

from transformer.inference.engines.buffers import (
    Buffers,
    Packing,
    ReadTokens,
    lacks_plain_weights,
)
from transformer.inference.engines.packed_layer import (
    Crossing,
    Norm,
    PackedLayer,
    Position,
    Product,
    Scratch,
)
from transformer.model.rotary import Turn
from transformer.model.transformer import DecoderOnly, EncoderDecoder


class PackedDecoder(Packing):
    """The decoder of a network, packed. Shared by all texts.

    threads: how many blocks of columns each weight is seen as. The network's parameters become
    views of the packed weights.
    """

    name = "packed"
    reads_prompts = False

    @classmethod
    def lacks(cls, network: DecoderOnly | EncoderDecoder) -> str | None:
        """What is missing here; None: nothing."""
        return lacks_plain_weights(network)

    def __init__(self, network: DecoderOnly | EncoderDecoder, threads: int | None = None) -> None:
        self._blocks = threads or torch.get_num_threads()
        super().__init__(network)

    def pack(self) -> Sequence[Tensor]:
        """See Packing."""
        network, norm, blocks = self.network, self.network.decoder.norm, self._blocks
        layers = [
            PackedLayer(layer, network.config, blocks)  # type: ignore[arg-type]
            for layer in network.decoder.layers
        ]
        head, self.embedding = Product([network.head], blocks), network.embeddings["decoder"]
        self.layers, self.norm, self.head = layers, None if norm is None else Norm(norm), head
        return [one for one in network.parameters() if one.dim() == 1]  # some are scaled

    @property
    def copies(self) -> Sequence[Tensor]:
        """None: the network's own weights have become views of the packed ones."""
        return ()

    @property
    def about(self) -> str:
        """How it reads the weights on this machine."""
        return f"PyTorch's operations, blocks of columns: {self.head.n_blocks}"

    def reader(self, buffers: Buffers) -> ReadTokens:
        """What reads one text's tokens."""
        return _PackedText(copy.copy(self), buffers)  # with what is packed now

    def embed(self, token: int, position: int, into: Tensor) -> None:
        """Token and position vector into (C,), which is then normalised where the model does so."""
        embedding = self.embedding
        vector, matrix = embedding.tokens.weight[token], embedding.positions.matrix
        if matrix is None:
            torch.mul(vector, embedding.scale, out=into)
        else:
            torch.add(matrix[position], vector, alpha=embedding.scale, out=into)
        if embedding.types is not None:
            into += embedding.types.weight[0]
        if embedding.norm is not None:
            into.copy_(embedding.norm(into))

    def logits(self, x: Tensor) -> Tensor:
        """What leaves the last layer, (C,) -> (V,)."""
        x = x if self.norm is None else self.norm(x)
        transform = self.network.transform
        return self.head(x if transform is None else transform(x)).view(-1)


class _PackedText:
    """One text's buffers, and the views of them that every step cuts its own from."""

    def __init__(self, packed: PackedDecoder, buffers: Buffers) -> None:
        self.packed, self.stream = packed, buffers.stream
        heads, first, config = buffers.heads, packed.layers[0], packed.network.config
        n_layers, max_len = heads.shape[:2]
        self._scratch, self._window = Scratch(config, first), config.window or max_len
        self._rows = heads.view(n_layers, max_len, first.query_key_value.n_blocks, 1, -1)
        groups = [config.n_heads, config.key_heads, config.key_heads]
        queries, self._new_keys, values = heads.split(groups, dim=2)
        self._queries = _in_groups(queries, config.key_heads)
        self._keys, self._values = _by_head(self._new_keys, values)
        if first.cross_query is not None:
            crossing, blocks = buffers.crossing, first.cross_query.n_blocks
            self._cross_rows = crossing.view(n_layers, max_len, blocks, 1, -1)
            self._cross_queries = _in_groups(crossing, config.key_heads)
            self._memory = [part.unbind() for part in _by_head(*buffers.memory.unbind(2))]

    def __call__(self, tokens: Sequence[int], position: int) -> Tensor:
        """Read tokens into their positions: logits (V,) for the one after them."""
        for n, token in enumerate(tokens):
            self._read(token, position + n)
        return self.packed.logits(self.stream[-1, position + len(tokens) - 1])

    def _read(self, token: int, position: int) -> None:
        packed, stream = self.packed, self.stream[:, position].unbind()
        packed.embed(token, position, stream[0])
        rotation = packed.network.decoder.rotation
        turn = (
            None if rotation is None else Turn(rotation.cosines[position], rotation.sines[position])
        )
        for layer, at in zip(packed.layers, self._positions(position, stream), strict=True):
            layer(at, self._scratch, turn)

    def _positions(self, position: int, stream: Sequence[Tensor]) -> Iterator[Position]:
        """For each layer, its views of the buffers."""
        seen = slice(max(0, position + 1 - self._window), position + 1)
        return map(
            Position,
            stream[:-1],
            stream[1:],
            self._rows[:, position].unbind(),
            self._queries[:, position].unbind(),
            self._new_keys[:, position].unbind(),
            self._keys[..., seen].unbind(),
            self._values[:, :, seen].unbind(),
            self._crossings(position),
        )

    def _crossings(self, position: int) -> Iterable[Crossing | None]:
        if self.packed.layers[0].cross_query is None:
            return repeat(None)
        return map(
            Crossing,
            self._cross_rows[:, position].unbind(),
            self._cross_queries[:, position].unbind(),
            *self._memory,
        )


def _in_groups(queries: Tensor, key_heads: int) -> Tensor:
    """(L, T, H, D) as (L, T, G, H / G, D): the heads that read the same keys side by side."""
    return queries.unflatten(2, (key_heads, -1))


def _by_head(keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values (L, T, G, D) as (L, G, D, T) and (L, G, T, D)."""
    return keys.permute(0, 2, 3, 1), values.transpose(1, 2)
