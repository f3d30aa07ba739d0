"""GPT-NeoX (Pythia) and BLOOM: one matrix holds each head's q, k and v; blocks may be parallel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

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
from transformer.checkpoint.adapters.stored import Stored
from transformer.model.config import ModelConfig


class Names(NamedTuple):
    """The names of a kind's tensors."""

    prefix: str
    layers: str
    attention: str
    tokens: str
    head: str
    norm: str


KINDS = {
    "gpt_neox": Names(
        "gpt_neox.", "layers", "attention", "embed_in", "embed_out", "final_layer_norm"
    ),
    "bloom": Names("transformer.", "h", "self_attention", "word_embeddings", "lm_head", "ln_f"),
}
IGNORED = (r"layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)",)
LAYER = {
    "self_residual.norm": "input_layernorm",
    "feed_forward.expand": "mlp.dense_h_to_4h",
    "feed_forward.contract": "mlp.dense_4h_to_h",
    "feed_forward_residual.norm": "post_attention_layernorm",
}


def config(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    return (_bloom if values["model_type"] == "bloom" else _neox)(values, max_len, stored)


def _bloom(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    only(values, apply_residual_connection_post_layernorm=False)
    if values.get("pretraining_tp", 1) > 1:
        only(values, slow_but_exact=False)  # with which transformers leaves out biases
    named = {"n_embed": values.get("hidden_size"), **values}
    length = {"seq_length": max_len, **named}  # the positions have no limit
    names = ("vocab_size", "n_embed", "n_head", "n_layer", "seq_length")
    sizes = sizes_of(length, max_len, names)
    return decoder_of(
        values,
        stored,
        sizes,
        positions="alibi",
        activation="gelu-tanh",
        d_ff=4 * sizes["d_model"],
        norm_embeddings=True,
    )


def _neox(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    sizes = sizes_of(values, max_len)
    head_size = sizes["d_model"] // sizes["n_heads"]
    only(values, head_dim=head_size)
    share = rope_of(values).get("partial_rotary_factor", values.get("rotary_pct", 0.25))
    rotary_size = int(head_size * share)
    base = values.get("rotary_emb_base") or 10_000.0
    return decoder_of(
        values,
        stored,
        sizes,
        norm="pre",
        positions="rotary",
        activation=one_of(values, "hidden_act", ACTIVATIONS, "gelu"),
        parallel=values.get("use_parallel_residual", True),
        attention_bias=values.get("attention_bias", True),
        tied=False,
        norm_eps=values.get("layer_norm_eps", 1e-5),
        **rotary_of(values, rope_of(values), rotary_size, base),
    )


def _stored_name(name: str) -> str:
    """The name in files of GPT-NeoX's head, which transformers calls lm_head in memory."""
    return name.replace("lm_head.", "embed_out.")


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    kind = KINDS[values["model_type"]]
    theirs = Stored(stored, kind.prefix, IGNORED, _stored_name if kind.head == "embed_out" else str)
    tables = f"{kind.tokens}.weight", f"{kind.head}.weight"
    ours = embedding_and_head(theirs, config, values, *tables)
    for layer in range(config.n_layers):
        here, there = f"decoder.layers.{layer}", f"{kind.layers}.{layer}.{kind.attention}"
        ours |= theirs.by_group(f"{here}.self_attention", f"{there}.query_key_value", config)
        ours |= theirs.linear(f"{here}.self_attention.output", f"{there}.dense")
    ours |= theirs.layers(config.n_layers, "decoder.layers", kind.layers, LAYER)
    if config.norm_embeddings:
        ours |= theirs.linear("embedding.norm", "word_embeddings_layernorm")
    ours |= theirs.linear("decoder.norm", kind.norm)
    theirs.finish(values)
    return ours
