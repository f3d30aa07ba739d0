"""A fast way to read one more token: the network's weights, packed for one row at a time.

`transformer/model/` explains the network; this repeats its arithmetic for the one case that makes
generation slow, a single new token of a single text on a CPU, and is tested equal to it. There,
reading the weights from memory is nearly all the work, so they are laid out as the CPU reads them:

- [in, out] instead of nn.Linear's [out, in], which took 1.4 to 2.8 times as long for one row;
- cut into one block of columns a thread, as a batch: MKL does not thread a one-row product;
- queries, keys and values side by side, 1/sqrt(D) folded into the queries' weights;
- a bias as one more weight row where a product is added to the residual stream, so that one call
  does all three.

The packed weights are a second copy: the network itself still reads prompts and makes traces with
its own, and no layout serves both.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.model.attention import KeyValueCache, MultiHeadAttention
from transformer.model.layers import Layer, Residual
from transformer.model.stacks import Embedding
from transformer.model.trace import Site
from transformer.model.transformer import DecoderOnly, EncoderDecoder, EncoderOnly

Norm = Callable[[Tensor], Tensor]


class PackedDecoder:
    """The decoder of a network, packed. Shared by all runs and never changed; see `Reading`.

    threads: how many blocks of columns each weight is cut into. Raises ValueError for weights that
    are not float32 on a CPU.
    """

    def __init__(self, network: DecoderOnly | EncoderDecoder, threads: int | None = None) -> None:
        if network.device.type != "cpu" or network.head.weight.dtype != torch.float32:
            raise ValueError(
                f"packing needs float32 weights on a CPU; got {network.head.weight.dtype} on "
                f"{network.device.type}"
            )
        blocks = threads or torch.get_num_threads()
        self.network = network
        self.embedding: Embedding = (
            network.target_embedding if isinstance(network, EncoderDecoder) else network.embedding
        )
        self.layers = [_PackedLayer(layer, blocks) for layer in network.decoder.layers]  # type: ignore[arg-type]
        self.end = network.decoder.end
        self.head = _Product([network.head], blocks)


def packing_of(
    network: DecoderOnly | EncoderOnly | EncoderDecoder,
) -> PackedDecoder | None:
    """The packing of a network that can have one; its weights must not change afterwards."""
    if isinstance(network, EncoderOnly) or network.device.type != "cpu":
        return None
    return PackedDecoder(network) if network.head.weight.dtype == torch.float32 else None


class Reading:
    """One text being read: keys, values and buffers of one run.

    Begins with what the network has read already: its key-value cache.
    """

    def __init__(self, packed: PackedDecoder, cache: KeyValueCache) -> None:
        self.packed = packed
        config = packed.network.config
        self.length = cache.length
        shape = (config.n_heads, config.max_len, config.d_model // config.n_heads)
        self.own: list[tuple[Tensor, Tensor]] = []
        self.memory: list[tuple[Tensor, Tensor] | None] = []
        for index in range(config.n_layers):
            pair = cache.get(Site("decoder", index, "self"))
            assert pair is not None
            buffers = torch.empty(shape), torch.empty(shape)
            for buffer, known in zip(buffers, pair, strict=True):
                buffer[:, : self.length] = known[0]
            self.own.append(buffers)
            crossing = cache.get(Site("decoder", index, "cross"))
            self.memory.append(None if crossing is None else (crossing[0][0], crossing[1][0]))

    def read(self, token: int) -> Tensor:
        """Logits (V,) for the token after this one. The text must not be longer than max_len."""
        place, packed = self.length, self.packed
        x = packed.embedding(torch.tensor([[token]]), torch.tensor([place]))[0]  # (1, C)
        self.length += 1
        for layer, own, memory in zip(packed.layers, self.own, self.memory, strict=True):
            x = layer(x, own, place, memory)
        return packed.head(packed.end(x))[0]


class _PackedLayer:
    """One decoder layer for one new position."""

    def __init__(self, layer: Layer, blocks: int) -> None:
        own = layer.self_attention
        self.n_heads = own.n_heads
        scale = (own.query.in_features // own.n_heads) ** -0.5
        self.query_key_value = _Product([own.query, own.key, own.value], blocks, first_by=scale)
        self.output = _Added(own.output, layer.self_residual, blocks)
        self.cross_query: _Product | None = None
        if hasattr(layer, "cross_attention"):
            crossing: MultiHeadAttention = layer.cross_attention
            self.cross_query = _Product([crossing.query], blocks, first_by=scale)
            self.cross_output = _Added(crossing.output, layer.cross_residual, blocks)
        self.expand = _Product([layer.feed_forward.expand], blocks)
        self.activation = layer.feed_forward.activation
        self.contract = _Added(layer.feed_forward.contract, layer.feed_forward_residual, blocks)

    def __call__(
        self,
        x: Tensor,
        own: tuple[Tensor, Tensor],
        place: int,
        memory: tuple[Tensor, Tensor] | None,
    ) -> Tensor:
        """x: (1, C) at `place`; own: (H, max_len, D) keys and values, which grow by this one."""
        new = self.query_key_value(self.output.before(x)).view(3, self.n_heads, -1)  # (3, H, D)
        keys, values = own
        keys[:, place] = new[1]
        values[:, place] = new[2]
        x = self.output(_attend(new[0], keys[:, : place + 1], values[:, : place + 1]), x)
        if self.cross_query is not None and memory is not None:
            query = self.cross_query(self.cross_output.before(x)).view(self.n_heads, -1)
            x = self.cross_output(_attend(query, *memory), x)
        return self.contract(self.activation(self.expand(self.contract.before(x))), x)


def _attend(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """query: (H, D), divided by sqrt(D); keys, values: (H, T, D) -> (1, C), the heads in a row.

    Three plain calls, which at one query are faster than PyTorch's fused one.
    """
    scores = torch.bmm(query[:, None], keys.transpose(1, 2))  # (H, 1, T)
    return torch.bmm(scores.softmax(dim=-1), values).view(1, -1)


class _Product:
    """Linear maps of one row, side by side: (1, in) -> (1, out)."""

    def __init__(self, maps: list[nn.Linear], blocks: int, first_by: float = 1.0) -> None:
        scales = [first_by] + [1.0] * (len(maps) - 1)
        parts = zip(maps, scales, strict=True)
        weights = [linear.weight.detach() * scale for linear, scale in parts]
        biases = [_bias(linear) * scale for linear, scale in zip(maps, scales, strict=True)]
        self.weight = _blocks(torch.cat(weights).T, blocks)
        self.bias = _blocks(torch.cat(biases)[None], blocks)
        self.n_blocks = len(self.weight)

    def __call__(self, x: Tensor) -> Tensor:
        rows = x.expand(self.n_blocks, 1, -1)
        return torch.baddbmm(self.bias, rows, self.weight).view(1, -1)


class _Added:
    """A linear map whose result joins the residual stream, with the norm before or after."""

    def __init__(self, linear: nn.Linear, residual: Residual, blocks: int) -> None:
        rows = torch.cat([linear.weight.detach().T, _bias(linear)[None]])
        self.weight = _blocks(rows, blocks)
        self.n_blocks = len(self.weight)
        self.norm: Norm = residual.norm
        self.norm_first = residual.norm_first

    def before(self, x: Tensor) -> Tensor:
        """What the sub-layer reads of the stream."""
        return self.norm(x) if self.norm_first else x

    def __call__(self, x: Tensor, stream: Tensor) -> Tensor:
        """x: (1, in), stream: (1, C) -> (1, C)."""
        rows = F.pad(x, (0, 1), value=1.0).expand(self.n_blocks, 1, -1)
        parts = stream.view(self.n_blocks, 1, -1)
        added = torch.baddbmm(parts, rows, self.weight).view(1, -1)
        return added if self.norm_first else self.norm(added)


def _bias(linear: nn.Linear) -> Tensor:
    """Its bias, or zeros."""
    bias: Tensor | None = linear.bias
    return torch.zeros(linear.out_features) if bias is None else bias.detach()


def _blocks(columns: Tensor, blocks: int) -> Tensor:
    """(in, out) -> (blocks, in, out / blocks), contiguous; one block where out cannot be cut."""
    n_out = columns.shape[1]
    count = blocks if n_out % blocks == 0 else 1
    return columns.unflatten(1, (count, n_out // count)).transpose(0, 1).contiguous()
