"""Marian (opus-mt): an encoder-decoder whose targets begin with the padding token."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from transformer.checkpoint.adapters.options import (
    ACTIVATIONS,
    FAIRSEQ_LAYER,
    Stored,
    Values,
    needed,
    one_of,
    only,
    shared_tables,
    sizes_of,
)
from transformer.model.config import ModelConfig

PREFIX = "model."
IGNORED = (r"(en|de)coder\.embed_positions\.weight",)  # fixed waves
_CROSS = {
    "cross_attention.query": "encoder_attn.q_proj",
    "cross_attention.key": "encoder_attn.k_proj",
    "cross_attention.value": "encoder_attn.v_proj",
    "cross_attention.output": "encoder_attn.out_proj",
    "cross_residual.norm": "encoder_attn_layer_norm",
}
_SIZES = (
    "vocab_size", "d_model", "encoder_attention_heads", "encoder_layers",
    "max_position_embeddings", "encoder_ffn_dim",
)  # fmt: skip


def config(values: Values, max_len: int) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    only(
        values, share_encoder_decoder_embeddings=True, tie_word_embeddings=True,
        normalize_before=False, normalize_embedding=False, add_final_layer_norm=False,
        static_position_embeddings=True, add_bias_logits=False, is_causal=True,
    )  # fmt: skip
    for name in ("layers", "attention_heads", "ffn_dim"):
        _check_same(values, name)
    sizes = sizes_of(values, max_len, _SIZES)
    (padding,) = needed(values, "pad_token_id")
    only(values, decoder_vocab_size=sizes["vocab_size"])
    return ModelConfig(
        family="encoder-decoder",
        norm="post",
        positions="sinusoidal-halves",
        activation=one_of(values, "activation_function", ACTIVATIONS, "gelu"),
        scale_embeddings=bool(values.get("scale_embedding", False)),
        tie_embeddings=True,
        share_embeddings=True,
        padding_id=padding,
        init="normal",
        **sizes,
    )


def _check_same(values: Values, name: str) -> None:
    """Raise ValueError unless encoder and decoder have the same number."""
    encoder, decoder = needed(values, f"encoder_{name}", f"decoder_{name}")
    if encoder != decoder:
        raise ValueError(
            f"its encoder has {name}={encoder} and its decoder {decoder}; what is read: as many in "
            "both"
        )


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    theirs = Stored(stored, PREFIX, IGNORED)
    theirs.head(values, "final_logits_bias")
    ours = shared_tables(theirs)
    ours["head.bias"] = theirs.take("final_logits_bias")[0]
    for stack, names in (("encoder", FAIRSEQ_LAYER), ("decoder", {**FAIRSEQ_LAYER, **_CROSS})):
        ours |= theirs.layers(config.n_layers, f"{stack}.layers", f"{stack}.layers", names)
    theirs.finish(values)
    return ours
