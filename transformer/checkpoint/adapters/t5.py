"""T5, flan-T5, mT5 and UMT5, which add a bias for each distance of tokens; or the encoder alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor

from transformer.checkpoint.adapters.heads import architecture, seq2seq_labels, tables_and_head
from transformer.checkpoint.adapters.options import (
    ACTIVATIONS,
    Values,
    one_of,
    only,
    padding_of,
    sizes_of,
)
from transformer.checkpoint.adapters.stored import Stored
from transformer.model.config import ModelConfig

PREFIX = "transformer."  # of classifiers
IGNORED = (r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",)
_ATTENTION = {"query": "q", "key": "k", "value": "v", "output": "o"}
_BIAS = "layer.0.SelfAttention.relative_attention_bias"


class T5Kind(NamedTuple):
    """How a family differs. feed_forward: the default of its key in config.json. scales: whether
    logits are scaled; None: config.json says so."""

    positions: str = "relative"
    feed_forward: str = "gated-gelu"
    scales: bool | None = False


KINDS = {
    "t5": T5Kind(feed_forward="relu", scales=None),
    "mt5": T5Kind(),
    "umt5": T5Kind("relative-by-layer", scales=True),
}


def config(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    names = ("vocab_size", "d_model", "num_heads", "num_layers", "", "d_ff")
    sizes = sizes_of({**values, "": max_len}, max_len, names)  # the positions have no limit
    head_size, all_heads = values.get("d_kv", 64), sizes["d_model"]
    kind = KINDS[values["model_type"]]
    *gated, activation = str(values.get("feed_forward_proj") or kind.feed_forward).split("-")
    only({"feed_forward_proj": gated or None}, feed_forward_proj=["gated"])
    if gated and activation == "gelu":
        activation = "gelu_new"
    is_gated = values.get("is_gated_act", bool(gated))
    activation = values.get("dense_act_fn") or activation
    whole: dict[str, Any] = {"family": "encoder", "head": "none"}
    if architecture(values).endswith("ForTokenClassification"):
        raise ValueError("its head scores the tokens of the encoder alone, which is not read")
    if f"decoder.block.0.{_BIAS}.weight" in Stored(stored, PREFIX):
        whole = {
            "family": "encoder-decoder", "tie_embeddings": True, "share_embeddings": True,
            "head_bias": False,
        }  # fmt: skip
        scaled = kind.scales
        if scaled is None:
            tied = values.get("tie_word_embeddings") is not False
            scaled = values.get("scale_decoder_outputs", tied)
        n_layers = values.get("num_decoder_layers") or sizes["n_layers"]
        whole["target_n_layers"] = None if n_layers == sizes["n_layers"] else n_layers
        whole["logit_scale"] = all_heads**-0.5 if scaled else 1.0
        whole |= seq2seq_labels(values)
    return ModelConfig(
        norm_kind="rms",
        positions=kind.positions,
        relative_buckets=values.get("relative_attention_num_buckets", 32),
        relative_farthest=values.get("relative_attention_max_distance", 128),
        activation=one_of({"feed_forward_proj": activation}, "feed_forward_proj", ACTIVATIONS, ""),
        head_size=None if head_size * sizes["n_heads"] == all_heads else head_size,
        attention_bias=False,
        score_scale=1.0,
        gated=is_gated,
        feed_forward_bias=False,
        norm_eps=values.get("layer_norm_epsilon", 1e-6),
        padding_id=padding_of(values, sizes["vocab_size"]),
        init="normal",
        **whole,
        **sizes,
    )


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    theirs = Stored(stored, PREFIX, IGNORED)
    stacks = {"encoder": False}
    if config.family == "encoder":
        tokens, _ = theirs.tied("shared.weight", "encoder.embed_tokens.weight")
        assert tokens is not None
        ours = {"embedding.tokens.weight": tokens}
    else:
        ours, stacks["decoder"] = tables_and_head(theirs, config), True
    for stack, crosses in stacks.items():
        names = _layer(crosses, config.gated)
        if KINDS[values["model_type"]].positions == "relative":
            ours[f"{stack}.relative.table.weight"] = theirs.take(f"{stack}.block.0.{_BIAS}.weight")
        else:
            names["self_attention.relative.table"] = _BIAS.removeprefix("block.0.").removesuffix(
                ".weight"
            )
        ours |= theirs.layers(config.n_layers_of(stack), f"{stack}.layers", f"{stack}.block", names)
        ours |= theirs.linear(f"{stack}.norm", f"{stack}.final_layer_norm")
    theirs.finish(values)
    return ours


def _layer(crosses: bool, gated: bool) -> dict[str, str]:
    """Names of a layer's weights: its parts are numbered."""
    parts = [("self", "SelfAttention"), *([("cross", "EncDecAttention")] if crosses else [])]
    names = {}
    for at, (ours, theirs) in enumerate(parts):
        names[f"{ours}_residual.norm"] = f"layer.{at}.layer_norm"
        for mine, other in _ATTENTION.items():
            names[f"{ours}_attention.{mine}"] = f"layer.{at}.{theirs}.{other}"
    last = f"layer.{len(parts)}"
    expand = {"gate": "wi_0", "expand": "wi_1"} if gated else {"expand": "wi"}
    for mine, other in {**expand, "contract": "wo"}.items():
        names[f"feed_forward.{mine}"] = f"{last}.DenseReluDense.{other}"
    return names | {"feed_forward_residual.norm": f"{last}.layer_norm"}
