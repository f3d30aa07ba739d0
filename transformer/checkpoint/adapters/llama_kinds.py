"""Llama's relatives: how each differs from it. To add one: an entry of KINDS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from transformer.checkpoint.adapters.options import SCALINGS

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
_PHI_LAYER = {
    ours: theirs for ours, theirs in _LAYER.items() if not ours.startswith("feed_forward")
} | {
    "self_attention.output": "self_attn.dense",
    "feed_forward.expand": "mlp.fc1",
    "feed_forward.contract": "mlp.fc2",
}
_COHERE_LAYER = {
    ours: theirs for ours, theirs in _LAYER.items() if ours != "feed_forward_residual.norm"
}
_GLM_4_LAYER = _LAYER | {
    "self_residual.output_norm": "post_self_attn_layernorm",
    "feed_forward_residual.output_norm": "post_mlp_layernorm",
}
_GATE_AND_UP = {"mlp.gate_up_proj": ("feed_forward.gate", "feed_forward.expand")}


class Option(NamedTuple):
    """An option of config.json: its name, its default, and a function that converts it."""

    name: str
    default: Any
    converted: Callable[[Any], Any] = lambda value: value


class LlamaKind(NamedTuple):
    """How a family differs from Llama.

    fields: of ModelConfig, which config.json does not have. options: by their field of ModelConfig.
    layer: names of a layer's weights. end: of the last norm. one_norm: attention and feed-forward
    read one norm. neighbours: neighbouring features are rotated as a pair. joined: stored matrices
    that stack several of our weights.
    head_size: None means d_model / n_heads. key_heads: the default; None means n_heads. tied:
    unless config.json has it. windows: which layers have a window: None, "all", "named" (those in
    layer_types, else all), "told" (likewise, with use_sliding_window), or all but each n-th.
    window: the default. rope_interval: each n-th layer is not rotated; rotates_windows: only those
    with a window are. rotary_share: of each head, if config.json may have another than all.
    scalings: our names of the rope_types that it has. trained_norms: whether norms have weights.
    both_ways: whether its layers may read what follows, as an encoder. refused: options with one
    supported value.
    """

    fields: Mapping[str, Any] = {}
    options: Mapping[str, Option] = {}
    layer: Mapping[str, str] = _LAYER
    end: str = "norm"
    one_norm: bool = False
    neighbours: bool = False
    joined: Mapping[str, tuple[str, ...]] = {}
    activation: Option = Option("hidden_act", "silu")
    norm_eps: Option = Option("rms_norm_eps", 1e-6)
    head_size: int | None = None
    key_heads: int | None = None
    tied: bool = False
    windows: str | int | None = None
    window: int | None = 4096
    rope_interval: int | None = None
    rotates_windows: bool = False
    rotary_share: float | None = None
    rotary_base: float = 10_000.0
    sliding_rotary_base: float | None = None
    scalings: Mapping[str, str] = SCALINGS
    trained_norms: bool = True
    both_ways: bool = False
    refused: Mapping[str, Any] = {}


_ATTENTION_BIAS = {"attention_bias": Option("attention_bias", False, bool)}
_BIASES = _ATTENTION_BIAS | {"feed_forward_bias": Option("mlp_bias", False, bool)}
_GEMMA = LlamaKind(
    {"norm_kind": "rms-plus-one", "scale_embeddings": True},
    _ATTENTION_BIAS,
    activation=Option("hidden_act", "gelu_pytorch_tanh"),
    head_size=256,
    key_heads=16,
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
    key_heads=4,
    windows=2,
)
_OLMO_2 = LlamaKind(
    {"norm": "output", "norm_all_heads": True}, _ATTENTION_BIAS, _OLMO_2_LAYER | _NORMS_OF_HEADS,
    norm_eps=Option("rms_norm_eps", 1e-5),
)  # fmt: skip
_GLM = LlamaKind(
    {"output_bias": False},
    {"attention_bias": Option("attention_bias", True, bool)},
    neighbours=True,
    joined=_GATE_AND_UP,
    norm_eps=Option("rms_norm_eps", 1.5625e-7),
    head_size=128,
    key_heads=2,
    rotary_share=0.5,
)
_STARCODER_2_BIAS = Option("use_bias", True)
KINDS: dict[str, LlamaKind] = {
    "llama": LlamaKind(options=_BIASES),
    "mistral": LlamaKind(key_heads=8, windows="named"),
    "qwen2": LlamaKind(
        {"attention_bias": True, "output_bias": False}, key_heads=32, windows="told"
    ),
    "qwen3": LlamaKind(
        {"norm_heads": True}, _ATTENTION_BIAS, _LAYER | _NORMS_OF_HEADS, head_size=128,
        key_heads=32, windows="told",
    ),
    "gemma": _GEMMA,
    "gemma2": _GEMMA_2,
    "gemma3_text": _GEMMA_2._replace(
        fields={**_GEMMA_2.fields, "norm_heads": True},
        options={
            **_GEMMA_2.options,
            "score_cap": Option("", None),  # transformers ignores attn_logit_softcapping
            "logit_cap": Option("final_logit_softcapping", None),
        },
        layer=_GEMMA_2_LAYER | _NORMS_OF_HEADS,
        windows=6,
        both_ways=True,
        rotary_base=1_000_000.0,
        sliding_rotary_base=10_000.0,
    ),
    "phi3": LlamaKind(
        joined={
            "self_attn.qkv_proj": (
                "self_attention.query", "self_attention.key", "self_attention.value",
            ),
            **_GATE_AND_UP,
        },
        norm_eps=Option("rms_norm_eps", 1e-5),
        windows="all",
        window=None,
        rotary_share=1.0,
        scalings={"default": "none", **dict.fromkeys(("longrope", "su", "yarn"), "longrope")},
    ),
    "olmo": LlamaKind(
        {"norm_kind": "layer"},
        _ATTENTION_BIAS,
        norm_eps=Option("", 1e-5),
        trained_norms=False,
        refused={"clip_qkv": None},
    ),
    "olmo2": _OLMO_2,
    "olmo3": _OLMO_2._replace(windows=4, rotary_base=500_000.0, sliding_rotary_base=500_000.0),
    "exaone4": LlamaKind(
        {"norm": "output", "norm_heads": True}, {}, _OLMO_2_LAYER | _NORMS_OF_HEADS,
        norm_eps=Option("rms_norm_eps", 1e-5), key_heads=32, windows=4, rotates_windows=True,
    ),
    "glm": _GLM,
    "glm4": _GLM._replace(fields={**_GLM.fields, "norm": "both"}, layer=_GLM_4_LAYER),
    "phi": LlamaKind(
        {
            "norm_kind": "layer", "parallel": True, "gated": False, "attention_bias": True,
            "feed_forward_bias": True, "head_bias": True,
        },
        layer=_PHI_LAYER,
        end="final_layernorm",
        one_norm=True,
        activation=Option("hidden_act", "gelu_new"),
        norm_eps=Option("layer_norm_eps", 1e-5),
        rotary_share=0.5,
        refused={"qk_layernorm": False},
    ),
    "cohere": LlamaKind(
        {"norm_kind": "layer", "parallel": True},
        _ATTENTION_BIAS | {"logit_scale": Option("logit_scale", 0.0625)},
        _COHERE_LAYER,
        one_norm=True,
        neighbours=True,
        norm_eps=Option("layer_norm_eps", 1e-5),
        tied=True,
        rotary_base=500_000.0,
        refused={"use_qk_norm": False},
    ),
    "smollm3": LlamaKind(
        options=_BIASES, key_heads=4, tied=True, windows="told", window=None, rope_interval=4,
        rotary_base=2_000_000.0,
    ),
    "granite": LlamaKind(
        options=_BIASES
        | {
            "score_scale": Option("attention_multiplier", 1.0),
            "embedding_scale": Option("embedding_multiplier", 1.0),
            "residual_scale": Option("residual_multiplier", 1.0),
            "logit_scale": Option("logits_scaling", 1.0, lambda divisor: 1 / divisor),
        },
    ),
    "stablelm": LlamaKind(
        {"norm_kind": "layer", "output_bias": False},
        {"attention_bias": Option("use_qkv_bias", False)},
        norm_eps=Option("layer_norm_eps", 1e-5),
        key_heads=32,
        rotary_share=0.25,
        refused={"qk_layernorm": False, "use_parallel_residual": False},
    ),
    "starcoder2": LlamaKind(
        {"norm_kind": "layer", "gated": False},
        {"attention_bias": _STARCODER_2_BIAS, "feed_forward_bias": _STARCODER_2_BIAS},
        _STARCODER_2_LAYER,
        activation=Option("hidden_act", "gelu_pytorch_tanh"),
        norm_eps=Option("norm_epsilon", 1e-5),
        key_heads=2,
        tied=True,
        windows="all",
        window=None,
    ),
}  # fmt: skip
