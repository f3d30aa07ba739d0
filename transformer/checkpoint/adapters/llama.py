"""Llama, Mistral, Qwen2, Qwen3 and Gemma 1: rotary positions, RMS norm, gated, shared keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
# Fields of ModelConfig that differ from Llama and are not in config.json.
KINDS: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {},
    "qwen2": {"attention_bias": True, "output_bias": False},
    "qwen3": {"norm_heads": True},
    "gemma": {"norm_kind": "rms-plus-one", "scale_embeddings": True},
}
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
_TIED = ("gemma",)  # unless config.json says otherwise


def config(values: Values, max_len: int) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    kind = values["model_type"]
    sizes = sizes_of(values, max_len)
    width, n_heads = sizes["d_model"], sizes["n_heads"]
    only(values, use_bidirectional_attention=False, is_causal=True)
    head_size = values.get("head_dim") or width // n_heads
    fields = {
        "attention_bias": bool(values.get("attention_bias", False)),
        "feed_forward_bias": bool(values.get("mlp_bias", False)),
        "window": _window(values, sizes["max_len"]),
    }
    activation = values.get("hidden_act")
    if kind == "gemma" and activation in (None, "gelu"):
        activation = "gelu_pytorch_tanh"  # what Gemma's first files mean by "gelu"
    if (rope := rope_of(values)).get("rope_type", rope.get("type")) not in (None, "default"):
        only({**values, **rope}, partial_rotary_factor=1.0)  # which transformers would ignore
    base = values.get("rope_theta") or 10_000.0
    return ModelConfig(
        family="decoder",
        norm="pre",
        positions="rotary",
        activation=one_of({"hidden_act": activation}, "hidden_act", ACTIVATIONS, "silu"),
        head_size=None if head_size * n_heads == width else head_size,
        n_key_heads=values.get("num_key_value_heads"),
        gated=True,
        head_bias=False,
        dropout=0.0,
        tie_embeddings=bool(values.get("tie_word_embeddings", kind in _TIED)),
        norm_eps=values.get("rms_norm_eps", 1e-6),
        padding_id=padding_of(values, sizes["vocab_size"], ("bos_token_id", "eos_token_id")),
        init="normal",
        **{"norm_kind": "rms", **fields, **KINDS[kind]},
        **sizes,
        **rotary_of(values, head_size, base),
    )


def _window(values: Values, max_len: int) -> int | None:
    """How many tokens each token reads; None = all. Llama and Gemma ignore the window in their
    config.json."""
    kind, n_layers = values["model_type"], values["num_hidden_layers"]
    slides_if_told = kind in ("qwen2", "qwen3") and values.get("use_sliding_window")
    window = values.get("sliding_window", 4096)
    if not (kind == "mistral" or slides_if_told) or window is None or window >= max_len:
        return None
    first = 0 if kind == "mistral" else values.get("max_window_layers", 28)
    slides = [kind == "sliding_attention" for kind in values.get("layer_types") or ()]
    slides = slides or [layer >= first for layer in range(n_layers)]
    if len(set(slides)) > 1:
        raise ValueError(
            f"some of its layers read {window} tokens and others all; what is read: one window "
            "for all layers, or a --max-len of at most that"
        )
    return int(window) if slides[0] else None


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    theirs = Stored(stored, PREFIX, IGNORED)
    ours = embedding_and_head(theirs, config, values, "embed_tokens.weight", "lm_head.weight")
    names = _LAYER | (_NORMS_OF_HEADS if config.norm_heads else {})
    ours |= theirs.layers(config.n_layers, "decoder.layers", "layers", names)
    ours |= theirs.linear("decoder.norm", "norm")
    theirs.finish(values)
    return ours
