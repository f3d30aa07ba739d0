"""GPTBigCode (SantaCoder, StarCoder): GPT-2 whose heads may share one head of keys and values."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from transformer.checkpoint.adapters.gpt2 import IGNORED, LAYER, PREFIX
from transformer.checkpoint.adapters.gpt2 import config as gpt2_config
from transformer.checkpoint.adapters.heads import embedding_and_head
from transformer.checkpoint.adapters.options import Values
from transformer.checkpoint.adapters.stored import Stored
from transformer.model.config import ModelConfig


def config(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    shared = values.get("multi_query", True)
    return gpt2_config(values, max_len, stored).replace(n_key_heads=1 if shared else None)


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    theirs = Stored(stored, PREFIX, IGNORED)
    ours = embedding_and_head(theirs, config, values, "wte.weight", "lm_head.weight")
    ours["embedding.positions.table.weight"] = theirs.take("wpe.weight")[: config.max_len]
    for layer in range(config.n_layers):
        attention = f"decoder.layers.{layer}.self_attention"
        ours |= theirs.by_group(attention, f"h.{layer}.attn.c_attn", config)
    ours |= theirs.layers(config.n_layers, "decoder.layers", "h", LAYER)
    ours |= theirs.linear("decoder.norm", "ln_f")
    theirs.finish(values)
    return ours
