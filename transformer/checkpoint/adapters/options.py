"""Helpers of the adapters: values of another project's config.json."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from transformer.checks import shortened

# transformers' name of an activation -> this project's.
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "quick_gelu": "quick-gelu",
    "gelu_pytorch_tanh": "gelu-tanh",
    "silu": "silu",
    "swish": "silu",
}
# Likewise, of a scaling of rotary positions.
SCALINGS = {
    "default": "none", "linear": "linear", "dynamic": "dynamic", "llama3": "llama3", "yarn": "yarn",
    "longrope": "longrope",
}  # fmt: skip

Values = Mapping[str, Any]


def only(values: Values, **allowed: Any) -> None:
    """Raise ValueError unless each option is missing or has its one supported value."""
    for name, wanted in allowed.items():
        got = values.get(name)
        if got is not None and got != wanted:
            raise ValueError(
                f"it has {name}={shortened(got)}; what is read: {name}={shortened(wanted)}"
            )


def one_of(values: Values, name: str, allowed: Mapping[str, str], default: str) -> str:
    """Our name of a choice. Raises ValueError for an unsupported one."""
    got = values.get(name) or default
    if not isinstance(got, str) or got not in allowed:
        raise ValueError(f"it has {name}={shortened(got)}; what is read: {list(allowed)}")
    return allowed[got]


def needed(values: Values, *names: str) -> list[Any]:
    """The numbers under these names. Raises ValueError for a missing one."""
    for name in names:
        got = values.get(name)
        if got is None:
            raise ValueError(f"its config.json has no {name}; needed: a number")
        if isinstance(got, bool) or not isinstance(got, int | float):
            raise ValueError(f"it has {name}={shortened(got)}; needed: a number")
    return [values[name] for name in names]


USUAL = (
    "vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers",
    "max_position_embeddings", "intermediate_size",
)  # fmt: skip


def sizes_of(values: Values, max_len: int, names: Sequence[str] = USUAL) -> dict[str, Any]:
    """Our fields of sizes, read from their names; max_len: limits the tokens read at once."""
    ours = ("vocab_size", "d_model", "n_heads", "n_layers", "max_len", "d_ff")
    sizes = dict(zip(ours, needed(values, *names), strict=False))
    return sizes | {"max_len": min(max_len, sizes["max_len"])}


def shortest(types: Sequence[str]) -> tuple[str, ...]:
    """The shortest tuple that gives these types of layers when it is repeated."""
    lengths = range(1, len(types) + 1)
    return next(
        tuple(types[:n])
        for n in lengths
        if all(types[at] == types[at % n] for at in range(len(types)))
    )


def padding_of(values: Values, vocab_size: int, text: Iterable[str] = ()) -> int | None:
    """The id of padding; None without one, or if the same id is part of texts.

    text: the names of ids that are part of texts, such as their end.
    """
    got = values.get("pad_token_id")
    taken: set[Any] = set()
    for name in text:
        ids = values.get(name)
        taken |= set(ids) if isinstance(ids, list) else {ids}
    is_id = isinstance(got, int) and 0 <= got < vocab_size
    return got if is_id and got not in taken else None


def rope_of(values: Values) -> dict[str, Any]:
    """The settings of rotary positions: older files have rope_scaling, newer ones rope_parameters.
    If both are there, transformers reads the first."""
    return values.get("rope_scaling") or values.get("rope_parameters") or {}


def rotary_of(
    values: Values,
    rope: Values,
    rotary_size: int,
    base: float,
    scalings: Mapping[str, str] = SCALINGS,
) -> dict[str, Any]:
    """Our fields of rotary positions. rope: as in `rope_of`; base: the default where it has
    none; scalings: our names of the types that the family has."""
    (trained_len,) = needed(values, "max_position_embeddings")
    kind = rope.get("rope_type", rope.get("type", "default"))
    scaling = one_of({"rope_type": kind}, "rope_type", scalings, "default")
    fields: dict[str, Any] = {
        "rotary_size": rotary_size,
        "rotary_base": float(rope.get("rope_theta") or base),
        "rotary_scaling": scaling,
    }
    if scaling == "none":
        return fields
    if scaling == "longrope":
        return fields | _longrope(values, rope)
    fields["rotary_factor"] = float(needed(rope, "factor")[0])
    fields["rotary_trained_len"] = trained_len
    if scaling in ("llama3", "yarn"):
        name = "original_max_position_embeddings"
        fields["rotary_trained_len"] = values.get(name) or rope.get(name) or trained_len
    if scaling == "llama3":
        low, high = needed(rope, "low_freq_factor", "high_freq_factor")
    elif scaling == "yarn":
        only(rope, truncate=True)
        low, high = rope.get("beta_slow") or 1, rope.get("beta_fast") or 32
        fields["rotary_multiplier"] = _yarn_multiplier(rope)
    else:
        return fields
    return fields | {"rotary_low": float(low), "rotary_high": float(high)}


def _longrope(values: Values, rope: Values) -> dict[str, Any]:
    """Phi-3 128k: each pair's own factors, for texts within the trained length."""
    name = "original_max_position_embeddings"
    (length,) = needed({name: values.get(name) or rope.get(name)}, name)
    multiplier = rope.get("attention_factor")
    if multiplier is None:
        factor = rope.get("factor") or values["max_position_embeddings"] / length
        growth = math.log(max(factor, 1.0))
        multiplier = math.sqrt(1 + growth / math.log(length))
    return {
        "rotary_scaling": "longrope",
        "rotary_pair_factors": tuple(rope.get("short_factor") or ()),
        "rotary_multiplier": float(multiplier),
        "rotary_trained_len": length,
    }


def _yarn_multiplier(rope: Values) -> float:
    """How much longer yarn makes queries and keys, so that attention in long texts stays sharp."""
    if rope.get("attention_factor") is not None:
        return float(rope["attention_factor"])
    growth = 0.1 * math.log(max(rope["factor"], 1.0))
    of_some, all_features = rope.get("mscale"), rope.get("mscale_all_dim")
    if of_some and all_features:
        return float((of_some * growth + 1) / (all_features * growth + 1))
    return growth + 1
