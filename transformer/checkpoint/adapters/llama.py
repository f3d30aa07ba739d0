"""Llama and its relatives: decoders with rotary positions that differ by options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer.checkpoint.adapters.options import (
    ACTIVATIONS,
    Stored,
    Values,
    embedding_and_head,
    one_of,
    only,
    padding_of,
    rope_of,
    rotary_of,
    sizes_of,
)
from transformer.model.config import ModelConfig

PREFIX = "model."
IGNORED = (r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq", r"rotary_emb\.inv_freq")
_LAYER = {
    "self_attention.query": "self_attn.q_proj",
    "self_attention.key": "self_attn.k_proj",
    "self_attention.value": "self_attn.v_proj",
    "self_attention.output": "self_attn.o_proj",
    "self_residual.norm": "input_layernorm",
    "feed_forward.gate": "mlp.gate_proj",
    "feed_forward.expand": "mlp.up_proj",
    "feed_forward.contract": "mlp.down_proj",
    "feed_forward_residual.norm": "post_attention_layernorm",
}
_NORMS_OF_HEADS = {
    "self_attention.query_norm": "self_attn.q_norm",
    "self_attention.key_norm": "self_attn.k_norm",
}
_OUTPUT_NORMS = {
    "self_residual.output_norm": "post_attention_layernorm",
    "feed_forward_residual.output_norm": "post_feedforward_layernorm",
}
_GEMMA_2_LAYER = (
    _LAYER | _OUTPUT_NORMS | {"feed_forward_residual.norm": "pre_feedforward_layernorm"}
)
_OLMO_2_LAYER = {
    ours: theirs for ours, theirs in _LAYER.items() if not ours.endswith("residual.norm")
} | _OUTPUT_NORMS
_STARCODER_2_LAYER = {
    ours: theirs for ours, theirs in _LAYER.items() if not ours.startswith("feed_forward.")
} | {"feed_forward.expand": "mlp.c_fc", "feed_forward.contract": "mlp.c_proj"}


class Option(NamedTuple):
    """An option of config.json: its name, its default, and a function that converts it."""

    name: str
    default: Any
    converted: Callable[[Any], Any] = lambda value: value


class Kind(NamedTuple):
    """How a family differs from Llama.

    fields: of ModelConfig, which config.json does not have. options: by their field of ModelConfig.
    layer: names of a layer's weights. joined: stored matrices that stack several of our weights.
    head_size: None means d_model / n_heads. tied: unless config.json has it. windows: which layers
    have a window: None, "all", "named" (those in layer_types, else all), "told" (likewise, with
    use_sliding_window), or all but each n-th. window: the default. rope_interval: each n-th layer
    is not rotated. rotary_share: of each head, if config.json may have another than all.
    trained_norms: whether norms have weights. refused: options with one supported value.
    """

    fields: Mapping[str, Any] = {}
    options: Mapping[str, Option] = {}
    layer: Mapping[str, str] = _LAYER
    joined: Mapping[str, tuple[str, ...]] = {}
    activation: Option = Option("hidden_act", "silu")
    norm_eps: Option = Option("rms_norm_eps", 1e-6)
    head_size: int | None = None
    tied: bool = False
    windows: str | int | None = None
    window: int | None = 4096
    rope_interval: int | None = None
    rotary_share: float | None = None
    rotary_base: float = 10_000.0
    sliding_rotary_base: float | None = None
    trained_norms: bool = True
    refused: Mapping[str, Any] = {}


_ATTENTION_BIAS = {"attention_bias": Option("attention_bias", False, bool)}
_BIASES = _ATTENTION_BIAS | {"feed_forward_bias": Option("mlp_bias", False, bool)}
_GEMMA = Kind(
    {"norm_kind": "rms-plus-one", "scale_embeddings": True},
    _ATTENTION_BIAS,
    activation=Option("hidden_act", "gelu_pytorch_tanh"),
    head_size=256,
    tied=True,
)
_GEMMA_2 = _GEMMA._replace(
    fields={**_GEMMA.fields, "norm": "both"},
    options=_ATTENTION_BIAS
    | {
        "score_scale": Option("query_pre_attn_scalar", 256, lambda size: size**-0.5),
        "score_cap": Option("attn_logit_softcapping", 50.0),
        "logit_cap": Option("final_logit_softcapping", 30.0),
    },
    layer=_GEMMA_2_LAYER,
    activation=Option("hidden_activation", "gelu_pytorch_tanh"),
    windows=2,
)
_STARCODER_2_BIAS = Option("use_bias", True)
KINDS: dict[str, Kind] = {
    "llama": Kind(options=_BIASES),
    "mistral": Kind(windows="named"),
    "qwen2": Kind({"attention_bias": True, "output_bias": False}, windows="told"),
    "qwen3": Kind(
        {"norm_heads": True}, _ATTENTION_BIAS, _LAYER | _NORMS_OF_HEADS, head_size=128,
        windows="told",
    ),
    "gemma": _GEMMA,
    "gemma2": _GEMMA_2,
    "gemma3_text": _GEMMA_2._replace(
        fields={**_GEMMA_2.fields, "norm_heads": True},
        options={
            **_GEMMA_2.options,
            "score_cap": Option("attn_logit_softcapping", None),
            "logit_cap": Option("final_logit_softcapping", None),
        },
        layer=_GEMMA_2_LAYER | _NORMS_OF_HEADS,
        windows=6,
        rotary_base=1_000_000.0,
        sliding_rotary_base=10_000.0,
    ),
    "phi3": Kind(
        joined={
            "self_attn.qkv_proj": (
                "self_attention.query", "self_attention.key", "self_attention.value",
            ),
            "mlp.gate_up_proj": ("feed_forward.gate", "feed_forward.expand"),
        },
        norm_eps=Option("rms_norm_eps", 1e-5),
        windows="all",
        window=None,
        rotary_share=1.0,
        refused={"rope_type": "default", "type": "default"},
    ),
    "olmo": Kind(
        {"norm_kind": "layer"},
        _ATTENTION_BIAS,
        norm_eps=Option("", 1e-5),
        trained_norms=False,
        refused={"clip_qkv": None},
    ),
    "olmo2": Kind(
        {"norm": "output", "norm_all_heads": True}, _ATTENTION_BIAS,
        _OLMO_2_LAYER | _NORMS_OF_HEADS, norm_eps=Option("rms_norm_eps", 1e-5),
    ),
    "smollm3": Kind(
        options=_BIASES, tied=True, windows="told", window=None, rope_interval=4,
        rotary_base=2_000_000.0,
    ),
    "granite": Kind(
        options=_BIASES
        | {
            "score_scale": Option("attention_multiplier", 1.0),
            "embedding_scale": Option("embedding_multiplier", 1.0),
            "residual_scale": Option("residual_multiplier", 1.0),
            "logit_scale": Option("logits_scaling", 1.0, lambda divisor: 1 / divisor),
        },
    ),
    "stablelm": Kind(
        {"norm_kind": "layer", "output_bias": False},
        {"attention_bias": Option("use_qkv_bias", False)},
        norm_eps=Option("layer_norm_eps", 1e-5),
        rotary_share=0.25,
        refused={"qk_layernorm": False, "use_parallel_residual": False},
    ),
    "starcoder2": Kind(
        {"norm_kind": "layer", "gated": False},
        {"attention_bias": _STARCODER_2_BIAS, "feed_forward_bias": _STARCODER_2_BIAS},
        _STARCODER_2_LAYER,
        activation=Option("hidden_act", "gelu_pytorch_tanh"),
        norm_eps=Option("norm_epsilon", 1e-5),
        tied=True,
        windows="all",
        window=None,
    ),
}  # fmt: skip


def config(values: Values, max_len: int) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    kind, rope = KINDS[values["model_type"]], _rope_of(values)
    only({**values, **rope}, use_bidirectional_attention=False, is_causal=True, **kind.refused)
    sizes = sizes_of(values, max_len)
    width, n_heads = sizes["d_model"], sizes["n_heads"]
    head_size = values.get("head_dim") or kind.head_size or width // n_heads
    options: dict[str, Any] = {
        field: option.converted(values.get(option.name, option.default))
        for field, option in kind.options.items()
    }
    none: dict[str, Any] = {
        "attention_bias": False,
        "feed_forward_bias": False,
        "norm_kind": "rms",
        "gated": True,
    }
    return ModelConfig(
        family="decoder",
        positions="rotary",
        activation=_activation(values, kind.activation),
        head_size=None if head_size * n_heads == width else head_size,
        n_key_heads=values.get("num_key_value_heads"),
        head_bias=False,
        dropout=0.0,
        tie_embeddings=bool(values.get("tie_word_embeddings", kind.tied)),
        norm_eps=values.get(*kind.norm_eps[:2]),
        padding_id=padding_of(values, sizes["vocab_size"], ("bos_token_id", "eos_token_id")),
        init="normal",
        **none | options | dict(kind.fields),
        **sizes,
        **_rotary_of(values, rope, kind, head_size),
        **_layer_types(values, kind, sizes["max_len"]),
    )


def _activation(values: Values, option: Option) -> str:
    """Our name of the activation."""
    got = values.get(option.name)
    if values["model_type"] == "gemma" and got == "gelu":
        got = None  # what Gemma's first files call its default
    return one_of({option.name: got}, option.name, ACTIVATIONS, option.default)


def _rope_of(values: Values) -> Values:
    """The settings of rotary positions; of layers without a window, where others differ."""
    if KINDS[values["model_type"]].sliding_rotary_base is None:
        return rope_of(values)
    own = (values.get("rope_parameters") or {}).get("full_attention") or {}
    return {"rope_type": "default", **own, **(values.get("rope_scaling") or {})}


def _rotary_of(values: Values, rope: Values, kind: Kind, head_size: int) -> dict[str, Any]:
    """The fields of rotary positions."""
    share, scaled = 1.0, rope.get("rope_type", rope.get("type")) not in (None, "default")
    if kind.rotary_share is not None:
        own = values.get("partial_rotary_factor", kind.rotary_share)
        share = rope.get("partial_rotary_factor", own)
    elif scaled:
        only({**values, **rope}, partial_rotary_factor=1.0)  # which transformers would ignore
    base = values.get("rope_theta") or kind.rotary_base
    fields = rotary_of(values, rope, int(head_size * share), base)
    if kind.sliding_rotary_base is None:
        return fields
    sliding = (values.get("rope_parameters") or {}).get("sliding_attention") or {}
    only(sliding, rope_type="default")
    default = values.get("rope_local_base_freq") or kind.sliding_rotary_base
    return fields | {"sliding_rotary_base": float(sliding.get("rope_theta") or default)}


def _layer_types(values: Values, kind: Kind, max_len: int) -> dict[str, Any]:
    """The window, and which layers have it and are rotated. Families without windows ignore the
    window in their config.json."""
    n_layers, window = values["num_hidden_layers"], values.get("sliding_window", kind.window)
    rotates = [1] * n_layers
    if kind.rope_interval is not None:
        interval = values.get("no_rope_layer_interval", kind.rope_interval)
        default = [int((layer + 1) % interval != 0) for layer in range(n_layers)]
        rotates = values.get("no_rope_layers") or default
    slides = _sliding_layers(values, kind, rotates)
    if window is None or window >= max_len or not any(slides):
        window = None
    types = [
        ("sliding_attention" if slides[layer] else "full_attention")
        + ("" if rotates[layer] else "_nope")
        for layer in range(n_layers)
    ]
    rotated_alike = all(rotates) and kind.sliding_rotary_base is None
    if rotated_alike and (window is None or all(slides)):
        return {"window": window}
    return {"window": window, "layer_types": _shortest(types)}


def _sliding_layers(values: Values, kind: Kind, rotates: Sequence[int]) -> list[bool]:
    """Which layers have a window."""
    n_layers, given = len(rotates), values.get("layer_types")
    if kind.windows is None or (kind.windows == "told" and not values.get("use_sliding_window")):
        return [False] * n_layers
    if kind.windows == "all":
        return [True] * n_layers
    if given:
        return [name == "sliding_attention" for name in given]
    if isinstance(kind.windows, int):
        every = values.get("sliding_window_pattern", kind.windows) if kind.windows > 2 else 2
        return [(layer + 1) % every != 0 for layer in range(n_layers)]
    if kind.windows == "named":
        return [True] * n_layers
    if kind.rope_interval is not None:
        return [not rotated for rotated in rotates]
    return [layer >= values.get("max_window_layers", 28) for layer in range(n_layers)]


def _shortest(types: list[str]) -> tuple[str, ...]:
    """The shortest tuple that gives these types when it is repeated."""
    lengths = range(1, len(types) + 1)
    return next(
        tuple(types[:n])
        for n in lengths
        if all(types[at] == types[at % n] for at in range(len(types)))
    )


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    theirs, kind = Stored(stored, PREFIX, IGNORED), KINDS[values["model_type"]]
    ours = embedding_and_head(theirs, config, values, "embed_tokens.weight", "lm_head.weight")
    for layer in range(config.n_layers):
        for name, parts in kind.joined.items():
            here = [f"decoder.layers.{layer}.{part}" for part in parts]
            ours |= theirs.rows(here, f"layers.{layer}.{name}", [_rows(config, p) for p in parts])
    joined = {part for parts in kind.joined.values() for part in parts}
    names = {part: name for part, name in kind.layer.items() if part not in joined}
    if not kind.trained_norms:
        ours |= _plain_norms(config, names)
        names = {part: name for part, name in names.items() if not part.endswith(".norm")}
    ours |= theirs.layers(config.n_layers, "decoder.layers", "layers", names)
    ours |= theirs.linear("decoder.norm", "norm") if kind.trained_norms else {}
    theirs.finish(values)
    return ours


def _plain_norms(config: ModelConfig, names: Mapping[str, str]) -> dict[str, Tensor]:
    """Weights of norms that only make mean 0 and variance 1."""
    layers = [
        f"decoder.layers.{layer}.{part}" for layer in range(config.n_layers) for part in names
    ]
    norms = ["decoder.norm", *(name for name in layers if name.endswith(".norm"))]
    ones, zeros = torch.ones(config.d_model), torch.zeros(config.d_model)
    return {
        f"{name}.{kind}": x for name in norms for kind, x in (("weight", ones), ("bias", zeros))
    }


def _rows(config: ModelConfig, part: str) -> int:
    """Rows of a linear map of a layer."""
    if part.startswith("feed_forward"):
        return config.d_ff
    return config.d_head * (config.n_heads if part.endswith("query") else config.key_heads)
