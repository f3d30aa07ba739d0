"""Check a ModelConfig: the allowed values, and an error for all others."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

from transformer.checks import check_choice, check_least, shortened
from transformer.model.heads import HEADS, LABEL_ACTIVATIONS, LABEL_PROBABILITIES
from transformer.model.positions import LAYER_TYPES, POSITIONS
from transformer.model.primitives import ACTIVATIONS, INITS, NORMS, PLACEMENTS
from transformer.model.rotary import SCALINGS

SCORE_DIVISORS = ("d_head", "d_model")  # the paper's, and a tutorial's mistake
STACKS = {  # of each family
    "decoder": ("decoder",), "encoder": ("encoder",), "encoder-decoder": ("encoder", "decoder"),
}  # fmt: skip
FAMILIES = tuple(STACKS)


def check(config: Any) -> None:
    """Raise ValueError for a ModelConfig with unknown or impossible values."""
    _check_choices(config)
    _check_sizes(config)
    _check_switches(config)
    _check_heads(config)
    _check_rotary(config)
    _check_embeddings(config)
    _check_head(config)


def _check_choices(config: Any) -> None:
    choices: dict[str, Collection[str]] = {
        "family": FAMILIES,
        "norm": PLACEMENTS,
        "norm_kind": NORMS,
        "score_divisor": SCORE_DIVISORS,
        "positions": POSITIONS,
        "activation": ACTIVATIONS,
        "rotary_scaling": SCALINGS,
        "init": INITS,
        "head": HEADS,
        "label_probabilities": LABEL_PROBABILITIES,
    }
    for name, allowed in choices.items():
        check_choice(name, getattr(config, name), allowed)
    for kind in config.layer_types:
        check_choice("layer_types", kind, LAYER_TYPES)


def _check_sizes(config: Any) -> None:
    names = ["vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len"]
    maybe = [
        "target_vocab_size", "target_n_layers", "target_max_len", "head_size", "n_key_heads",
        "window", "rotary_size", "rotary_trained_len", "embedding_size",
    ]  # fmt: skip
    for name in [*names, *(name for name in maybe if getattr(config, name) is not None)]:
        check_least(name, getattr(config, name), 1)
    check_least("n_token_types", config.n_token_types, 0)
    check_least("relative_buckets", config.relative_buckets, 0)
    check_least("relative_farthest", config.relative_farthest, 2)
    encoding = POSITIONS[config.positions]
    if encoding.needs_buckets or config.relative_buckets:
        check_least("relative_buckets", config.relative_buckets, 4)
        if encoding.is_rotary or encoding.bias is not None:
            raise ValueError(
                f"relative_buckets={config.relative_buckets} and positions="
                f"{shortened(config.positions)} exclude each other"
            )
    if config.head_size is None and config.d_model % config.n_heads:
        raise ValueError(
            f"n_heads must divide d_model; got d_model={config.d_model}, n_heads={config.n_heads}"
        )
    if encoding.pairs and config.d_model % 2:
        raise ValueError(f"{config.positions} positions need an even d_model; got {config.d_model}")
    for name in ("dropout", "attention_dropout", "feed_forward_dropout"):
        got = getattr(config, name)
        if not _is_number(got) or not 0 <= got < 1:
            raise ValueError(f"{name} must be at least 0 and below 1; got {shortened(got)}")
    scales = ["logit_scale", "residual_scale", "embedding_scale", "rotary_multiplier"]
    maybe = ["score_scale", "score_cap", "logit_cap", "sliding_rotary_base"]
    for name in [*scales, *(name for name in maybe if getattr(config, name) is not None)]:
        got = getattr(config, name)
        if not _is_number(got) or not 0 < got < float("inf"):
            raise ValueError(f"{name} must be a number above 0; got {shortened(got)}")
    if not _is_number(config.norm_eps) or not 0 < config.norm_eps < 1:
        raise ValueError(f"norm_eps must be above 0 and below 1; got {shortened(config.norm_eps)}")


def _check_switches(config: Any) -> None:
    for field in dataclasses.fields(config):
        got = getattr(config, field.name)
        if isinstance(field.default, bool) and not isinstance(got, bool):
            raise ValueError(f"{field.name} must be True or False; got {shortened(got)}")
    if not isinstance(config.output_bias, bool | None):
        raise ValueError(
            f"output_bias must be True, False or None; got {shortened(config.output_bias)}"
        )
    if config.parallel and config.norm != "pre":
        raise ValueError(f"parallel needs norm='pre'; got norm={shortened(config.norm)}")


def _check_heads(config: Any) -> None:
    if config.n_heads % config.key_heads:
        raise ValueError(
            f"n_key_heads must divide n_heads; got n_heads={config.n_heads}, "
            f"n_key_heads={config.n_key_heads}"
        )
    norms = config.norm_heads, config.norm_all_heads
    if all(norms):
        raise ValueError("norm_heads and norm_all_heads exclude each other; got both")
    plain = (config.head_size, config.n_key_heads) == (None, None) and not any(norms)
    if config.shared_projection and not plain:
        raise ValueError(
            "shared_projection goes with heads of d_model / n_heads features alone; got "
            f"head_size={config.head_size}, n_key_heads={config.n_key_heads}, "
            f"norm_heads={config.norm_heads}, norm_all_heads={config.norm_all_heads}"
        )


def _check_rotary(config: Any) -> None:
    for name in ("rotary_base", "rotary_factor", "rotary_low", "rotary_high"):
        got = getattr(config, name)
        if not _is_number(got) or not 0 < got < float("inf"):
            raise ValueError(f"{name} must be a number above 0; got {shortened(got)}")
    if config.rotary_low >= config.rotary_high:
        raise ValueError(
            f"rotary_low must be below rotary_high; got {config.rotary_low}, {config.rotary_high}"
        )
    if not POSITIONS[config.positions].is_rotary:
        return
    size, trained = config.rotary.size, config.rotary_trained_len or config.max_len
    if size % 2 or size > config.d_head:
        raise ValueError(
            f"rotary positions rotate an even number of a head's {config.d_head} features; got "
            f"{size}"
        )
    longest, scaling = max(config.max_len, config.output_max_len), config.rotary_scaling
    factors, n_factors = config.rotary_pair_factors, size // 2 if scaling == "longrope" else 0
    if len(factors) != n_factors or not all(_is_number(x) and x > 0 for x in factors):
        raise ValueError(
            f"rotary_pair_factors must be {n_factors} numbers above 0 with rotary_scaling="
            f"{shortened(scaling)}; got {shortened(factors)}"
        )
    if SCALINGS[scaling].changes and longest > trained:
        raise ValueError(
            f"{scaling} scaling changes the rotation of every token beyond the trained {trained} "
            f"tokens; needed: a max_len of at most that; got {longest}"
        )


def _is_number(got: Any) -> bool:
    return isinstance(got, int | float) and not isinstance(got, bool)


def _check_embeddings(config: Any) -> None:
    two_stacks = config.family == "encoder-decoder"
    for name in ("target_vocab_size", "target_n_layers", "target_max_len", "target_padding_id"):
        if getattr(config, name) is not None and not two_stacks:
            raise ValueError(
                f"{name} is for an encoder-decoder; got family={shortened(config.family)}"
            )
    if config.share_embeddings and (
        not two_stacks or config.output_vocab_size != config.vocab_size
    ):
        raise ValueError(
            "share_embeddings needs an encoder-decoder with one joint vocabulary; got "
            f"family={shortened(config.family)}, vocab_size={config.vocab_size}, "
            f"target_vocab_size={config.target_vocab_size}"
        )
    one_for_both = two_stacks and config.target_padding_id is None
    smallest = min(config.vocab_size, config.output_vocab_size)
    _check_id("padding_id", config.padding_id, smallest if one_for_both else config.vocab_size)
    _check_id("target_padding_id", config.target_padding_id, config.output_vocab_size)


def _check_id(name: str, got: Any, vocab_size: int) -> None:
    is_id = isinstance(got, int) and not isinstance(got, bool) and 0 <= got < vocab_size
    if got is not None and not is_id:
        raise ValueError(f"{name} must be an id below {vocab_size} or None; got {shortened(got)}")


def _check_head(config: Any) -> None:
    labelled = HEADS[config.head].labelled
    if not all(isinstance(label, str) for label in config.labels) or labelled != bool(
        config.labels
    ):
        raise ValueError(
            "labels must be names, and are for a head that scores labels; got "
            f"head={shortened(config.head)}, labels={shortened(config.labels)}"
        )
    if config.label_activation is not None:
        check_choice("label_activation", config.label_activation, LABEL_ACTIVATIONS)
    if config.d_embedding != config.d_model and config.family != "encoder":
        raise ValueError(
            f"embedding_size={config.embedding_size} needs family='encoder'; got "
            f"{shortened(config.family)}"
        )
    if config.head != "tokens" and config.tie_embeddings:
        raise ValueError(f"tie_embeddings needs head='tokens'; got {shortened(config.head)}")
    if config.head == "none" and config.head_transform:
        raise ValueError("head_transform needs a head; got head='none'")
    projected = config.d_embedding != config.d_model
    if projected and config.tie_embeddings and not config.head_transform:
        raise ValueError("tie_embeddings with an embedding_size needs head_transform=True")
