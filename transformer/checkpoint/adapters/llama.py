"""Llama, Mistral, Qwen2, Qwen3 and Gemma 1: rotary positions, RMS norm, gated, shared keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from transformer.checkpoint.adapters.options import (
    ACTIVATIONS,
    Stored,
    Values,
    needed,
    one_of,
    only,
    padding_of,
    rope_of,
    rotary_of,
)
from transformer.messages import invalid
from transformer.model.config import ModelConfig

PREFIX = "model."
IGNORED = (r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq", r"rotary_emb\.inv_freq")
# What differs from Llama: our fields, and the values that stand for what is not in config.json.
KINDS: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {},
    "qwen2": {"attention_bias": True, "output_bias": False},
    "qwen3": {"norm_heads": True},
    "gemma": {"norm_kind": "rms-plus-one", "scale_embeddings": True},
}
_TIED = ("gemma",)  # where config.json says nothing


def config(values: Values, max_len: int) -> ModelConfig:
    """Our configuration of their config.json. Raises ValueError for what we do not have."""
    kind = values["model_type"]
    names = ("vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers")
    vocab_size, d_model, n_heads, n_layers = needed(values, *names)
    d_ff, longest = needed(values, "intermediate_size", "max_position_embeddings")
    only(values, use_bidirectional_attention=False, pretraining_tp=1, is_causal=True)
    head_size = values.get("head_dim") or d_model // n_heads
    fields = {
        "attention_bias": bool(values.get("attention_bias", False)),
        "feed_forward_bias": bool(values.get("mlp_bias", False)),
        "window": _window(values, min(max_len, longest)),
    }
    activation = values.get("hidden_act")
    if kind == "gemma" and activation in (None, "gelu"):
        activation = "gelu_pytorch_tanh"  # what Gemma's first files mean by "gelu"
    if (rope := rope_of(values)).get("rope_type", rope.get("type")) not in (None, "default"):
        only({**values, **rope}, partial_rotary_factor=1.0)  # else transformers reads none of it
    base = values.get("rope_theta") or 10_000.0
    return ModelConfig(
        family="decoder",
        norm="pre",
        positions="rotary",
        activation=one_of({"hidden_act": activation}, "hidden_act", ACTIVATIONS, "silu"),
        vocab_size=vocab_size,
        d_model=d_model,
        n_heads=n_heads,
        n_layers=n_layers,
        d_ff=d_ff,
        head_size=None if head_size * n_heads == d_model else head_size,
        n_key_heads=values.get("num_key_value_heads"),
        gated=True,
        head_bias=False,
        dropout=0.0,
        tie_embeddings=bool(values.get("tie_word_embeddings", kind in _TIED)),
        norm_eps=values.get("rms_norm_eps", 1e-6),
        padding_id=padding_of(values, vocab_size, ("bos_token_id", "eos_token_id")),
        init="normal",
        **{"norm_kind": "rms", **fields, **KINDS[kind]},
        **rotary_of(values, head_size, base, longest, min(max_len, longest)),
    )


def _window(values: Values, max_len: int) -> int | None:
    """How many tokens one reads; None where that is all that fit. Llama and Gemma have no windows,
    whatever their config.json says."""
    kind, n_layers = values["model_type"], values["num_hidden_layers"]
    slides_if_told = kind in ("qwen2", "qwen3") and values.get("use_sliding_window")
    window = values.get("sliding_window", 4096)
    if not (kind == "mistral" or slides_if_told) or window is None or window >= max_len:
        return None
    first = 0 if kind == "mistral" else values.get("max_window_layers", 28)
    slides = [one == "sliding_attention" for one in values.get("layer_types") or ()]
    slides = slides or [layer >= first for layer in range(n_layers)]
    if len(set(slides)) > 1:
        raise invalid(
            "some of its layers read {window} tokens and others all; what is read: one window "
            "for all layers, or a --max-len of at most that",
            window=window,
        )
    return int(window) if slides[0] else None


def weights(stored: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """Their weights under our names. Raises ValueError for a missing or a surplus one."""
    tied = (r"lm_head\.weight",) if config.tie_embeddings else ()
    theirs = Stored(stored, PREFIX, (*IGNORED, *tied))
    ours = {"embedding.tokens.weight": theirs.take("embed_tokens.weight")}
    for layer in range(config.n_layers):
        here, there = f"decoder.layers.{layer}", f"layers.{layer}"
        attention, fed = f"{here}.self_attention", f"{here}.feed_forward"
        for mine, other, bias in (
            (f"{attention}.query", "self_attn.q_proj", config.attention_bias),
            (f"{attention}.key", "self_attn.k_proj", config.attention_bias),
            (f"{attention}.value", "self_attn.v_proj", config.attention_bias),
            (f"{attention}.output", "self_attn.o_proj", config.has_output_bias),
            (f"{fed}.gate", "mlp.gate_proj", config.feed_forward_bias),
            (f"{fed}.expand", "mlp.up_proj", config.feed_forward_bias),
            (f"{fed}.contract", "mlp.down_proj", config.feed_forward_bias),
            (f"{here}.self_residual.norm", "input_layernorm", False),
            (f"{here}.feed_forward_residual.norm", "post_attention_layernorm", False),
        ):
            ours |= theirs.linear(mine, f"{there}.{other}", bias=bias)
        if config.norm_heads:
            ours |= theirs.linear(
                f"{attention}.query_norm", f"{there}.self_attn.q_norm", bias=False
            )
            ours |= theirs.linear(f"{attention}.key_norm", f"{there}.self_attn.k_norm", bias=False)
    ours |= theirs.linear("decoder.norm", "norm", bias=False)
    if not config.tie_embeddings:
        ours["head.weight"] = theirs.take("lm_head.weight")
    theirs.finish()
    return ours
