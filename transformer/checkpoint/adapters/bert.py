"""BERT and its relatives: encoders that predict tokens or score labels, or have no head."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from torch import Tensor

from transformer.checkpoint.adapters.bert_kinds import KINDS, LabelHead, Names, TokenHead
from transformer.checkpoint.adapters.heads import embedding_and_head, label_fields
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

# Heads that are not read, and buffers.
IGNORED = (
    r"(lm_predictions|mask_predictions)\..*",
    r"(cls\.seq_relationship|sop_classifier)\..*",
    r"(?:.*\.)?position_ids",
)
# What transformers reads as learned positions; Jina's "alibi" is other code.
_POSITIONS = dict.fromkeys(("absolute", "relative_key", "relative_key_query"), "learned")
POOLER = r"pooler\..*"  # used by BERT's classifier of texts alone


def config(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    kind = KINDS[values["model_type"]]
    theirs = Stored(stored, kind.prefix, (), present_name)
    only(values, **kind.refused)
    only(values, is_decoder=False, add_cross_attention=False)
    one_of(values, "position_embedding_type", _POSITIONS, "absolute")
    if "MultipleChoice" in str(values.get("architectures")):
        raise ValueError(f"its head chooses between texts ({values['architectures'][0]})")
    if kind.first_position:  # MPNet's positions and buckets do not follow config.json
        only(values, pad_token_id=kind.first_position - 1)
        only(values, relative_attention_num_buckets=kind.relative_buckets)
    narrow = kind.embedding_size and values.get("embedding_size", kind.embedding_size)
    first = _first_position(values)
    sizes = sizes_of(values, max_len + first, kind.sizes)
    sizes["max_len"] -= first
    sizes["n_layers"] *= values.get(kind.inner, 1)
    types, eps = kind.n_token_types, kind.norm_eps
    return ModelConfig(
        family="encoder",
        norm="post",
        activation=one_of(values, kind.activation, ACTIVATIONS, kind.default_activation),
        norm_eps=values.get("layer_norm_eps", kind.default_eps) if eps is None else eps,
        norm_embeddings=True,
        embedding_size=None if narrow == sizes["d_model"] else narrow,
        n_token_types=values.get("type_vocab_size", kind.default_types) if types is None else types,
        padding_id=padding_of(values, sizes["vocab_size"]),
        init="normal",
        **(_distances(values, sizes) if kind.by_distance else _learned(kind)),
        **head_fields(kind, values, theirs),
        **sizes,
    )


def _learned(kind: Names) -> dict[str, Any]:
    return {"positions": "learned", "relative_buckets": kind.relative_buckets}


def _distances(values: Values, sizes: Values) -> dict[str, Any]:
    """The fields of DeBERTa's distances: queries and keys are matched to a vector of each."""
    only(values, embedding_size=sizes["d_model"])
    usual = {"relative_attention": False, "position_biased_input": True, **values}
    only(usual, relative_attention=True, position_biased_input=False)
    kinds = values.get("pos_att_type") or []
    kinds = kinds.lower().replace(" ", "").split("|") if isinstance(kinds, str) else kinds
    only({"pos_att_type": sorted(kinds)}, pos_att_type=["c2p", "p2c"])
    buckets, longest = values.get("position_buckets", -1), values.get("max_relative_positions", -1)
    if buckets < 1:
        raise ValueError(f"it has position_buckets={buckets}; what is read: 1 or more")
    return {
        "positions": "disentangled",
        "relative_buckets": 2 * buckets,
        "relative_farthest": longest if longest > 0 else values["max_position_embeddings"],
        "score_scale": (3 * sizes["d_model"] // sizes["n_heads"]) ** -0.5,
    }


def head_fields(kind: Names, values: Values, stored: Stored) -> dict[str, Any]:
    """The fields of ModelConfig that describe the head whose weights are stored."""
    if _has_token_head(kind, stored):
        if kind.fixed_activation:
            only(values, **{kind.activation: kind.fixed_activation})
        tied = values.get("tie_word_embeddings") in (None, True)
        return {"head_transform": True, "tie_embeddings": tied}
    head = _label_head(kind, values, stored)
    if head is None:
        return {"head": "none"}
    scores = label_fields(values, head.labels, head.probabilities)
    return {"head": head.kind, "label_activation": _label_activation(kind, head, values), **scores}


def _label_activation(kind: Names, head: LabelHead, values: Values) -> str | None:
    """The activation before the labels, which may be the layers' own."""
    if head.activation != kind.activation:
        return head.activation
    return one_of(values, kind.activation, ACTIVATIONS, kind.default_activation)


def _has_token_head(kind: Names, stored: Stored) -> bool:
    head = kind.token_head
    return any(
        name in stored for name in (f"{head.decoder}.bias", head.bias, f"{head.dense}.weight")
    )


def _label_head(kind: Names, values: Values, stored: Stored) -> LabelHead | None:
    """The classifier's head whose weights are stored; None without one.

    Classifiers of tokens may store a pooler that they do not use.
    """
    of_tokens = "TokenClassification" in str(values.get("architectures"))
    for head in kind.label_heads:
        whole = head.dense is None or f"{head.dense}.weight" in stored
        if whole and f"{head.out}.weight" in stored and not (of_tokens and head.dense):
            return head
    return None


def _first_position(values: Values) -> int:
    """The row of the first token's position: RoBERTa counts from its padding's id."""
    first = KINDS[values["model_type"]].first_position
    padding = values.get("pad_token_id")
    return ((1 if padding is None else int(padding)) + 1) if first is None else first


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    kind = KINDS[values["model_type"]]
    theirs = Stored(stored, kind.prefix, IGNORED, present_name)
    ours = embedding_with_head(kind, theirs, config, values)
    if kind.by_distance:
        ours["encoder.distances.table.weight"] = theirs.take("encoder.rel_embeddings.weight")
        ours |= theirs.linear("encoder.distances.norm", "encoder.LayerNorm")
    else:
        first = _first_position(values)
        table = theirs.take("embeddings.position_embeddings.weight")
        ours["embedding.positions.table.weight"] = table[first : first + config.max_len]
    ours |= theirs.linear("embedding.norm", "embeddings.LayerNorm")
    if config.embedding_size:
        ours |= theirs.linear("embedding.project", kind.project)
    if kind.relative_buckets:
        name = "encoder.relative_attention_bias.weight"
        ours["encoder.relative.table.weight"] = theirs.take(name)
    path = partial(kind.path, values) if kind.path else kind.layer
    ours |= theirs.layers(config.n_layers, "encoder.layers", path, kind.inside)
    theirs.drop(POOLER)
    theirs.finish(values)
    return ours


def embedding_with_head(
    kind: Names, theirs: Stored, config: ModelConfig, values: Values
) -> dict[str, Tensor]:
    """Vectors of tokens and of their types, and the head."""
    tokens = "embeddings.word_embeddings.weight"
    if config.head == "tokens":
        ours = _token_head(theirs, config, values, kind.token_head, tokens)
    else:
        ours = {"embedding.tokens.weight": theirs.take(tokens)}
    labels = _label_head(kind, values, theirs) if config.labels else None
    if labels is not None:
        ours |= theirs.linear("head.out", labels.out)
        ours |= theirs.linear("head.dense", labels.dense) if labels.dense else {}
    if config.n_token_types:
        ours["embedding.types.weight"] = theirs.take("embeddings.token_type_embeddings.weight")
    return ours


def _token_head(
    theirs: Stored, config: ModelConfig, values: Values, names: TokenHead, tokens: str
) -> dict[str, Tensor]:
    """The token embedding and the head that predicts tokens."""
    biases = f"{names.decoder}.bias", names.bias  # the first is read where both are stored
    bias, *_ = theirs.tied(*dict.fromkeys(biases)) if config.head_bias else [None]
    if f"{names.decoder}.weight" not in theirs:
        only(values, tie_word_embeddings=True)
    ours = embedding_and_head(theirs, config, values, tokens, f"{names.decoder}.weight")
    ours |= {} if bias is None else {"head.bias": bias}
    ours |= theirs.linear("transform.dense", names.dense)
    return ours | theirs.linear("transform.norm", names.norm)


def present_name(name: str) -> str:
    """Today's name of a norm's weights, which BERT's first files call gamma and beta."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
        "LayerNorm.beta", "LayerNorm.bias"
    )
