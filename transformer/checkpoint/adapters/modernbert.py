"""ModernBERT: an encoder with rotary positions, most of whose layers read a window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from transformer.checkpoint.adapters.heads import embedding_and_head, label_fields
from transformer.checkpoint.adapters.options import (
    ACTIVATIONS,
    Values,
    one_of,
    only,
    padding_of,
    shortest,
    sizes_of,
)
from transformer.checkpoint.adapters.stored import Stored
from transformer.model.config import ModelConfig

PREFIX = "model."
_JOINED = {  # stored matrices that stack several of our weights
    "attn.Wqkv": ("self_attention.query", "self_attention.key", "self_attention.value"),
    "mlp.Wi": ("feed_forward.gate", "feed_forward.expand"),
}
_LAYER = {
    "self_attention.output": "attn.Wo",
    "feed_forward.contract": "mlp.Wo",
    "feed_forward_residual.norm": "mlp_norm",
}
_BASES = {  # the default, and the key of older files
    "full_attention": (160_000.0, "global_rope_theta"),
    "sliding_attention": (10_000.0, "local_rope_theta"),
}
_POOLED = {"cls": "text-labels", "mean": "text-labels-mean"}


def config(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    sizes = sizes_of(values, max_len)
    half = values.get("sliding_window", values.get("local_attention", 128) // 2)
    window = half + 1
    bases = {kind: _base(values, kind) for kind in _BASES}
    return ModelConfig(
        family="encoder",
        norm="pre-but-first",
        positions="rotary",
        rotary_base=bases["full_attention"],
        sliding_rotary_base=bases["sliding_attention"],
        window=window if window < sizes["max_len"] else None,
        layer_types=shortest(_layer_types(values)),
        activation=one_of(values, "hidden_activation", ACTIVATIONS, "gelu"),
        gated=True,
        attention_bias=values.get("attention_bias", False),
        feed_forward_bias=values.get("mlp_bias", False),
        norm_embeddings=True,
        norm_eps=values.get("norm_eps", 1e-5),
        dropout=0.0,
        padding_id=padding_of(values, sizes["vocab_size"]),
        init="normal",
        **_head(values, stored),
        **sizes,
    )


def _base(values: Values, kind: str) -> float:
    """The base of the rotation in a type of layers."""
    default, older = _BASES[kind]
    parameters = (values.get("rope_parameters") or {}).get(kind) or {}
    rope = {**parameters, **(values.get("rope_scaling") or {})}
    only(rope, rope_type="default", type="default")
    return float(rope.get("rope_theta") or values.get(older) or default)


def _layer_types(values: Values) -> list[str]:
    n_layers, every = values["num_hidden_layers"], values.get("global_attn_every_n_layers", 3)
    default = ["sliding_attention" if at % every else "full_attention" for at in range(n_layers)]
    return list(values.get("layer_types") or default)[:n_layers]


def _head(values: Values, stored: Mapping[str, Tensor]) -> dict[str, Any]:
    """The fields that describe the head whose weights are stored."""
    if "head.dense.weight" not in stored:
        return {"head": "none"}
    activation = one_of(values, "hidden_activation", ACTIVATIONS, "gelu")
    if one_of(values, "classifier_activation", ACTIVATIONS, "gelu") != activation:
        only(values, classifier_activation=values.get("hidden_activation", "gelu"))
    if "classifier.weight" not in stored:
        tied = values.get("tie_word_embeddings") in (None, True)
        bias = values.get("decoder_bias", True)
        return {"head_transform": True, "tie_embeddings": tied, "head_bias": bias}
    name = str(values.get("architectures"))
    if "QuestionAnswering" in name:
        head = {"head": "token-labels", **label_fields(values, ("start", "end"), "one token")}
    elif "TokenClassification" in name:
        head = {"head": "token-labels", **label_fields(values, (), "one label")}
    else:
        kind = one_of(values, "classifier_pooling", _POOLED, "cls")
        head = {"head": kind, **label_fields(values, (), "one label")}
    return {"head_transform": True, **head}


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    theirs, tokens = Stored(stored, PREFIX), "embeddings.tok_embeddings.weight"
    if config.head == "tokens":
        ours = embedding_and_head(theirs, config, values, tokens, "decoder.weight")
        ours |= {"head.bias": theirs.take("decoder.bias")} if config.head_bias else {}
    else:
        ours = {"embedding.tokens.weight": theirs.take(tokens)}
        ours |= theirs.linear("head.out", "classifier") if config.labels else {}
    if config.head_transform:
        ours |= theirs.linear("transform.dense", "head.dense")
        ours |= theirs.linear("transform.norm", "head.norm")
    ours |= theirs.linear("embedding.norm", "embeddings.norm")
    for layer in range(config.n_layers):
        here, there = f"encoder.layers.{layer}", f"layers.{layer}"
        for name, parts in _JOINED.items():
            rows = config.d_model if name.startswith("attn") else config.d_ff
            names = [f"{here}.{part}" for part in parts]
            ours |= theirs.rows(names, f"{there}.{name}", [rows] * len(parts))
        if layer:
            ours |= theirs.linear(f"{here}.self_residual.norm", f"{there}.attn_norm")
    ours |= theirs.layers(config.n_layers, "encoder.layers", "layers", _LAYER)
    ours |= theirs.linear("encoder.norm", "final_norm")
    theirs.finish(values)
    return _with_biases(ours)


def _with_biases(ours: dict[str, Tensor]) -> dict[str, Tensor]:
    """Norms and the head's map add 0 where no bias is stored."""
    biased = [name for name in ours if name.endswith(("norm.weight", "transform.dense.weight"))]
    zeros = {name.replace("weight", "bias"): torch.zeros(len(ours[name])) for name in biased}
    return zeros | ours
