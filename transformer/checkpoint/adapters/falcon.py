"""Falcon: parallel blocks with rotary positions; heads share keys and values, or groups do."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from transformer.checkpoint.adapters.heads import decoder_of, embedding_and_head
from transformer.checkpoint.adapters.options import (
    ACTIVATIONS,
    Values,
    one_of,
    only,
    rope_of,
    rotary_of,
    sizes_of,
)
from transformer.checkpoint.adapters.stored import Stored, second_norm
from transformer.model.config import ModelConfig

PREFIX = "transformer."
IGNORED = (r"h\.\d+\.self_attention\.rotary_emb\.inv_freq",)
_LAYER = {
    "self_attention.output": "self_attention.dense",
    "feed_forward.expand": "mlp.dense_h_to_4h",
    "feed_forward.contract": "mlp.dense_4h_to_h",
}
_SIZES = (
    "vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers",
    "max_position_embeddings",
)  # fmt: skip


def config(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    only(values, alibi=False)  # Falcon divides its linear biases as it divides scores
    values = {"max_position_embeddings": 2048, **values}
    sizes, rope = sizes_of(values, max_len, _SIZES), rope_of(values)
    bias, base = bool(values.get("bias", False)), values.get("rope_theta") or 10_000.0
    return decoder_of(
        values,
        stored,
        sizes,
        positions="rotary",
        n_key_heads=_key_heads(values),
        parallel=_is_parallel(values),
        activation=one_of(values, "activation", ACTIVATIONS, "gelu"),
        d_ff=values.get("ffn_hidden_size") or 4 * sizes["d_model"],
        attention_bias=bias,
        feed_forward_bias=bias,
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
    theirs, names = Stored(stored, PREFIX, IGNORED), dict(_LAYER)
    ours = embedding_and_head(theirs, config, values, "word_embeddings.weight", "lm_head.weight")
    first, second = "input_layernorm", "post_attention_layernorm"
    if "h.0.ln_attn.weight" in theirs:
        first, second = "ln_attn", "ln_mlp"
    one_norm = f"h.0.{second}.weight" not in theirs
    names |= {"self_residual.norm": first}
    names |= {} if one_norm else {"feed_forward_residual.norm": second}
    for layer in range(config.n_layers):
        joined = f"h.{layer}.self_attention.query_key_value"
        ours |= theirs.by_group(f"decoder.layers.{layer}.self_attention", joined, config)
    ours |= theirs.layers(config.n_layers, "decoder.layers", "h", names)
    ours |= theirs.linear("decoder.norm", "ln_f")
    theirs.finish(values)
    return ours | (second_norm(ours) if one_norm else {})
