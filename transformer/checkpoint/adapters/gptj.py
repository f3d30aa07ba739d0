"""GPT-J and CodeGen: neighbouring features are rotated, and attention and feed-forward read one
norm."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from transformer.checkpoint.adapters.heads import decoder_of, embedding_and_head
from transformer.checkpoint.adapters.options import ACTIVATIONS, Values, one_of, sizes_of
from transformer.checkpoint.adapters.stored import Stored, half_split, second_norm
from transformer.model.config import ModelConfig

KINDS = ("gptj", "codegen")
PREFIX = "transformer."
IGNORED = (r"h\.\d+\.attn\.(bias|masked_bias|causal_mask)",)
_SHARDS = 4  # in which CodeGen keeps its heads
_LAYER = {
    "self_attention.query": "attn.q_proj",
    "self_attention.key": "attn.k_proj",
    "self_attention.value": "attn.v_proj",
    "self_attention.output": "attn.out_proj",
    "self_residual.norm": "ln_1",
    "feed_forward.expand": "mlp.fc_in",
    "feed_forward.contract": "mlp.fc_out",
}
_SIZES = ("vocab_size", "n_embd", "n_head", "n_layer", "n_positions")


def config(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    sizes = sizes_of(values, max_len, _SIZES)
    if values["model_type"] == "codegen" and sizes["n_heads"] % _SHARDS:
        raise ValueError(f"it has n_head={sizes['n_heads']}; needed: a multiple of {_SHARDS}")
    return decoder_of(
        values,
        stored,
        sizes,
        positions="rotary",
        rotary_size=values.get("rotary_dim", 64),
        parallel=True,
        activation=one_of(values, "activation_function", ACTIVATIONS, "gelu_new"),
        d_ff=values.get("n_inner") or 4 * sizes["d_model"],
        attention_bias=False,
        head_bias=True,
        tied=False,
    )


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    theirs, names = Stored(stored, PREFIX, IGNORED), dict(_LAYER)
    ours = embedding_and_head(theirs, config, values, "wte.weight", "lm_head.weight")
    ours |= {"head.bias": theirs.take("lm_head.bias")} if config.head_bias else {}
    if values["model_type"] == "codegen":
        for layer in range(config.n_layers):
            joined = theirs.take(f"h.{layer}.attn.qkv_proj.weight").unflatten(0, (_SHARDS, 3, -1))
            for at, part in enumerate(("query", "value", "key")):
                name = f"self_attention.{part}"
                names.pop(name, None)
                ours[f"decoder.layers.{layer}.{name}.weight"] = joined[:, at].flatten(0, 1)
    ours |= theirs.layers(config.n_layers, "decoder.layers", "h", names)
    ours |= theirs.linear("decoder.norm", "ln_f")
    theirs.finish(values)
    ours |= second_norm(ours)
    for layer in range(config.n_layers):
        for part in ("query", "key"):
            name = f"decoder.layers.{layer}.self_attention.{part}.weight"
            ours[name] = half_split(ours[name], config.n_heads, config.rotary.size)
    return ours
