"""Nomic BERT and GTE: BERT with rotary positions, a gated feed-forward and norms after each sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer.checkpoint.adapters.bert import (
    POOLER,
    embedding_with_head,
    head_fields,
)
from transformer.checkpoint.adapters.bert_kinds import KINDS as BERTS
from transformer.checkpoint.adapters.bert_kinds import Names, TokenHead
from transformer.checkpoint.adapters.options import (
    ACTIVATIONS,
    USUAL,
    Values,
    one_of,
    only,
    padding_of,
    rope_of,
    rotary_of,
    sizes_of,
)
from transformer.checkpoint.adapters.stored import Stored
from transformer.model.config import ModelConfig

_IN_MEMORY = {  # as transformers calls them, which writes the names of the first files
    "self_attention.query": "self_attn.q_proj",
    "self_attention.key": "self_attn.k_proj",
    "self_attention.value": "self_attn.v_proj",
    "self_attention.output": "self_attn.o_proj",
    "self_residual.norm": "post_attention_layernorm",
    "feed_forward.gate": "mlp.gate_proj",
    "feed_forward.expand": "mlp.up_proj",
    "feed_forward.contract": "mlp.down_proj",
    "feed_forward_residual.norm": "post_mlp_layernorm",
}
_PREFIXES = ("nomic_bert.", "bert.", "gte.", "new.")


class RotaryBertKind(NamedTuple):
    """How a family differs. names: of its heads and layers. joined: stored matrices that stack
    several of our weights. norm: of embeddings. attention_bias, contract_bias: whether these maps
    have one. keys: other names in config.json of its sizes and options. refused: options with one
    supported value. base, types: the defaults of the rotation and of types of tokens."""

    names: Names
    joined: Mapping[str, tuple[str, ...]]
    norm: str
    bias: bool
    keys: Mapping[str, str]
    refused: Mapping[str, Any]
    base: float
    types: int


_QKV = ("self_attention.query", "self_attention.key", "self_attention.value")
_CLS = "cls.predictions"
KINDS = {
    "nomic_bert": RotaryBertKind(
        BERTS["bert"]._replace(
            layer="encoder.layers",
            inside={
                "self_attention.output": "attn.out_proj",
                "self_residual.norm": "norm1",
                "feed_forward.expand": "mlp.fc11",
                "feed_forward.gate": "mlp.fc12",
                "feed_forward.contract": "mlp.fc2",
                "feed_forward_residual.norm": "norm2",
            },
            token_head=TokenHead(
                f"{_CLS}.transform.dense", f"{_CLS}.transform.layer_norm", f"{_CLS}.decoder",
                f"{_CLS}.bias",
            ),
            default_activation="silu",
        ),
        {"attn.Wqkv": _QKV},
        "emb_ln",
        bias=False,
        keys={
            "hidden_size": "n_embd", "num_attention_heads": "n_head",
            "num_hidden_layers": "n_layer", "max_position_embeddings": "n_positions",
            "intermediate_size": "n_inner",
            "layer_norm_eps": "layer_norm_epsilon", "rope_theta": "rotary_emb_base",
        },
        refused={
            "moe_every_n_layers": 0, "activation_function": "swiglu", "prenorm": False,
            "qkv_proj_bias": False,
            "mlp_fc1_bias": False, "mlp_fc2_bias": False, "rotary_emb_fraction": 1.0,
            "rotary_emb_interleaved": False, "rotary_emb_scale_base": None, "causal": False,
            "use_rms_norm": False, "parallel_block": False,
        },
        base=1_000.0,
        types=2,
    ),
    "gte": RotaryBertKind(
        BERTS["bert"]._replace(
            inside={
                "self_attention.output": "attention.o_proj",
                "self_residual.norm": "attn_ln",
                "feed_forward.contract": "mlp.down_proj",
                "feed_forward_residual.norm": "mlp_ln",
            },
            token_head=TokenHead("lm_head.dense", "lm_head.norm", "lm_head.decoder", ""),
            fixed_activation="gelu",
        ),
        {"attention.qkv_proj": _QKV,
         "mlp.up_gate_proj": ("feed_forward.expand", "feed_forward.gate")},
        "embeddings.LayerNorm",
        bias=True,
        keys={},
        refused={
            "position_embedding_type": "rope", "layer_norm_type": "layer_norm",
            "logn_attention_scale": False,
        },
        base=160_000.0,
        types=1,
    ),
}  # fmt: skip
KINDS["new"] = KINDS["gte"]  # as its first folders are called


def config(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    kind = KINDS[values["model_type"]]
    only(values, **kind.refused)
    values = _with_usual_names(values, kind)
    sizes = sizes_of(values, max_len, USUAL)
    rope, width = rope_of(values), sizes["d_model"] // sizes["n_heads"]
    theirs, head = _stored(stored), kind.names.token_head
    biases = f"{head.decoder}.bias", head.bias
    only(values, head_dim=width)
    return ModelConfig(
        family="encoder",
        norm="post",
        positions="rotary",
        activation=one_of(values, "hidden_act", ACTIVATIONS, kind.names.default_activation),
        gated=True,
        attention_bias=kind.bias,
        feed_forward_bias=kind.bias,
        norm_eps=values.get("layer_norm_eps", 1e-12),
        norm_embeddings=True,
        n_token_types=values.get("type_vocab_size", kind.types),
        padding_id=padding_of(values, sizes["vocab_size"]),
        init="normal",
        **head_fields(kind.names, values, theirs),
        head_bias=any(name in theirs for name in biases),
        **sizes,
        **_rotary(values, rope, width, values.get("rope_theta") or kind.base),
    )


def _with_usual_names(values: Values, kind: RotaryBertKind) -> dict[str, Any]:
    """Add the usual keys of a first config.json; it reads as many tokens as it was trained with."""
    usual = {ours: values[theirs] for ours, theirs in kind.keys.items() if theirs in values}
    named = {**usual, **{key: x for key, x in values.items() if x is not None}}
    longest = named.get("max_trained_positions")
    if longest is not None and isinstance(named.get("max_position_embeddings"), int):
        named["max_position_embeddings"] = min(longest, named["max_position_embeddings"])
    return named


def _rotary(values: Values, rope: Values, size: int, base: float) -> dict[str, Any]:
    """The fields of rotary positions; "ntk" is GTE's own: a larger base, and slower pairs."""
    if rope.get("type") != "ntk":
        return rotary_of(values, rope, size, base)
    only(rope, mixed_b=None)
    factor = float(rope["factor"])
    return {
        "rotary_base": float(base),
        "rotary_scaling": "longrope",
        "rotary_trained_len": values["max_position_embeddings"],
        "rotary_pair_factors": tuple(factor ** (2 * (n + 1) / size) for n in range(size // 2)),
    }


def _stored(stored: Mapping[str, Tensor]) -> Stored:
    return Stored(stored, called=_short)


def _short(name: str) -> str:
    prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), "")
    return name.removeprefix(prefix).replace("lm_head.layer_norm", "lm_head.norm")


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    kind, theirs = KINDS[values["model_type"]], _stored(stored)
    names = kind.names
    ours = embedding_with_head(names, theirs, config, values)
    if "layers.0.self_attn.q_proj.weight" in theirs:
        ours |= theirs.linear("embedding.norm", "embeddings.LayerNorm")
        ours |= theirs.layers(config.n_layers, "encoder.layers", "layers", _IN_MEMORY)
    else:
        ours |= theirs.linear("embedding.norm", kind.norm)
        ours |= theirs.layers(config.n_layers, "encoder.layers", names.layer, names.inside)
        for layer in range(config.n_layers):
            for name, parts in kind.joined.items():
                rows = [config.d_model if "attention" in part else config.d_ff for part in parts]
                joined = [f"encoder.layers.{layer}.{part}" for part in parts]
                ours |= theirs.rows(joined, f"{names.layer}.{layer}.{name}", rows)
    theirs.drop(POOLER)
    theirs.finish(values)
    wide = ("feed_forward.gate", "feed_forward.expand") if kind.bias else ()
    for at in range(config.n_layers):  # which have no bias in GTE
        for part in wide:
            ours[f"encoder.layers.{at}.{part}.bias"] = torch.zeros(config.d_ff)
    return ours
