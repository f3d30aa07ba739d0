"""One more token by one call of `step.c`, straight from the network's own weights.

On two quiet cores a step of 6 x 8 x 256 took 0.17 ms so, near the time of reading the weights from
memory; `packed.py`, some hundred calls of PyTorch, took 0.86.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_float, c_int, c_void_p

import torch
from torch import Tensor, nn

from transformer.inference import native
from transformer.inference.buffers import Buffers, ReadToken, check_place, embedding_of
from transformer.model.attention import MultiHeadAttention
from transformer.model.layers import Layer, Residual
from transformer.model.transformer import DecoderOnly, EncoderDecoder


def _fields(kind: type, *names: str) -> list[tuple[str, type]]:
    return [(name, kind) for name in names]


class _Linear(Structure):
    _fields_ = _fields(c_void_p, "weight", "bias")


class _Norm(Structure):
    _fields_ = _fields(c_void_p, "gain", "bias")


class _Attention(Structure):
    _fields_ = [*_fields(_Linear, "query", "key", "value", "output"), ("norm", _Norm)]


class _Layer(Structure):
    _fields_ = [
        *_fields(_Attention, "own", "cross"),
        *_fields(_Linear, "expand", "contract"),
        ("norm", _Norm),
    ]


class _Network(Structure):
    _fields_ = [
        *_fields(c_int, "n_layers", "n_heads", "width", "hidden", "vocabulary", "max_len"),
        *_fields(c_int, "norm_first", "gelu", "crosses"),
        *_fields(c_float, "eps", "scale"),
        *_fields(c_void_p, "tokens", "positions"),
        *_fields(_Norm, "start", "end"),
        ("head", _Linear),
        ("layers", POINTER(_Layer)),
    ]


class _Text(Structure):
    _fields_ = [
        *_fields(c_void_p, "heads", "crossing", "stream", "memory", "work"),
        ("n_memory", c_int),
    ]


class CompiledDecoder:
    """The decoder of a network as `step.c` reads it: pointers to the network's own weights.

    Shared by all texts. Raises ValueError for weights that are not float32 on a CPU, RuntimeError
    where there is no C compiler.
    """

    name = "compiled"

    def __init__(self, network: DecoderOnly | EncoderDecoder) -> None:
        function = native.read_token()
        if function is None:
            raise RuntimeError("no C compiler was found that compiles the fast decoder step")
        self.network, self._function = network, function
        self._held: list[Tensor] = []  # as long as they are pointed to
        self._network = self._described(network)

    def reader(self, buffers: Buffers) -> ReadToken:
        """What reads one text's tokens."""
        return _CompiledText(self, buffers)

    def read(self, text: _Text, token: int, place: int) -> Tensor:
        """Logits (V,) for the token after this one. Raises IndexError where it does not fit."""
        check_place(self.network, token, place)
        logits = torch.empty(self._network.vocabulary)
        threads = torch.get_num_threads()
        self._function(byref(self._network), byref(text), logits.data_ptr(), token, place, threads)
        return logits

    def _described(self, network: DecoderOnly | EncoderDecoder) -> _Network:
        config, stack = network.config, network.decoder
        embedding = embedding_of(network)
        layers = [self._layer(layer) for layer in stack.layers]  # type: ignore[arg-type]
        return _Network(
            config.n_layers, config.n_heads, config.d_model, config.d_ff,
            network.head.out_features, config.max_len,
            config.norm == "pre", config.activation == "gelu", isinstance(network, EncoderDecoder),
            config.norm_eps, embedding.scale,
            self._at(embedding.tokens.weight), self._at(embedding.positions.matrix),
            self._norm(embedding.norm), self._norm(stack.norm),
            self._linear(network.head), (_Layer * len(layers))(*layers),
        )  # fmt: skip

    def _layer(self, layer: Layer) -> _Layer:
        crosses = hasattr(layer, "cross_attention")
        forward = layer.feed_forward
        return _Layer(
            self._attention(layer.self_attention, layer.self_residual),
            self._attention(layer.cross_attention, layer.cross_residual)
            if crosses
            else _Attention(),
            self._linear(forward.expand),
            self._linear(forward.contract),
            self._norm(layer.feed_forward_residual.norm),
        )

    def _attention(self, attention: MultiHeadAttention, residual: Residual) -> _Attention:
        maps: Sequence[nn.Linear] = (
            attention.query, attention.key, attention.value, attention.output,
        )  # fmt: skip
        return _Attention(*map(self._linear, maps), self._norm(residual.norm))

    def _linear(self, linear: nn.Linear) -> _Linear:
        bias: Tensor | None = linear.bias
        return _Linear(self._at(linear.weight), None if bias is None else self._at(bias))

    def _norm(self, norm: nn.LayerNorm | None) -> _Norm:
        return _Norm() if norm is None else _Norm(self._at(norm.weight), self._at(norm.bias))

    def _at(self, tensor: Tensor) -> int:
        """Where its numbers begin."""
        if tensor.dtype != torch.float32 or tensor.device.type != "cpu":
            raise ValueError(
                f"the compiled step needs float32 weights on a CPU; got {tensor.dtype} on "
                f"{tensor.device.type}"
            )
        if not tensor.is_contiguous():
            raise ValueError("the compiled step needs weights that lie in one piece; got a view")
        self._held.append(tensor.detach())
        return tensor.data_ptr()


class _CompiledText:
    """One text's buffers as `step.c` finds them."""

    def __init__(self, decoder: CompiledDecoder, buffers: Buffers) -> None:
        config = decoder.network.config
        work = torch.empty(4 * config.d_model + config.d_ff)
        tensors = (buffers.heads, buffers.crossing, buffers.stream, buffers.memory, work)
        self._decoder, self._held = decoder, tensors
        self._text = _Text(*(x.data_ptr() for x in tensors), buffers.memory.shape[1])

    def __call__(self, token: int, place: int) -> Tensor:
        """Read a token into its place: logits (V,) for the one after it."""
        return self._decoder.read(self._text, token, place)
