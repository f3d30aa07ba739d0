"""GPT-2 and DistilGPT-2: one matrix for q, k and v; matrices are stored (in, out)."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from transformer.checkpoint.adapters.heads import decoder_of, embedding_and_head
from transformer.checkpoint.adapters.options import ACTIVATIONS, Values, one_of, only, sizes_of
from transformer.checkpoint.adapters.stored import Stored
from transformer.model.config import ModelConfig

PREFIX = "transformer."
# Masks, and the second head of GPT2DoubleHeadsModel.
IGNORED = (r"h\.\d+\.attn\.(bias|masked_bias)", r"multiple_choice_head\..*")
LAYER = {
    "self_attention.output": "attn.c_proj",
    "self_residual.norm": "ln_1",
    "feed_forward.expand": "mlp.c_fc",
    "feed_forward.contract": "mlp.c_proj",
    "feed_forward_residual.norm": "ln_2",
}


def config(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    only(
        values, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False,
        add_cross_attention=False,
    )  # fmt: skip
    sizes = sizes_of(values, max_len, ("vocab_size", "n_embd", "n_head", "n_layer", "n_positions"))
    return decoder_of(
        values,
        stored,
        sizes,
        norm="pre",
        positions="learned",
        activation=one_of(values, "activation_function", ACTIVATIONS, "gelu_new"),
        d_ff=values.get("n_inner") or 4 * sizes["d_model"],
    )


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    theirs = Stored(stored, PREFIX, IGNORED)
    ours = embedding_and_head(theirs, config, values, "wte.weight", "lm_head.weight")
    ours |= {
        "embedding.positions.table.weight": theirs.take("wpe.weight")[: config.max_len],
    }
    for layer in range(config.n_layers):
        here, there = f"decoder.layers.{layer}", f"h.{layer}"
        weight, bias = (theirs.take(f"{there}.attn.c_attn.{part}") for part in ("weight", "bias"))
        for at, name in enumerate(("query", "key", "value")):
            ours[f"{here}.self_attention.{name}.weight"] = weight.chunk(3, dim=1)[at].T
            ours[f"{here}.self_attention.{name}.bias"] = bias.chunk(3)[at]
    layers = theirs.layers(config.n_layers, "decoder.layers", "h", LAYER)
    ours |= {name: x.T if x.dim() == 2 else x for name, x in layers.items()}
    ours |= theirs.linear("decoder.norm", "ln_f")
    theirs.finish(values)
    return ours
