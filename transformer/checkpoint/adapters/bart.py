"""BART and its relatives: encoder-decoders whose weights have fairseq's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor

from transformer.checkpoint.adapters.heads import seq2seq_labels, tables_and_head
from transformer.checkpoint.adapters.options import (
    ACTIVATIONS,
    Values,
    needed,
    one_of,
    only,
    sizes_of,
)
from transformer.checkpoint.adapters.stored import FAIRSEQ_LAYER, Stored
from transformer.model.config import ModelConfig
from transformer.model.positions import FIRST_OF_FAIRSEQ

PREFIX = "model."
# Fixed waves, and numbers that fairseq left behind.
IGNORED = (r"(en|de)coder\.embed_positions\.weights", r"(en|de)coder\.version")
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


class BartKind(NamedTuple):
    """How a family differs. fields: of ModelConfig. activation, scaled: the defaults of their keys
    in config.json. refused: options with one supported value. needs_bias: whether a folder without
    a bias of the logits has no head."""

    fields: Mapping[str, Any]
    activation: str = "gelu"
    scaled: bool = False
    refused: Mapping[str, Any] = {}
    needs_bias: bool = False


KINDS = {
    "bart": BartKind({"norm": "post", "positions": "learned", "norm_embeddings": True}),
    "mbart": BartKind({"norm": "pre", "positions": "learned", "norm_embeddings": True}),
    "m2m_100": BartKind(
        {"norm": "pre", "positions": "sinusoidal-fairseq"}, "relu", scaled=True,
        refused={"pad_token_id": FIRST_OF_FAIRSEQ - 1},
    ),
    "pegasus": BartKind({"norm": "pre", "positions": "sinusoidal-halves"}),
    "marian": BartKind(
        {"norm": "post", "positions": "sinusoidal-halves"},
        refused={
            "share_encoder_decoder_embeddings": True, "normalize_before": False,
            "normalize_embedding": False, "add_final_layer_norm": False,
            "static_position_embeddings": True, "add_bias_logits": False,
        },
        needs_bias=True,
    ),
}  # fmt: skip


def config(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    kind = KINDS[values["model_type"]]
    only(values, tie_word_embeddings=True, **kind.refused)
    for name in ("attention_heads", "ffn_dim"):
        _check_same(values, name)
    sizes = sizes_of(values, max_len, _SIZES)
    padding, n_layers = needed(values, "pad_token_id", "decoder_layers")
    only(values, decoder_vocab_size=sizes["vocab_size"])
    head = seq2seq_labels(values) or {
        "head_bias": kind.needs_bias or "final_logits_bias" in stored, "tie_embeddings": True,
    }  # fmt: skip
    return ModelConfig(
        family="encoder-decoder",
        activation=one_of(values, "activation_function", ACTIVATIONS, kind.activation),
        scale_embeddings=bool(values.get("scale_embedding", kind.scaled)),
        share_embeddings=True,
        target_n_layers=None if n_layers == sizes["n_layers"] else n_layers,
        padding_id=padding,
        init="normal",
        **{**kind.fields, **sizes, **head},
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
    if config.head_bias:
        theirs.head(values, "final_logits_bias")
    ours = tables_and_head(theirs, config)
    if config.head_bias:
        ours["head.bias"] = theirs.take("final_logits_bias")[0]
    for stack, side, names in (
        ("encoder", "source", FAIRSEQ_LAYER),
        ("decoder", "target", {**FAIRSEQ_LAYER, **_CROSS}),
    ):
        if config.positions == "learned":
            table = theirs.take(f"{stack}.embed_positions.weight")
            rows = slice(FIRST_OF_FAIRSEQ, FIRST_OF_FAIRSEQ + config.max_len)
            ours[f"{side}_embedding.positions.table.weight"] = table[rows]
        else:
            theirs.drop(rf"{stack}\.embed_positions\.weight")
        if config.norm_embeddings:
            ours |= theirs.linear(f"{side}_embedding.norm", f"{stack}.layernorm_embedding")
        ours |= theirs.layers(
            config.n_layers_of(stack), f"{stack}.layers", f"{stack}.layers", names
        )
        if config.norm == "pre":
            ours |= theirs.linear(f"{stack}.norm", f"{stack}.layer_norm")
    theirs.finish(values)
    return ours
