"""GPT-Neo, and TinyStories' own models: layers that read all and layers with a window in turn."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from transformer.checkpoint.adapters.heads import decoder_of, embedding_and_head
from transformer.checkpoint.adapters.options import ACTIVATIONS, Values, one_of, sizes_of
from transformer.checkpoint.adapters.stored import Stored
from transformer.model.config import ModelConfig

PREFIX = "transformer."
IGNORED = (r"h\.\d+\.attn\.attention\.(bias|masked_bias)",)  # masks
_TYPES = {"global": "full_attention", "local": "sliding_attention"}
_LAYER = {
    "self_attention.query": "attn.attention.q_proj",
    "self_attention.key": "attn.attention.k_proj",
    "self_attention.value": "attn.attention.v_proj",
    "self_attention.output": "attn.attention.out_proj",
    "self_residual.norm": "ln_1",
    "feed_forward.expand": "mlp.c_fc",
    "feed_forward.contract": "mlp.c_proj",
    "feed_forward_residual.norm": "ln_2",
}
_SIZES = ("vocab_size", "hidden_size", "num_heads", "num_layers", "max_position_embeddings")


def config(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    sizes = sizes_of(values, max_len, _SIZES)
    layers = values.get("attention_layers") or [
        name
        for names, times in values.get("attention_types") or [[["global", "local"], 12]]
        for name in names * times
    ]
    types = [one_of({"attention_types": name}, "attention_types", _TYPES, "") for name in layers]
    return decoder_of(
        values,
        stored,
        sizes,
        positions="learned",
        activation=one_of(values, "activation_function", ACTIVATIONS, "gelu_new"),
        d_ff=values.get("intermediate_size") or 4 * sizes["d_model"],
        window=values.get("window_size", 256),
        layer_types=tuple(types),
        score_scale=1.0,
        attention_bias=False,
        output_bias=True,
    )


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    theirs = Stored(stored, PREFIX, IGNORED)
    ours = embedding_and_head(theirs, config, values, "wte.weight", "lm_head.weight")
    ours["embedding.positions.table.weight"] = theirs.take("wpe.weight")[: config.max_len]
    ours |= theirs.layers(config.n_layers, "decoder.layers", "h", _LAYER)
    ours |= theirs.linear("decoder.norm", "ln_f")
    theirs.finish(values)
    return ours
