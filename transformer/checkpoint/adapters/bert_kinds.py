"""BERT's relatives: where each keeps its weights. To add one: an entry of KINDS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from transformer.checkpoint.adapters.options import USUAL, Values


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
    """Where a kind keeps each part.

    sizes: as in `sizes_of`. first_position: the row of the first token's position; None: the one
    after the padding's id. fixed_activation: of the token head, whatever the layers have.
    norm_eps, n_token_types: None where config.json has them, or else the defaults. embedding_size:
    the default of its key in config.json, of kinds that have it; project: the map from embeddings
    to the stream. path: of a layer, where layers share weights; inner: the key that says how many
    times each is repeated. refused: options with one supported value. by_distance: whether
    positions are vectors of distances, as in DeBERTa.
    """

    prefix: str
    layer: str
    inside: Mapping[str, str]
    token_head: TokenHead
    label_heads: tuple[LabelHead, ...]
    sizes: tuple[str, ...] = USUAL
    activation: str = "hidden_act"
    default_activation: str = "gelu"
    first_position: int | None = 0
    fixed_activation: str | None = None
    norm_eps: float | None = None
    n_token_types: int | None = None
    default_eps: float = 1e-12
    default_types: int = 2
    embedding_size: int | None = None
    relative_buckets: int = 0
    project: str = "embeddings_project"
    path: Callable[[Values, int], str] | None = None
    inner: str = ""
    refused: Mapping[str, Any] = {}
    by_distance: bool = False


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
_ALBERT_LAYER = {
    "self_attention.query": "attention.query",
    "self_attention.key": "attention.key",
    "self_attention.value": "attention.value",
    "self_attention.output": "attention.dense",
    "self_residual.norm": "attention.LayerNorm",
    "feed_forward.expand": "ffn",
    "feed_forward.contract": "ffn_output",
    "feed_forward_residual.norm": "full_layer_layer_norm",
}


def _albert_path(values: Values, layer: int) -> str:
    """Where ALBERT keeps a layer: groups of layers share their weights."""
    inner, groups = values.get("inner_group_num", 1), values.get("num_hidden_groups", 1)
    group = int(layer // inner / (values["num_hidden_layers"] / groups))
    return f"encoder.albert_layer_groups.{group}.albert_layers.{layer % inner}"


_DEBERTA_LAYER = _BERT_LAYER | {
    "self_attention.query": "attention.self.query_proj",
    "self_attention.key": "attention.self.key_proj",
    "self_attention.value": "attention.self.value_proj",
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
    "albert": Names(
        "albert.", "", _ALBERT_LAYER,
        TokenHead("predictions.dense", "predictions.LayerNorm", "predictions.decoder",
                  "predictions.bias"),
        (LabelHead("text-labels", "classifier", "pooler", "tanh"), *_OTHER_LABELS),
        default_activation="gelu_new", embedding_size=128,
        project="encoder.embedding_hidden_mapping_in", path=_albert_path, inner="inner_group_num",
    ),
    "deberta-v2": Names(
        "deberta.", "encoder.layer", _DEBERTA_LAYER,
        TokenHead(f"{_BERT_HEAD}.dense", f"{_BERT_HEAD}.LayerNorm", "cls.predictions.decoder",
                  "cls.predictions.bias"),
        (LabelHead("text-labels", "classifier", "pooler.dense", "gelu"), *_OTHER_LABELS),
        default_eps=1e-7, default_types=0, by_distance=True,
        refused={
            "share_att_key": True, "norm_rel_ebd": "layer_norm", "conv_kernel_size": 0,
            "legacy": True,
            "pooler_hidden_act": "gelu",
        },
    ),
    "mpnet": _ROBERTA._replace(
        prefix="mpnet.", inside=_MPNET_LAYER, first_position=2, n_token_types=0,
        relative_buckets=32,
    ),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
}  # fmt: skip
