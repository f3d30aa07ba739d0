"""A network as `step.c` reads it: sizes, switches and the addresses of its weights.

The structures have the fields that `network.h` declares, in its order.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable, Sequence
from ctypes import POINTER, Structure, c_float, c_int, c_void_p

import torch
from torch import Tensor, nn

from transformer.inference.engines.c_compiler import TYPES
from transformer.inference.engines.memory import FLOATS, address_of
from transformer.model import blocks
from transformer.model.attention import MultiHeadAttention
from transformer.model.primitives import PLACEMENTS, RMSNorm
from transformer.model.transformer import DecoderOnly, EncoderDecoder

PAGE_BYTES = 2**21
COLLAPSE = 25  # MADV_COLLAPSE of Linux 6.1: merges small pages into large ones at once
ACTIVATIONS = ("relu", "gelu", "gelu-tanh", "silu")  # as functions.h counts them
N_SAMPLED_WEIGHTS = 4096  # weights that are checked before all are


def _fields(kind: type, *names: str) -> list[tuple[str, type]]:
    return [(name, kind) for name in names]


class Linear(Structure):
    """A linear map; a missing one has no weight."""

    _fields_ = [*_fields(c_void_p, "weight", "bias"), ("type", c_int)]


class Norm(Structure):
    """A norm; a missing one has no gain."""

    _fields_ = _fields(c_void_p, "gain", "bias")


class Attention(Structure):
    """An attention and the norm of its sub-layer."""

    _fields_ = [
        *_fields(Linear, "query", "key", "value", "output"),
        *_fields(Norm, "norm", "after", "query_norm", "key_norm"),
    ]


class Layer(Structure):
    """One decoder layer."""

    _fields_ = [
        *_fields(Attention, "own", "cross"),
        *_fields(Linear, "gate", "expand", "contract"),
        *_fields(Norm, "norm", "after"),
        ("window", c_int),
        *_fields(c_void_p, "cosines", "sines"),
    ]


class Network(Structure):
    """A decoder."""

    _fields_ = [
        *_fields(c_int, "n_layers", "n_heads", "n_key_heads", "head_size", "width", "hidden"),
        *_fields(c_int, "vocabulary", "max_len", "rotary_dim"),
        *_fields(c_int, "norm_first", "parallel", "rms", "activation", "crosses", "rounds"),
        ("kernels", c_int * len(TYPES)),
        *_fields(c_float, "eps", "scale", "residual_scale", "score_scale", "score_cap"),
        *_fields(c_float, "logit_scale", "logit_cap"),
        ("tokens", Linear),
        *_fields(c_void_p, "positions", "kind", "bias"),
        *_fields(Norm, "start", "end"),
        *_fields(Linear, "dense", "head"),
        ("dense_norm", Norm),
        ("layers", POINTER(Layer)),
    ]


class Text(Structure):
    """The buffers of a text, or of several that share a memory."""

    _fields_ = [
        *_fields(c_void_p, "heads", "crossing", "stream", "memory", "work"),
        *_fields(c_int, "n_memory", "length"),
    ]


class Description:
    """network: the structure for step.c. It points into weights that live as long as this object.

    They are the network's weights; where bfloat16 or float16 hold the same numbers, which take half
    as long to read, a copy in that type.
    rounds: multiply many tokens in bfloat16 by the matrices of a network stored in bfloat16.
    Raises ValueError for weights that are not float32 on a CPU or not contiguous.
    """

    def __init__(
        self, network: DecoderOnly | EncoderDecoder, kernels: tuple[int, ...], *, rounds: bool
    ) -> None:
        self._held: list[Tensor] = []
        self._copies: dict[int, Tensor] = {}  # by address; a tied matrix has one
        self.copied: list[Tensor] = []  # the network's weights that these are copies of
        config, stack, embedding = network.config, network.decoder, network.embeddings["decoder"]
        layers = [self._layer(layer, stack) for layer in stack.layers]  # type: ignore[arg-type]
        positions, rotation = embedding.positions.matrix, stack.rotation
        types, transform = embedding.types, network.transform
        self.network = Network(
            n_layers=config.output_n_layers, n_heads=config.n_heads, n_key_heads=config.key_heads,
            head_size=config.d_head, width=config.d_model, hidden=config.d_ff,
            vocabulary=network.head.out_features, max_len=config.output_max_len,
            rotary_dim=0 if rotation is None else 2 * rotation.cosines.shape[1],
            norm_first=not PLACEMENTS[config.norm].of_sum, parallel=config.parallel,
            rms=config.norm_kind != "layer", activation=ACTIVATIONS.index(config.activation),
            crosses=isinstance(network, EncoderDecoder), kernels=kernels,
            rounds=rounds and embedding.tokens.weight.dtype == torch.bfloat16,
            eps=config.norm_eps, scale=embedding.scale, residual_scale=config.residual_scale,
            score_scale=config.score_size**-0.5, score_cap=config.score_cap or 0,
            logit_scale=config.logit_scale, logit_cap=config.logit_cap or 0,
            tokens=self._weight(embedding.tokens.weight),
            positions=None if positions is None else self._at(positions),
            kind=None if types is None else self._at(types.weight),
            bias=None if stack.relative is None else self._at(self._bias(stack)),
            start=self._norm(embedding.norm), end=self._norm(stack.norm),
            dense=self._linear(None if transform is None else transform.dense),
            dense_norm=self._norm(None if transform is None else transform.norm),
            head=self._linear(network.head), layers=(Layer * len(layers))(*layers),
        )  # fmt: skip

    @property
    def weights(self) -> list[Tensor]:
        """The matrices that step.c reads."""
        return list(self._copies.values())

    @property
    def n_bytes(self) -> int:
        """Bytes of the matrices."""
        return sum(weight.nbytes for weight in self.weights)

    @property
    def types(self) -> set[torch.dtype]:
        """The types of the matrices."""
        return {copy.dtype for copy in self._copies.values()}

    def text_sizes(self, n_texts: int, length: int, n_memory: int) -> tuple[int, int, int, int]:
        """How many numbers step.c writes and reads in the buffers of texts, in the order of Text.
        length: positions of each text. n_memory: tokens of the encoder's memory."""
        n, positions = self.network, n_texts * length
        rows, keys = n.n_layers * positions, n.n_key_heads * n.head_size
        queries = n.n_heads * n.head_size
        crossing = rows * queries * bool(n.crosses)
        stream = (n.n_layers + 1) * positions * n.width
        return rows * (queries + 2 * keys), crossing, stream, n.n_layers * n_memory * 2 * keys

    def _layer(self, layer: blocks.Layer, stack: blocks.Stack) -> Layer:
        forward, own = layer.feed_forward, layer.self_attention
        kind, rotation = own.layer_type, stack.rotation
        if kind.slides and stack.sliding_rotation is not None:
            rotation = stack.sliding_rotation
        angles = rotation if kind.rotates else None
        return Layer(
            own=self._attention(layer.self_attention, layer.self_residual),
            cross=self._attention(layer.cross_attention, layer.cross_residual)
            if layer.crosses
            else Attention(),
            gate=self._linear(forward.gate),
            expand=self._linear(forward.expand),
            contract=self._linear(forward.contract),
            norm=self._norm(layer.feed_forward_residual.norm),
            after=self._norm(layer.feed_forward_residual.output_norm),
            window=own.window or stack.max_len,
            cosines=None if angles is None else self._at(angles.cosines),
            sines=None if angles is None else self._at(angles.sines),
        )

    @torch.no_grad()
    def _bias(self, stack: blocks.Stack) -> Tensor:
        """What each head adds to the score of a key so many tokens before: (H, max_len)."""
        assert stack.relative is not None
        self.copied += stack.relative.parameters()
        distances = torch.arange(stack.max_len, device="cpu")
        bias: Tensor = stack.relative(distances, distances[:1])  # (H, max_len, 1)
        return bias[..., 0].contiguous()

    def _attention(self, attention: MultiHeadAttention, residual: blocks.Residual) -> Attention:
        return Attention(
            query=self._linear(attention.query),
            key=self._linear(attention.key),
            value=self._linear(attention.value),
            output=self._linear(attention.output),
            norm=self._norm(residual.norm),
            after=self._norm(residual.output_norm),
            query_norm=self._norm(attention.query_norm),
            key_norm=self._norm(attention.key_norm),
        )

    def _linear(self, linear: nn.Linear | None) -> Linear:
        if linear is None:
            return Linear()
        result, bias = self._weight(linear.weight), linear.bias
        result.bias = None if bias is None else self._at(bias)
        return result

    def _norm(self, norm: nn.Module | None) -> Norm:
        if norm is None:
            return Norm()
        if isinstance(norm, RMSNorm):
            if norm.plus_one:
                self.copied.append(norm.weight)
            return Norm(self._at(norm.scale))
        assert isinstance(norm, nn.LayerNorm)
        return Norm(self._at(norm.weight), self._at(norm.bias))

    def _weight(self, weight: Tensor) -> Linear:
        """A matrix, in the smallest type that holds its numbers exactly."""
        address = self._at(weight, TYPES)
        if address not in self._copies:
            self._copies[address] = smallest(weight.detach())
            if self._copies[address].data_ptr() != address:
                self.copied.append(weight)
        copy = self._copies[address]
        return Linear(address_of(copy, types=TYPES), None, TYPES.index(copy.dtype))

    def _at(self, tensor: Tensor, types: Sequence[torch.dtype] = FLOATS) -> int:
        """The address of a tensor of one of these types, which is kept alive."""
        self._held.append(tensor.detach())
        return address_of(tensor, types=types)


