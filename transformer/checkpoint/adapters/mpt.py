"""MPT: positions are linear biases (ALiBi), and no part has a bias of its own."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from transformer.checkpoint.adapters.heads import decoder_of, embedding_and_head
from transformer.checkpoint.adapters.options import Values, only, sizes_of
from transformer.checkpoint.adapters.stored import Stored, with_biases
from transformer.model.config import ModelConfig

PREFIX = "transformer."
_LAYER = {
    "self_attention.output": "attn.out_proj",
    "self_residual.norm": "norm_1",
    "feed_forward.expand": "ffn.up_proj",
    "feed_forward.contract": "ffn.down_proj",
    "feed_forward_residual.norm": "norm_2",
}
_SIZES = ("vocab_size", "d_model", "n_heads", "n_layers", "max_seq_len")


def config(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    attention = values.get("attn_config") or {}
    only(
        attention, attn_type="multihead_attention", clip_qkv=None, prefix_lm=False, qk_ln=False,
        alibi=True, alibi_bias_max=8,
    )  # fmt: skip
    only(values, no_bias=True, logit_scale=None)
    sizes = sizes_of({"max_seq_len": 2048, **values}, max_len, _SIZES)
    return decoder_of(
        values,
        stored,
        sizes,
        positions="alibi",
        activation="gelu",
        d_ff=4 * sizes["d_model"],
        score_scale=attention.get("softmax_scale"),
        attention_bias=False,
        feed_forward_bias=False,
    )


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    theirs = Stored(stored, PREFIX)
    ours = embedding_and_head(theirs, config, values, "wte.weight", "lm_head.weight")
    for layer in range(config.n_layers):
        here = f"decoder.layers.{layer}.self_attention"
        names = [f"{here}.{part}" for part in ("query", "key", "value")]
        ours |= theirs.rows(names, f"blocks.{layer}.attn.Wqkv", [config.d_model] * 3)
    ours |= theirs.layers(config.n_layers, "decoder.layers", "blocks", _LAYER)
    ours |= theirs.linear("decoder.norm", "norm_f")
    theirs.finish(values)
    return with_biases(ours)
