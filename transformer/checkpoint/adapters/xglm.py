"""XGLM: fixed waves as positions, norms before each part and after the last layer."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from transformer.checkpoint.adapters.heads import decoder_of, embedding_and_head
from transformer.checkpoint.adapters.options import ACTIVATIONS, Values, one_of, only, sizes_of
from transformer.checkpoint.adapters.stored import FAIRSEQ_LAYER, Stored
from transformer.model.config import ModelConfig

PREFIX = "model."
IGNORED = (r"embed_positions\.weights",)  # the waves
_SIZES = (
    "vocab_size", "d_model", "attention_heads", "num_layers", "max_position_embeddings", "ffn_dim",
)  # fmt: skip


def config(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    only(values, add_cross_attention=False)
    return decoder_of(
        values,
        stored,
        sizes_of(values, max_len, _SIZES),
        positions="sinusoidal-fairseq",
        activation=one_of(values, "activation_function", ACTIVATIONS, "gelu"),
        scale_embeddings=bool(values.get("scale_embedding", True)),
        norm_eps=1e-5,
    )


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    theirs = Stored(stored, PREFIX, IGNORED)
    ours = embedding_and_head(theirs, config, values, "embed_tokens.weight", "lm_head.weight")
    ours |= theirs.layers(config.n_layers, "decoder.layers", "layers", FAIRSEQ_LAYER)
    ours |= theirs.linear("decoder.norm", "layer_norm")
    theirs.finish(values)
    return ours
