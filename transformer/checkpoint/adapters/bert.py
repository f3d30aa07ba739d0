"""BERT and its relatives: encoders that predict tokens or score labels, or have no head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor

from transformer.checkpoint.adapters.heads import embedding_and_head, label_fields
from transformer.checkpoint.adapters.options import (
    ACTIVATIONS,
    USUAL,
    Stored,
    Values,
    one_of,
    only,
    padding_of,
    sizes_of,
)
from transformer.model.config import ModelConfig

# Heads that are not read, and buffers.
IGNORED = (r"cls\.seq_relationship\..*", r"(?:.*\.)?position_ids")
POOLER = r"pooler\..*"  # used by BERT's classifier of texts alone


class TokenHead(NamedTuple):
    """Where a kind keeps the head that predicts tokens. decoder: the last linear map, whose bias
    may also be stored as `bias`."""

    dense: str
    norm: str
    decoder: str
    bias: str


class LabelHead(NamedTuple):
    """Where a classifier keeps its linear maps. out: the last. dense: one before it, with this
    activation. labels: their names, where config.json has none."""

    kind: str
    out: str
    dense: str | None = None
    activation: str | None = None
    probabilities: str = "one label"
    labels: tuple[str, ...] = ()


class Names(NamedTuple):
    """Where a kind keeps what.

    sizes: as in `sizes_of`. first_position: the row of the first token's position; None: the one
    after the padding's id. fixed_activation: of the token head, whatever the layers have.
    norm_eps, n_token_types: None where config.json has them. embedding_size: the default of its key
    in config.json, of kinds that have it.
    """

    prefix: str
    layer: str
    inside: Mapping[str, str]
    token_head: TokenHead
    label_heads: tuple[LabelHead, ...]
    sizes: tuple[str, ...] = USUAL
    activation: str = "hidden_act"
    first_position: int | None = 0
    fixed_activation: str | None = None
    norm_eps: float | None = None
    n_token_types: int | None = None
    embedding_size: int | None = None
    relative_buckets: int = 0


_BERT_LAYER = {
    "self_attention.query": "attention.self.query",
    "self_attention.key": "attention.self.key",
    "self_attention.value": "attention.self.value",
    "self_attention.output": "attention.output.dense",
    "self_residual.norm": "attention.output.LayerNorm",
    "feed_forward.expand": "intermediate.dense",
    "feed_forward.contract": "output.dense",
    "feed_forward_residual.norm": "output.LayerNorm",
}
_MPNET_LAYER = _BERT_LAYER | {
    "self_attention.query": "attention.attn.q",
    "self_attention.key": "attention.attn.k",
    "self_attention.value": "attention.attn.v",
    "self_attention.output": "attention.attn.o",
    "self_residual.norm": "attention.LayerNorm",
}
_DISTILBERT_LAYER = {
    "self_attention.query": "attention.q_lin",
    "self_attention.key": "attention.k_lin",
    "self_attention.value": "attention.v_lin",
    "self_attention.output": "attention.out_lin",
    "self_residual.norm": "sa_layer_norm",
    "feed_forward.expand": "ffn.lin1",
    "feed_forward.contract": "ffn.lin2",
    "feed_forward_residual.norm": "output_layer_norm",
}
# Of question answering, where the score of "start" is compared between tokens; of each token.
_OTHER_LABELS = (
    LabelHead("token-labels", "qa_outputs", None, None, "one token", ("start", "end")),
    LabelHead("token-labels", "classifier"),
)
_ROBERTA = Names(
    "roberta.", "encoder.layer", _BERT_LAYER,
    TokenHead("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias"),
    (LabelHead("text-labels", "classifier.out_proj", "classifier.dense", "tanh"), *_OTHER_LABELS),
    first_position=None, fixed_activation="gelu",
)  # fmt: skip
_BERT_HEAD = "cls.predictions.transform"
KINDS = {
    "bert": Names(
        "bert.", "encoder.layer", _BERT_LAYER,
        TokenHead(f"{_BERT_HEAD}.dense", f"{_BERT_HEAD}.LayerNorm", "cls.predictions.decoder",
                  "cls.predictions.bias"),
        (LabelHead("text-labels", "classifier", "pooler.dense", "tanh"), *_OTHER_LABELS),
    ),
    "distilbert": Names(
        "distilbert.", "transformer.layer", _DISTILBERT_LAYER,
        TokenHead("vocab_transform", "vocab_layer_norm", "vocab_projector",
                  "vocab_projector.bias"),
        (LabelHead("text-labels", "classifier", "pre_classifier", "relu"), *_OTHER_LABELS),
        ("vocab_size", "dim", "n_heads", "n_layers", "max_position_embeddings", "hidden_dim"),
        "activation", norm_eps=1e-12, n_token_types=0,
    ),
    "electra": Names(
        "electra.", "encoder.layer", _BERT_LAYER,
        TokenHead("generator_predictions.dense", "generator_predictions.LayerNorm",
                  "generator_lm_head", "generator_lm_head.bias"),
        (
            LabelHead("text-labels", "classifier.out_proj", "classifier.dense", "gelu"),
            LabelHead("token-labels", "discriminator_predictions.dense_prediction",
                      "discriminator_predictions.dense", "hidden_act", "each label",
                      ("replaced",)),
            *_OTHER_LABELS,
        ),
        fixed_activation="gelu", embedding_size=128,
    ),
    "mpnet": _ROBERTA._replace(
        prefix="mpnet.", inside=_MPNET_LAYER, first_position=2, n_token_types=0,
        relative_buckets=32,
    ),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
}  # fmt: skip


def config(values: Values, max_len: int, stored: Mapping[str, Tensor]) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    kind = KINDS[values["model_type"]]
    theirs = Stored(stored, kind.prefix, (), present_name)
    only(values, is_decoder=False, add_cross_attention=False)
    if "MultipleChoice" in str(values.get("architectures")):
        raise ValueError(f"its head chooses between texts ({values['architectures'][0]})")
    if kind.first_position:  # MPNet's positions and buckets do not follow config.json
        only(values, pad_token_id=kind.first_position - 1)
        only(values, relative_attention_num_buckets=kind.relative_buckets)
    narrow = kind.embedding_size and values.get("embedding_size", kind.embedding_size)
    first = _first_position(values)
    sizes = sizes_of(values, max_len + first, kind.sizes)
    types, eps = kind.n_token_types, kind.norm_eps
    return ModelConfig(
        family="encoder",
        norm="post",
        positions="learned",
        activation=one_of(values, kind.activation, ACTIVATIONS, "gelu"),
        norm_eps=values.get("layer_norm_eps", 1e-12) if eps is None else eps,
        norm_embeddings=True,
        embedding_size=None if narrow == sizes["d_model"] else narrow,
        relative_buckets=kind.relative_buckets,
        n_token_types=values.get("type_vocab_size", 2) if types is None else types,
        padding_id=padding_of(values, sizes["vocab_size"]),
        init="normal",
        **_head(kind, values, theirs),
        **sizes | {"max_len": sizes["max_len"] - first},
    )


def _head(kind: Names, values: Values, stored: Stored) -> dict[str, Any]:
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
    return one_of(values, kind.activation, ACTIVATIONS, "gelu")


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
    label_head = _label_head(kind, values, theirs) if config.labels else None
    first = _first_position(values)
    table = theirs.take("embeddings.position_embeddings.weight")
    ours = {"embedding.positions.table.weight": table[first : first + config.max_len]}
    tokens = "embeddings.word_embeddings.weight"
    if config.head == "tokens":
        ours |= _token_head(theirs, config, values, kind.token_head, tokens)
    else:
        ours["embedding.tokens.weight"] = theirs.take(tokens)
    if label_head is not None:
        ours |= theirs.linear("head.out", label_head.out)
        ours |= theirs.linear("head.dense", label_head.dense) if label_head.dense else {}
    if config.n_token_types:
        ours["embedding.types.weight"] = theirs.take("embeddings.token_type_embeddings.weight")
    ours |= theirs.linear("embedding.norm", "embeddings.LayerNorm")
    if config.embedding_size:
        ours |= theirs.linear("embedding.project", "embeddings_project")
    if config.relative_buckets:
        name = "encoder.relative_attention_bias.weight"
        ours["encoder.relative.table.weight"] = theirs.take(name)
    ours |= theirs.layers(config.n_layers, "encoder.layers", kind.layer, kind.inside)
    theirs.drop(POOLER)
    theirs.finish(values)
    return ours


def _token_head(
    theirs: Stored, config: ModelConfig, values: Values, names: TokenHead, tokens: str
) -> dict[str, Tensor]:
    """The token embedding and the head that predicts tokens."""
    biases = f"{names.decoder}.bias", names.bias  # the first is read where both are stored
    bias, *_ = theirs.tied(*dict.fromkeys(biases))
    assert bias is not None
    if f"{names.decoder}.weight" not in theirs:
        only(values, tie_word_embeddings=True)
    ours = embedding_and_head(theirs, config, values, tokens, f"{names.decoder}.weight")
    ours["head.bias"] = bias
    ours |= theirs.linear("transform.dense", names.dense)
    return ours | theirs.linear("transform.norm", names.norm)


def present_name(name: str) -> str:
    """Today's name of a norm's weights, which BERT's first files call gamma and beta."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
        "LayerNorm.beta", "LayerNorm.bias"
    )