def smallest(weight: Tensor) -> Tensor:
    """The same numbers as bfloat16 or float16 if that loses nothing; else the weight itself."""
    if weight.dtype != torch.float32:
        return weight
    for dtype in TYPES[1:]:
        few = weight.flatten()[:N_SAMPLED_WEIGHTS]
        if few.to(dtype).float().equal(few):
            copy = weight.to(dtype)
            if copy.float().equal(weight):
                return copy
    return weight


def use_huge_pages(tensors: Iterable[Tensor]) -> int:
    """Move tensors to pages of two megabytes; returns the number of pages (0 if not possible).

    The CPU looks up the address of each page of four kilobytes and prefetches only within a page:
    a step, which reads all weights once, takes 4 to 20 percent less time from pages of two
    megabytes (docs/figures/). Numbers and addresses do not change. Other data in the same page
    moves too; a page of a file, or without enough contiguous memory, stays as it was.
    """
    if not sys.platform.startswith("linux"):
        return 0
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    pages = {
        page
        for tensor in tensors
        for page in range(
            tensor.data_ptr() // PAGE_BYTES,
            -(-(tensor.data_ptr() + tensor.nbytes) // PAGE_BYTES),
        )
    }
    return sum(advise(page * PAGE_BYTES, PAGE_BYTES, COLLAPSE) == 0 for page in sorted(pages))
