"""BERT, DistilBERT and RoBERTa, read as what they were trained for: to say what is masked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from transformer.checkpoint.adapters.options import (
    ACTIVATIONS,
    USUAL,
    Stored,
    Values,
    embedding_and_head,
    one_of,
    only,
    padding_of,
    sizes_of,
)
from transformer.model.config import ModelConfig

# Another task's head, and buffers.
IGNORED = (
    r"pooler\..*", r"cls\.seq_relationship\..*", r"(?:.*\.)?position_ids",
)  # fmt: skip


class Names(NamedTuple):
    """Where a kind keeps what. sizes: as of `sizes_of`. head: its last linear map, whose bias may
    also be stored as `bias`."""

    prefix: str
    sizes: tuple[str, ...]
    activation: str
    layer: str
    inside: Mapping[str, str]
    dense: str
    norm: str
    head: str
    bias: str


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
KINDS = {
    "bert": Names(
        "bert.", USUAL, "hidden_act", "encoder.layer", _BERT_LAYER,
        "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
        "cls.predictions.decoder", "cls.predictions.bias",
    ),
    "roberta": Names(
        "roberta.", USUAL, "hidden_act", "encoder.layer", _BERT_LAYER,
        "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias",
    ),
    "distilbert": Names(
        "distilbert.",
        ("vocab_size", "dim", "n_heads", "n_layers", "max_position_embeddings", "hidden_dim"),
        "activation", "transformer.layer", _DISTILBERT_LAYER,
        "vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector.bias",
    ),
}  # fmt: skip


def config(values: Values, max_len: int) -> ModelConfig:
    """Convert config.json to a ModelConfig. Raises ValueError for unsupported options."""
    kind = values["model_type"]
    only(
        values, is_decoder=False, is_causal=False, add_cross_attention=False,
        embedding_size=None,
        sinusoidal_pos_embds=False,
    )  # fmt: skip
    if kind == "roberta":
        only(values, hidden_act="gelu")  # what its head has in any case
    first = _first_place(values)
    sizes = sizes_of(values, max_len + first, KINDS[kind].sizes)
    types = 0 if kind == "distilbert" else values.get("type_vocab_size", 2)
    eps = 1e-12 if kind == "distilbert" else values.get("layer_norm_eps", 1e-12)
    return ModelConfig(
        family="encoder",
        norm="post",
        positions="learned",
        activation=one_of(values, KINDS[kind].activation, ACTIVATIONS, "gelu"),
        norm_eps=eps,
        norm_embeddings=True,
        n_token_types=types,
        head_transform=True,
        tie_embeddings=values.get("tie_word_embeddings") in (None, True),
        padding_id=padding_of(values, sizes["vocab_size"]),
        init="normal",
        **sizes | {"max_len": sizes["max_len"] - first},
    )


def _first_place(values: Values) -> int:
    """The row of the first token's position: RoBERTa counts from behind its padding's id."""
    if values["model_type"] != "roberta":
        return 0
    padding = values.get("pad_token_id")
    return (1 if padding is None else int(padding)) + 1


def weights(stored: Mapping[str, Tensor], config: ModelConfig, values: Values) -> dict[str, Tensor]:
    """Rename their weights. Raises ValueError for a missing or an unknown one."""
    names = KINDS[values["model_type"]]
    theirs = Stored(stored, names.prefix, IGNORED, _present)
    biases = f"{names.head}.bias", names.bias  # the first is read where both are stored
    theirs.head(values, *biases, f"{names.dense}.weight")
    bias, *_ = theirs.tied(*dict.fromkeys(biases))
    assert bias is not None
    first = _first_place(values)
    table = theirs.take("embeddings.position_embeddings.weight")
    tokens, head = "embeddings.word_embeddings.weight", f"{names.head}.weight"
    if head not in theirs:
        only(values, tie_word_embeddings=True)
    ours = embedding_and_head(theirs, config, values, tokens, head)
    ours |= {
        "embedding.positions.table.weight": table[first : first + config.max_len],
        "head.bias": bias,
    }
    if config.n_token_types:
        ours["embedding.types.weight"] = theirs.take("embeddings.token_type_embeddings.weight")
    ours |= theirs.linear("embedding.norm", "embeddings.LayerNorm")
    ours |= theirs.layers(config.n_layers, "encoder.layers", names.layer, names.inside)
    ours |= theirs.linear("transform.dense", names.dense)
    ours |= theirs.linear("transform.norm", names.norm)
    theirs.finish(values)
    return ours


def _present(name: str) -> str:
    """A norm's weights as they are called today: BERT's first files have gamma and beta."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
        "LayerNorm.beta", "LayerNorm.bias"
    )
