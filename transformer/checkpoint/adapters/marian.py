"""Marian (opus-mt): an encoder-decoder whose targets begin with the padding's token."""

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
)
from transformer.messages import invalid
from transformer.model.config import ModelConfig

PREFIX = "model."
# Fixed waves, the shared table once more, and the head that is tied to it.
IGNORED = (r"(en|de)coder\.embed_(positions|tokens)\.weight", r"lm_head\.weight")
_LAYER = {
    "self_attention.query": "self_attn.q_proj",
    "self_attention.key": "self_attn.k_proj",
    "self_attention.value": "self_attn.v_proj",
    "self_attention.output": "self_attn.out_proj",
    "self_residual.norm": "self_attn_layer_norm",
    "feed_forward.expand": "fc1",
    "feed_forward.contract": "fc2",
    "feed_forward_residual.norm": "final_layer_norm",
}
_CROSS = {
    "cross_attention.query": "encoder_attn.q_proj",
    "cross_attention.key": "encoder_attn.k_proj",
    "cross_attention.value": "encoder_attn.v_proj",
    "cross_attention.output": "encoder_attn.out_proj",
    "cross_residual.norm": "encoder_attn_layer_norm",
}


def config(values: Values, max_len: int) -> ModelConfig:
    """Our configuration of their config.json. Raises ValueError for what we do not have."""
    only(
        values, share_encoder_decoder_embeddings=True, tie_word_embeddings=True,
        normalize_before=False, normalize_embedding=False, add_final_layer_norm=False,
        static_position_embeddings=True, add_bias_logits=False, is_causal=True,
    )  # fmt: skip
    names = ("vocab_size", "d_model", "max_position_embeddings", "pad_token_id")
    vocab_size, d_model, longest, padding = needed(values, *names)
    n_layers, n_heads, d_ff = (
        _same(values, name) for name in ("layers", "attention_heads", "ffn_dim")
    )
    only(values, decoder_start_token_id=padding, decoder_vocab_size=vocab_size)
    return ModelConfig(
        family="encoder-decoder",
        norm="post",
        positions="sinusoidal-halves",
        activation=one_of(values, "activation_function", ACTIVATIONS, "gelu"),
        vocab_size=vocab_size,
        d_model=d_model,
        n_heads=n_heads,
        n_layers=n_layers,
        d_ff=d_ff,
        max_len=min(max_len, longest),
        scale_embeddings=bool(values.get("scale_embedding", False)),
        tie_embeddings=True,
        share_embeddings=True,
        padding_id=padding,
        padded_start=True,
        init="normal",
    )


def _same(values: Values, name: str) -> int:
    """What encoder and decoder have alike."""
    encoder, decoder = needed(values, f"encoder_{name}", f"decoder_{name}")
    if encoder != decoder:
        raise invalid(
            "its encoder has {name}={encoder} and its decoder {decoder}; what is read: as many "
            "in both",
            name=name,
            encoder=encoder,
            decoder=decoder,
        )
    return int(encoder)


def weights(stored: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """Their weights under our names. Raises ValueError for a missing or a surplus one."""
    theirs = Stored(stored, PREFIX, IGNORED)
    ours = {
        "source_embedding.tokens.weight": theirs.take("shared.weight"),
        "head.bias": theirs.take("final_logits_bias")[0],
    }
    for stack, names in (("encoder", _LAYER), ("decoder", {**_LAYER, **_CROSS})):
        for layer in range(config.n_layers):
            here = f"{stack}.layers.{layer}"
            for mine, other in names.items():
                ours |= theirs.linear(f"{here}.{mine}", f"{here}.{other}")
    theirs.finish()
    return ours
