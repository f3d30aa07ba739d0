"""GPTBigCode (SantaCoder, StarCoder): GPT-2 whose heads may share one head of keys and values."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from transformer.checkpoint.adapters.gpt2 import IGNORED, LAYER, PREFIX
from transformer.checkpoint.adapters.gpt2 import config as gpt2_config
from transformer.checkpoint.adapters.options import Stored, Values, embedding_and_head, only
from transformer.model.config import ModelConfig

_PARTS = ("query", "key", "value")


def config(values: Values, max_len: int) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    shared = values.get("multi_query", True)
    return gpt2_config(values, max_len).replace(n_key_heads=1 if shared else None)


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    theirs = Stored(stored, PREFIX, IGNORED)
    if "lm_head.weight" not in theirs:
        only(values, tie_word_embeddings=True)
    ours = embedding_and_head(theirs, config, values, "wte.weight", "lm_head.weight")
    ours["embedding.positions.table.weight"] = theirs.take("wpe.weight")[: config.max_len]
    for layer in range(config.n_layers):
        names = [f"decoder.layers.{layer}.self_attention.{part}" for part in _PARTS]
        joined = f"h.{layer}.attn.c_attn"
        if values.get("multi_query", True):
            ours |= theirs.rows(names, joined, [config.d_model, config.d_head, config.d_head])
            continue
        for kind, rows in theirs.linear("", joined).items():  # head by head
            by_head = rows.unflatten(0, (config.n_heads, 3, config.d_head))
            for at, name in enumerate(names):
                ours[f"{name}{kind}"] = by_head[:, at].flatten(0, 1)
    ours |= theirs.layers(config.n_layers, "decoder.layers", "h", LAYER)
    ours |= theirs.linear("decoder.norm", "ln_f")
    theirs.finish(values)
    return ours
