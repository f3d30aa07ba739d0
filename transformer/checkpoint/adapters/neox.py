"""GPT-NeoX, Pythia: one matrix holds each head's q, k and v; blocks may be parallel."""

from __future__ import annotations

from collections.abc import Mapping

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

PREFIX = "gpt_neox."
IGNORED = (r"layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)",)
_LAYER = {
    "self_attention.output": "attention.dense",
    "self_residual.norm": "input_layernorm",
    "feed_forward.expand": "mlp.dense_h_to_4h",
    "feed_forward.contract": "mlp.dense_4h_to_h",
    "feed_forward_residual.norm": "post_attention_layernorm",
}


def config(values: Values, max_len: int) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    sizes = sizes_of(values, max_len)
    only(values, is_causal=True)
    share = rope_of(values).get("partial_rotary_factor", values.get("rotary_pct", 0.25))
    rotary_size = int(sizes["d_model"] // sizes["n_heads"] * share)
    base = values.get("rotary_emb_base") or 10_000.0
    return ModelConfig(
        family="decoder",
        norm="pre",
        positions="rotary",
        activation=one_of(values, "hidden_act", ACTIVATIONS, "gelu"),
        parallel=values.get("use_parallel_residual", True),
        attention_bias=values.get("attention_bias", True),
        head_bias=False,
        tie_embeddings=bool(values.get("tie_word_embeddings", False)),
        norm_eps=values.get("layer_norm_eps", 1e-5),
        padding_id=padding_of(values, sizes["vocab_size"], ("bos_token_id", "eos_token_id")),
        init="normal",
        **sizes,
        **rotary_of(values, rope_of(values), rotary_size, base),
    )


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    theirs = Stored(stored, PREFIX, IGNORED)
    ours = embedding_and_head(theirs, config, values, "embed_in.weight", "embed_out.weight")
    for layer in range(config.n_layers):
        here, there = f"decoder.layers.{layer}", f"layers.{layer}"
        for part in ("weight", "bias") if config.attention_bias else ("weight",):
            made = theirs.take(f"{there}.attention.query_key_value.{part}")
            by_head = made.unflatten(0, (config.n_heads, 3, config.d_head))
            for at, name in enumerate(("query", "key", "value")):
                ours[f"{here}.self_attention.{name}.{part}"] = by_head[:, at].flatten(0, 1)
    ours |= theirs.layers(config.n_layers, "decoder.layers", "layers", _LAYER)
    ours |= theirs.linear("decoder.norm", "final_layer_norm")
    theirs.finish(values)
    return ours
