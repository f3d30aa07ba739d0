"""A network as `step.c` reads it: sizes, switches, and where its weights lie."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from transformer.inference.engines import step_layout as c
from transformer.inference.engines.kernels import TYPES
from transformer.model.attention import MultiHeadAttention
from transformer.model.blocks import Layer, Residual
from transformer.model.primitives import RMSNorm
from transformer.model.transformer import DecoderOnly, EncoderDecoder

ACTIVATIONS = ("relu", "gelu", "gelu-tanh", "silu")  # as functions.h counts them
SAMPLE = 4096  # weights that are looked at before all are


class Description:
    """network: what step.c is given. It points into weights that live as long as this.

    Those are the network's own; where float32 holds no more than bfloat16 or float16 would, which
    takes half as long to read, they are such a copy.
    Raises ValueError for weights that are not float32 on a CPU or lie in pieces.
    """

    def __init__(self, network: DecoderOnly | EncoderDecoder, kernels: tuple[int, ...]) -> None:
        self._held: list[Tensor] = []
        self._copies: dict[int, Tensor] = {}  # of what lies there; a tied matrix has one
        self.copied: list[Tensor] = []  # the network's weights that these are copies of
        config, stack, embedding = network.config, network.decoder, network.embeddings["decoder"]
        layers = [self._layer(layer) for layer in stack.layers]  # type: ignore[arg-type]
        positions, rotation = embedding.positions.matrix, stack.rotation
        types, transform = embedding.types, network.transform
        self.network = c.Network(
            n_layers=config.n_layers, n_heads=config.n_heads, n_key_heads=config.key_heads,
            head_size=config.d_head, width=config.d_model, hidden=config.d_ff,
            vocabulary=network.head.out_features, max_len=config.output_max_len,
            window=config.window or config.output_max_len,
            rotary_dim=0 if rotation is None else 2 * rotation.cosines.shape[1],
            norm_first=config.norm == "pre", parallel=config.parallel,
            rms=config.norm_kind != "layer", activation=ACTIVATIONS.index(config.activation),
            crosses=isinstance(network, EncoderDecoder), kernels=kernels,
            eps=config.norm_eps, scale=embedding.scale,
            tokens=self._weight(embedding.tokens.weight),
            positions=None if positions is None else self._at(positions),
            kind=None if types is None else self._at(types.weight),
            cosines=None if rotation is None else self._at(rotation.cosines),
            sines=None if rotation is None else self._at(rotation.sines),
            start=self._norm(embedding.norm), end=self._norm(stack.norm),
            dense=self._linear(None if transform is None else transform.dense),
            dense_norm=self._norm(None if transform is None else transform.norm),
            head=self._linear(network.head), layers=(c.Layer * len(layers))(*layers),
        )  # fmt: skip

    @property
    def weights(self) -> list[Tensor]:
        """The matrices that are read."""
        return list(self._copies.values())

    @property
    def n_bytes(self) -> int:
        """What they take."""
        return sum(weight.nbytes for weight in self.weights)

    @property
    def types(self) -> set[torch.dtype]:
        """What the weights are read as."""
        return {copy.dtype for copy in self._copies.values()}

    def _layer(self, layer: Layer) -> c.Layer:
        forward = layer.feed_forward
        return c.Layer(
            own=self._attention(layer.self_attention, layer.self_residual),
            cross=self._attention(layer.cross_attention, layer.cross_residual)
            if layer.crosses
            else c.Attention(),
            gate=self._linear(forward.gate),
            expand=self._linear(forward.expand),
            contract=self._linear(forward.contract),
            norm=self._norm(layer.feed_forward_residual.norm),
        )

    def _attention(self, attention: MultiHeadAttention, residual: Residual) -> c.Attention:
        return c.Attention(
            query=self._linear(attention.query),
            key=self._linear(attention.key),
            value=self._linear(attention.value),
            output=self._linear(attention.output),
            norm=self._norm(residual.norm),
            query_norm=self._norm(attention.query_norm),
            key_norm=self._norm(attention.key_norm),
        )

    def _linear(self, linear: nn.Linear | None) -> c.Linear:
        if linear is None:
            return c.Linear()
        result, bias = self._weight(linear.weight), linear.bias
        result.bias = None if bias is None else self._at(bias)
        return result

    def _norm(self, norm: nn.Module | None) -> c.Norm:
        if norm is None:
            return c.Norm()
        if isinstance(norm, RMSNorm):
            if norm.plus_one:
                self.copied.append(norm.weight)
            return c.Norm(self._at(norm.scale))
        assert isinstance(norm, nn.LayerNorm)
        return c.Norm(self._at(norm.weight), self._at(norm.bias))

    def _weight(self, weight: Tensor) -> c.Linear:
        """A matrix, in the smallest type that holds its numbers exactly."""
        place = self._at(weight, TYPES)
        if place not in self._copies:
            self._copies[place] = smallest(weight.detach())
            if self._copies[place].data_ptr() != place:
                self.copied.append(weight)
        copy = self._copies[place]
        return c.Linear(copy.data_ptr(), None, TYPES.index(copy.dtype))

    def _at(self, tensor: Tensor, allowed: Sequence[torch.dtype] = TYPES[:1]) -> int:
        """Where its numbers begin, if they are of such a type."""
        if tensor.dtype not in allowed or tensor.device.type != "cpu":
            raise ValueError(
                f"the compiled step needs float32 weights on a CPU; got {tensor.dtype} on "
                f"{tensor.device.type}"
            )
        if not tensor.is_contiguous():
            raise ValueError("the compiled step needs weights that lie in one piece; got a view")
        self._held.append(tensor.detach())
        return tensor.data_ptr()


def smallest(weight: Tensor) -> Tensor:
    """The same numbers as bfloat16 or float16, where these hold all of them; else itself."""
    if weight.dtype != torch.float32:
        return weight
    for kind in TYPES[1:]:
        few = weight.flatten()[:SAMPLE]
        if few.to(kind).float().equal(few):
            copy = weight.to(kind)
            if copy.float().equal(weight):
                return copy
    return weight
