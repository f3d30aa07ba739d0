"""What `step.c` is given, field by field as `network.h` declares it."""

from __future__ import annotations

from ctypes import POINTER, Structure, c_float, c_int, c_void_p

from transformer.inference.engines.kernels import TYPES


def _fields(kind: type, *names: str) -> list[tuple[str, type]]:
    return [(name, kind) for name in names]


class Linear(Structure):
    """A linear map; without a weight, none."""

    _fields_ = [*_fields(c_void_p, "weight", "bias"), ("type", c_int)]


class Norm(Structure):
    """A norm; without a gain, none."""

    _fields_ = _fields(c_void_p, "gain", "bias")


class Attention(Structure):
    """An attention and the norm of its sub-layer."""

    _fields_ = [
        *_fields(Linear, "query", "key", "value", "output"),
        *_fields(Norm, "norm", "query_norm", "key_norm"),
    ]


class Layer(Structure):
    """One decoder layer."""

    _fields_ = [
        *_fields(Attention, "own", "cross"),
        *_fields(Linear, "gate", "expand", "contract"),
        ("norm", Norm),
    ]


class Network(Structure):
    """A decoder."""

    _fields_ = [
        *_fields(c_int, "n_layers", "n_heads", "n_key_heads", "head_size", "width", "hidden"),
        *_fields(c_int, "vocabulary", "max_len", "window", "rotary_dim"),
        *_fields(c_int, "norm_first", "parallel", "rms", "activation", "crosses"),
        ("kernels", c_int * len(TYPES)),
        *_fields(c_float, "eps", "scale"),
        ("tokens", Linear),
        *_fields(c_void_p, "positions", "kind", "cosines", "sines"),
        *_fields(Norm, "start", "end"),
        *_fields(Linear, "dense", "head"),
        ("dense_norm", Norm),
        ("layers", POINTER(Layer)),
    ]


class Text(Structure):
    """One text's buffers."""

    _fields_ = [
        *_fields(c_void_p, "heads", "crossing", "stream", "memory", "work"),
        ("n_memory", c_int),
    ]
