"""Llama and its relatives: decoders with rotary positions that differ by options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from transformer.checkpoint.adapters.heads import decoder_of, embedding_and_head
from transformer.checkpoint.adapters.llama_kinds import KINDS, LlamaKind, Option
from transformer.checkpoint.adapters.options import (
    ACTIVATIONS,
    Values,
    one_of,
    only,
    rope_of,
    rotary_of,
    shortest,
    sizes_of,
)
from transformer.checkpoint.adapters.stored import Stored, half_split, second_norm, with_biases
from transformer.model.config import ModelConfig

PREFIX = "model."
IGNORED = (r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq", r"rotary_emb\.inv_freq")


def config(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    kind, rope = KINDS[values["model_type"]], _rope_of(values)
    only({**values, **rope}, **kind.refused)
    both_ways = bool(values.get("use_bidirectional_attention", False))
    if both_ways:
        only(values, use_bidirectional_attention=kind.both_ways)
    sizes = sizes_of(values, max_len)
    width, n_heads = sizes["d_model"], sizes["n_heads"]
    head_size = values.get("head_dim") or kind.head_size or width // n_heads
    options: dict[str, Any] = {
        field: option.converted(values.get(option.name, option.default))
        for field, option in kind.options.items()
    }
    none: dict[str, Any] = {
        "attention_bias": False,
        "feed_forward_bias": False,
        "norm_kind": "rms",
        "gated": True,
        "head_bias": False,
    }
    return decoder_of(
        values,
        stored,
        sizes,
        positions="rotary",
        activation=_activation(values, kind.activation),
        head_size=None if head_size * n_heads == width else head_size,
        n_key_heads=values.get("num_key_value_heads", kind.key_heads),
        dropout=0.0,
        tied=kind.tied,
        norm_eps=values.get(*kind.norm_eps[:2]),
        **none | options | dict(kind.fields),
        **({"family": "encoder", "head": "none"} if both_ways else {}),
        **_rotary_of(values, rope, kind, head_size),
        **_layer_types(values, kind, sizes["max_len"], both_ways),
    )


def _activation(values: Values, option: Option) -> str:
    """Our name of the activation."""
    got = values.get(option.name)
    if values["model_type"] == "gemma" and got == "gelu":
        got = None  # what Gemma's first files call its default
    return one_of({option.name: got}, option.name, ACTIVATIONS, option.default)


def _rope_of(values: Values) -> Values:
    """The settings of rotary positions; of layers without a window, where others differ."""
    if KINDS[values["model_type"]].sliding_rotary_base is None:
        return rope_of(values)
    own = (values.get("rope_parameters") or {}).get("full_attention") or {}
    return {"rope_type": "default", **own, **(values.get("rope_scaling") or {})}


def _rotary_of(values: Values, rope: Values, kind: LlamaKind, head_size: int) -> dict[str, Any]:
    """The fields of rotary positions."""
    share, scaled = 1.0, rope.get("rope_type", rope.get("type")) not in (None, "default")
    if kind.rotary_share is not None:
        own = values.get("partial_rotary_factor", kind.rotary_share)
        share = rope.get("partial_rotary_factor", own)
    elif scaled:
        only({**values, **rope}, partial_rotary_factor=1.0)  # which transformers would ignore
    base = values.get("rope_theta") or kind.rotary_base
    fields = rotary_of(values, rope, int(head_size * share), base, kind.scalings)
    if kind.sliding_rotary_base is None:
        return fields
    sliding = (values.get("rope_parameters") or {}).get("sliding_attention") or {}
    only(sliding, rope_type="default")
    default = values.get("rope_local_base_freq") or kind.sliding_rotary_base
    return fields | {"sliding_rotary_base": float(sliding.get("rope_theta") or default)}


def _layer_types(values: Values, kind: LlamaKind, max_len: int, both_ways: bool) -> dict[str, Any]:
    """The window, and which layers have it and are rotated. Families without windows ignore the
    window in their config.json."""
    n_layers, window = values["num_hidden_layers"], values.get("sliding_window", kind.window)
    if both_ways and window is not None:
        window = window // 2 + 1  # to each side
    rotates = [1] * n_layers
    if kind.rope_interval is not None:
        interval = values.get("no_rope_layer_interval", kind.rope_interval)
        default = [int((layer + 1) % interval != 0) for layer in range(n_layers)]
        rotates = values.get("no_rope_layers") or default
    slides = _sliding_layers(values, kind, rotates)
    if kind.rotates_windows and window is not None:
        rotates = [int(slid) for slid in slides]
    if window is None or window >= max_len or not any(slides):
        window = None
    if window is None and kind.sliding_rotary_base is None:
        slides = [False] * n_layers
    types = [
        ("sliding_attention" if slides[layer] else "full_attention")
        + ("" if rotates[layer] else "_nope")
        for layer in range(n_layers)
    ]
    rotated_alike = all(rotates) and kind.sliding_rotary_base is None
    if rotated_alike and (window is None or all(slides)):
        return {"window": window}
    return {"window": window, "layer_types": shortest(types)}


def _sliding_layers(values: Values, kind: LlamaKind, rotates: Sequence[int]) -> list[bool]:
    """Which layers have a window."""
    n_layers, types = len(rotates), values.get("layer_types")
    is_wanted = values.get("use_sliding_window") or (types and kind.rope_interval is not None)
    if kind.windows is None or (kind.windows == "told" and not is_wanted):
        return [False] * n_layers  # SmolLM3 slides in the layers that its file names anyway
    if kind.windows == "all":
        return [True] * n_layers
    if types:
        return [name == "sliding_attention" for name in types]
    if isinstance(kind.windows, int):
        every = values.get("sliding_window_pattern", kind.windows)
        return [(layer + 1) % every != 0 for layer in range(n_layers)]
    if kind.windows == "named":
        return [True] * n_layers
    if kind.rope_interval is not None:
        return [not rotated for rotated in rotates]
    return [layer >= values.get("max_window_layers", 28) for layer in range(n_layers)]


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    theirs, kind = Stored(stored, PREFIX, IGNORED, _present_name), KINDS[values["model_type"]]
    ours = embedding_and_head(theirs, config, values, "embed_tokens.weight", "lm_head.weight")
    if config.head_bias:
        ours["head.bias"] = theirs.take("lm_head.bias")
    for layer in range(config.n_layers):
        for name, parts in kind.joined.items():
            joined = [f"decoder.layers.{layer}.{part}" for part in parts]
            ours |= theirs.rows(joined, f"layers.{layer}.{name}", [_rows(config, p) for p in parts])
    stacked = {part for parts in kind.joined.values() for part in parts}
    names = {part: name for part, name in kind.layer.items() if part not in stacked}
    if not kind.trained_norms:
        ours |= _plain_norms(config, names)
        names = {part: name for part, name in names.items() if not part.endswith(".norm")}
    ours |= theirs.layers(config.n_layers, "decoder.layers", "layers", names)
    ours |= theirs.linear("decoder.norm", kind.end) if kind.trained_norms else {}
    theirs.finish(values)
    ours |= second_norm(ours) if kind.one_norm else {}
    for layer in range(config.n_layers) if kind.neighbours else ():
        for part, n_heads in (("query", config.n_heads), ("key", config.key_heads)):
            for name in ("weight", "bias") if config.attention_bias else ("weight",):
                at = f"decoder.layers.{layer}.self_attention.{part}.{name}"
                ours[at] = half_split(ours[at], n_heads, config.rotary.size)
    if config.family == "encoder":
        ours = {name.replace("decoder.", "encoder.", 1): x for name, x in ours.items()}
    return ours if config.norm_kind != "layer" else with_biases(ours)


def _present_name(name: str) -> str:
    """The name in most folders of what those for question answering call "transformer"."""
    return name.removeprefix("transformer.")


def _plain_norms(config: ModelConfig, names: Mapping[str, str]) -> dict[str, Tensor]:
    """Weights of norms that only make mean 0 and variance 1."""
    layers = [
        f"decoder.layers.{layer}.{part}" for layer in range(config.n_layers) for part in names
    ]
    norms = ["decoder.norm", *(name for name in layers if name.endswith(".norm"))]
    kinds = {"weight": torch.ones, "bias": torch.zeros}
    return {
        f"{name}.{kind}": fill(config.d_model) for name in norms for kind, fill in kinds.items()
    }


def _rows(config: ModelConfig, part: str) -> int:
    """Rows of a linear map of a layer."""
    if part.startswith("feed_forward"):
        return config.d_ff
    return config.d_head * (config.n_heads if part.endswith("query") else config.key_heads)
