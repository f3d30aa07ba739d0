"""Falcon: parallel blocks with rotary positions; heads share keys and values, or groups do."""

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

PREFIX = "transformer."
IGNORED = (r"h\.\d+\.self_attention\.rotary_emb\.inv_freq",)
_PARTS = ("query", "key", "value")
_LAYER = {
    "self_attention.output": "self_attention.dense",
    "feed_forward.expand": "mlp.dense_h_to_4h",
    "feed_forward.contract": "mlp.dense_4h_to_h",
}
_SIZES = (
    "vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers",
    "max_position_embeddings",
)  # fmt: skip


def config(values: Values, max_len: int) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    only(values, alibi=False)  # Falcon divides its linear biases as it divides scores
    values = {"max_position_embeddings": 2048, **values}
    sizes, rope = sizes_of(values, max_len, _SIZES), rope_of(values)
    bias, base = bool(values.get("bias", False)), values.get("rope_theta") or 10_000.0
    return ModelConfig(
        family="decoder",
        positions="rotary",
        n_key_heads=_key_heads(values),
        parallel=_is_parallel(values),
        activation=one_of(values, "activation", ACTIVATIONS, "gelu"),
        d_ff=values.get("ffn_hidden_size") or 4 * sizes["d_model"],
        attention_bias=bias,
        feed_forward_bias=bias,
        head_bias=False,
        tie_embeddings=values.get("tie_word_embeddings") in (None, True),
        norm_eps=values.get("layer_norm_epsilon", 1e-5),
        padding_id=padding_of(values, sizes["vocab_size"], ("bos_token_id", "eos_token_id")),
        init="normal",
        **sizes,
        **rotary_of(values, rope, sizes["d_model"] // sizes["n_heads"], base),
    )


def _is_grouped(values: Values) -> bool:
    return bool(values.get("new_decoder_architecture", False))


def _is_parallel(values: Values) -> bool:
    return _is_grouped(values) or bool(values.get("parallel_attn", True))


def _key_heads(values: Values) -> int | None:
    if _is_grouped(values):
        return values.get("num_kv_heads")
    return 1 if values.get("multi_query", True) else None


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    theirs, names = Stored(stored, PREFIX, IGNORED), dict[str, Any](_LAYER)
    ours = embedding_and_head(theirs, config, values, "word_embeddings.weight", "lm_head.weight")
    first, second = "input_layernorm", "post_attention_layernorm"
    if "h.0.ln_attn.weight" in theirs:
        first, second = "ln_attn", "ln_mlp"
    one_norm = f"h.0.{second}.weight" not in theirs
    names |= {"self_residual.norm": first}
    names |= {} if one_norm else {"feed_forward_residual.norm": second}
    groups = config.key_heads
    for layer in range(config.n_layers):
        here = f"decoder.layers.{layer}"
        for kind, rows in theirs.linear("", f"h.{layer}.self_attention.query_key_value").items():
            heads = rows.unflatten(0, (groups, -1, config.d_head))
            for part, x in zip(_PARTS, (heads[:, :-2], heads[:, -2], heads[:, -1]), strict=True):
                whole = x.flatten(0, 2) if x.dim() > heads.dim() - 1 else x.flatten(0, 1)
                ours[f"{here}.self_attention.{part}{kind}"] = whole
    ours |= theirs.layers(config.n_layers, "decoder.layers", "h", names)
    ours |= theirs.linear("decoder.norm", "ln_f")
    theirs.finish(values)
    for layer in range(config.n_layers) if one_norm else ():
        here = f"decoder.layers.{layer}"
        for kind in ("weight", "bias"):
            norm = ours[f"{here}.self_residual.norm.{kind}"]
            ours[f"{here}.feed_forward_residual.norm.{kind}"] = norm.clone()
    return ours
