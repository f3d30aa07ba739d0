"""Heads of other projects: which one a folder holds, its labels, and its weights."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer.checkpoint.adapters.options import Values, padding_of
from transformer.checkpoint.adapters.stored import Stored
from transformer.model.config import ModelConfig

# A class of transformers without a head, such as MistralModel, not GPT2LMHeadModel.
_HEADLESS = re.compile(r"(?!.*Heads?Model$)\w+Model")


class DecoderHead(NamedTuple):
    """A head that is not of tokens: its kind, as in model/heads.py, its linear map, its labels
    where config.json has none, and how their scores become probabilities."""

    kind: str
    out: str
    labels: tuple[str, ...] = ()
    probabilities: str = "one label"


# By the end of a class of transformers.
_OF_CLASSES = {
    "ForSequenceClassification": DecoderHead("text-labels-last", "score"),
    "ForTokenClassification": DecoderHead("token-labels", "score"),
    "ForQuestionAnswering": DecoderHead(
        "token-labels", "qa_outputs", ("start", "end"), "one token"
    ),
}
_OTHER_NAMES = {"score": "classifier"}


def decoder_of(
    values: Values, stored: Mapping[str, Tensor], sizes: Values, *, tied: bool = True, **fields: Any
) -> ModelConfig:
    """A decoder's configuration: its sizes, padding and head, and the fields that differ.

    tied: whether the head is the embedding, unless config.json says so.
    """
    said = values.get("tie_word_embeddings")
    head: dict[str, Any] = {"tie_embeddings": tied if said is None else bool(said)}
    name = architecture(values)
    other = decoder_head(values)
    if fields.get("head") == "none":
        head = {"head": "none"}
    elif other is not None:
        head = {"head": other.kind, **label_fields(values, other.labels, other.probabilities)}
    elif _HEADLESS.fullmatch(name) and not _has_head(stored):
        head = {"head": "none"}
    if "head" in head:
        head |= {"head_bias": False, "logit_scale": 1.0, "logit_cap": None}  # which are of tokens
    usual = {
        "family": "decoder",
        "head_bias": False,
        "norm_eps": values.get("layer_norm_epsilon", 1e-5),
    }
    return ModelConfig(
        padding_id=padding_of(values, sizes["vocab_size"], ("bos_token_id", "eos_token_id")),
        init="normal",
        **{**usual, **sizes, **fields, **head},
    )


def architecture(values: Values) -> str:
    """The class of transformers that made a folder; empty if its config.json has none."""
    names = values.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""


def decoder_head(values: Values) -> DecoderHead | None:
    """The head of a decoder's class; None if it predicts tokens, or there is none."""
    name = architecture(values)
    return next((head for end, head in _OF_CLASSES.items() if name.endswith(end)), None)


def _has_head(stored: Mapping[str, Tensor]) -> bool:
    return any(name.endswith(("lm_head.weight", "embed_out.weight")) for name in stored)


def label_fields(values: Values, labels: tuple[str, ...], probabilities: str) -> dict[str, Any]:
    """The fields of a classifier's scores. labels: empty: those of config.json."""
    labels = labels or _labels(values)
    if values.get("problem_type") == "multi_label_classification":
        probabilities = "each label"
    elif len(labels) == 1 and probabilities == "one label":  # a regression's, or a ranker's
        probabilities = "none"
    return {"labels": labels, "label_probabilities": probabilities}


def _labels(values: Values) -> tuple[str, ...]:
    """The names of a classifier's labels, as transformers finds them."""
    names = values.get("id2label")
    if names:
        return tuple(str(names[at]) for at in sorted(names, key=int))
    return tuple(f"LABEL_{at}" for at in range(values.get("num_labels", 2)))


def embedding_and_head(
    theirs: Stored, config: ModelConfig, values: Values, table: str, head: str
) -> dict[str, Tensor]:
    """The token embedding of a single stack, and the head's matrix if it is not tied."""
    if config.labels:
        return {"embedding.tokens.weight": theirs.take(table), **_label_head(theirs, values)}
    if config.head == "none":
        return {"embedding.tokens.weight": theirs.take(table)}
    if not config.tie_embeddings:
        theirs.head(values, head)
        return {
            "embedding.tokens.weight": theirs.take(table),
            "head.weight": theirs.take(head),
        }
    tokens, own = theirs.tied(table, head)
    assert tokens is not None
    return {"embedding.tokens.weight": tokens} | ({} if own is None else {"head.weight": own})


def _label_head(theirs: Stored, values: Values) -> dict[str, Tensor]:
    """The map to a decoder's labels, with a bias of 0 where none is stored."""
    head = decoder_head(values)
    assert head is not None
    name = head.out if f"{head.out}.weight" in theirs else _OTHER_NAMES.get(head.out, head.out)
    linear = theirs.linear("head.out", name)
    return {"head.out.bias": torch.zeros(len(linear["head.out.weight"])), **linear}


def seq2seq_labels(values: Values) -> dict[str, Any]:
    """The fields of an encoder-decoder's classifier, which reads the decoder's last token; empty
    for another head."""
    if not architecture(values).endswith("ForSequenceClassification"):
        return {}
    scores = label_fields(values, (), "one label")
    plain = {"head_bias": False, "tie_embeddings": False, "logit_scale": 1.0}
    return {"head": "text-labels-last", "label_activation": "tanh", **plain, **scores}


def tables_and_head(theirs: Stored, config: ModelConfig) -> dict[str, Tensor]:
    """The embeddings of an encoder-decoder, and its head."""
    ours = _shared_tables(theirs)
    if not config.labels:
        return ours
    ours.pop("head.weight", None)
    ours |= theirs.linear("head.dense", "classification_head.dense")
    return ours | theirs.linear("head.out", "classification_head.out_proj")


def _shared_tables(theirs: Stored) -> dict[str, Tensor]:
    """The embeddings of an encoder-decoder and its head, which share a matrix unless others are
    stored."""
    names = ("lm_head", "decoder.embed_tokens", "encoder.embed_tokens")
    shared, head, *own = theirs.tied("shared.weight", *(f"{name}.weight" for name in names))
    assert shared is not None
    source, target = (shared if x is None else x for x in reversed(own))
    ours = {"source_embedding.tokens.weight": source}
    if source is not target:
        ours["target_embedding.tokens.weight"] = target
    if head is not None or target is not shared:
        ours["head.weight"] = shared if head is None else head
    return ours
