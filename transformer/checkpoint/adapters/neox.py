"""GPT-NeoX, Pythia: q, k and v stand side by side for each head; blocks may be parallel."""

from __future__ import annotations

from collections.abc import Mapping

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
from transformer.model.config import ModelConfig

PREFIX = "gpt_neox."
IGNORED = (r"layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)",)


def config(values: Values, max_len: int) -> ModelConfig:
    """Our configuration of their config.json. Raises ValueError for what we do not have."""
    names = ("vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers")
    vocab_size, d_model, n_heads, n_layers = needed(values, *names)
    d_ff, longest = needed(values, "intermediate_size", "max_position_embeddings")
    only(values, is_causal=True)
    share = rope_of(values).get("partial_rotary_factor", values.get("rotary_pct", 0.25))
    rotary_size = int(d_model // n_heads * share)
    base = values.get("rotary_emb_base") or 10_000.0
    return ModelConfig(
        family="decoder",
        norm="pre",
        positions="rotary",
        activation=one_of(values, "hidden_act", ACTIVATIONS, "gelu"),
        vocab_size=vocab_size,
        d_model=d_model,
        n_heads=n_heads,
        n_layers=n_layers,
        d_ff=d_ff,
        parallel=values.get("use_parallel_residual", True),
        attention_bias=values.get("attention_bias", True),
        head_bias=False,
        tie_embeddings=bool(values.get("tie_word_embeddings", False)),
        norm_eps=values.get("layer_norm_eps", 1e-5),
        padding_id=padding_of(values, vocab_size, ("bos_token_id", "eos_token_id")),
        init="normal",
        **rotary_of(values, rotary_size, base, longest, min(max_len, longest)),
    )


def weights(stored: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """Their weights under our names. Raises ValueError for a missing or a surplus one."""
    tied = (r"embed_out\.weight",) if config.tie_embeddings else ()
    theirs = Stored(stored, PREFIX, (*IGNORED, *tied))
    ours = {"embedding.tokens.weight": theirs.take("embed_in.weight")}
    for layer in range(config.n_layers):
        here, there = f"decoder.layers.{layer}", f"layers.{layer}"
        for part in ("weight", "bias") if config.attention_bias else ("weight",):
            made = theirs.take(f"{there}.attention.query_key_value.{part}")
            by_head = made.unflatten(0, (config.n_heads, 3, config.d_head))
            for at, name in enumerate(("query", "key", "value")):
                ours[f"{here}.self_attention.{name}.{part}"] = by_head[:, at].flatten(0, 1)
        ours |= theirs.linear(
            f"{here}.self_attention.output", f"{there}.attention.dense", bias=config.attention_bias
        )
        ours |= theirs.linear(f"{here}.feed_forward.expand", f"{there}.mlp.dense_h_to_4h")
        ours |= theirs.linear(f"{here}.feed_forward.contract", f"{there}.mlp.dense_4h_to_h")
        ours |= theirs.linear(f"{here}.self_residual.norm", f"{there}.input_layernorm")
        second = f"{there}.post_attention_layernorm"
        ours |= theirs.linear(f"{here}.feed_forward_residual.norm", second)
    ours |= theirs.linear("decoder.norm", "final_layer_norm")
    if not config.tie_embeddings:
        ours["head.weight"] = theirs.take("embed_out.weight")
    theirs.finish()
    return ours
