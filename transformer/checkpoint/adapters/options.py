"""Helpers of the adapters: values of another project's config.json, and its weights."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from transformer.checks import shortened
from transformer.model.config import ModelConfig

# Our name of a layer's part -> that of fairseq, as BART and OPT keep it.
FAIRSEQ_LAYER = {
    "self_attention.query": "self_attn.q_proj",
    "self_attention.key": "self_attn.k_proj",
    "self_attention.value": "self_attn.v_proj",
    "self_attention.output": "self_attn.out_proj",
    "self_residual.norm": "self_attn_layer_norm",
    "feed_forward.expand": "fc1",
    "feed_forward.contract": "fc2",
    "feed_forward_residual.norm": "final_layer_norm",
}
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


# Weights of heads that predict no tokens: classifiers, rewards, question answering.
_OTHER_HEADS = re.compile(
    r"(score|classifier|pre_classifier|classification_head|qa_outputs|v_head|multiple_choice_head)\b"
)


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and a.float().equal(b.float())


def _without_head(values: Values) -> ValueError:
    names = values.get("architectures")
    classes = shortened(names) if names else "?"
    return ValueError(f"this folder has no head that predicts tokens (architectures: {classes})")


class Stored:
    """Stored weights by name. A tensor is read from its file when it is taken.

    prefix: removed from names that have it. ignored: patterns of names that the network does not
    need. called: converts an old name to today's.
    """

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        prefix: str = "",
        ignored: Sequence[str] = (),
        called: Callable[[str], str] = str,
    ) -> None:
        dropped = re.compile("|".join(ignored) or "(?!)")
        names = {called(name).removeprefix(prefix): name for name in weights}
        self._weights = weights
        self._left = {name: own for name, own in names.items() if not dropped.fullmatch(name)}

    def __contains__(self, name: str) -> bool:
        """Whether this weight is stored and not taken yet."""
        return name in self._left

    def take(self, name: str) -> Tensor:
        """Take a weight. Raises ValueError without one of this name."""
        if name not in self._left:
            raise ValueError(f"the weight {shortened(name)} is missing; it is needed")
        return self._weights[self._left.pop(name)]

    def tied(self, table: str, *others: str) -> list[Tensor | None]:
        """A matrix and others that may be tied to it, each None if it is tied.

        As in transformers: one that is not stored, or is stored with the same numbers, is tied;
        if the first is not stored, the next one that is stored replaces it.
        """
        stored = [name for name in (table, *others) if name in self._left]
        first = self.take(stored[0] if stored else table)
        rest = [self.take(name) if name in self._left else None for name in others]
        return [first, *(None if x is None or _equal(x, first) else x for x in rest)]

    def head(self, values: Values, *names: str) -> None:
        """Raise ValueError if none of these weights of a head is stored."""
        if not any(name in self._left for name in names):
            only(values, tie_word_embeddings=True)
            raise _without_head(values)

    def linear(self, ours: str, theirs: str) -> dict[str, Tensor]:
        """A linear map or a norm, renamed: its weight, and its bias if it has one."""
        bias = f"{theirs}.bias" in self._left
        tensors = {f"{ours}.weight": self.take(f"{theirs}.weight")}
        return tensors | ({f"{ours}.bias": self.take(f"{theirs}.bias")} if bias else {})

    def rows(self, ours: Sequence[str], theirs: str, sizes: Sequence[int]) -> dict[str, Tensor]:
        """Linear maps whose rows are stored one below the other, this many of each."""
        tensors: dict[str, Tensor] = {}
        for name, tensor in self.linear("", theirs).items():
            if len(tensor) != sum(sizes):
                raise ValueError(
                    f"{theirs}{name} has {len(tensor)} rows; needed: {' + '.join(map(str, sizes))}"
                )
            parts = zip(ours, tensor.split(list(sizes)), strict=True)
            tensors |= {f"{mine}{name}": part for mine, part in parts}
        return tensors

    def by_group(self, ours: str, theirs: str, config: ModelConfig) -> dict[str, Tensor]:
        """Queries, keys and values that one matrix holds group by group: those of the heads that
        share a head of keys and values, then that head's."""
        tensors: dict[str, Tensor] = {}
        for kind, rows in self.linear("", theirs).items():
            groups = rows.unflatten(0, (config.key_heads, -1, config.d_head))
            tensors[f"{ours}.query{kind}"] = groups[:, :-2].flatten(0, 2)
            for part, at in (("key", -2), ("value", -1)):
                tensors[f"{ours}.{part}{kind}"] = groups[:, at].flatten(0, 1)
        return tensors

    def layers(
        self,
        n_layers: int,
        ours: str,
        theirs: str | Callable[[int], str],
        names: Mapping[str, str],
    ) -> dict[str, Tensor]:
        """Linear maps and norms of every layer, renamed. names: by this project's name. theirs: of
        layers, or each layer's own name; layers of one name share their weights."""
        tensors: dict[str, Tensor] = {}
        taken: dict[str, dict[str, Tensor]] = {}
        for layer in range(n_layers):
            path = f"{theirs}.{layer}" if isinstance(theirs, str) else theirs(layer)
            if path not in taken:
                parts = (self.linear(mine, f"{path}.{other}") for mine, other in names.items())
                taken[path] = {name: x for part in parts for name, x in part.items()}
            tensors |= {f"{ours}.{layer}.{name}": x for name, x in taken[path].items()}
        return tensors

    def drop(self, pattern: str) -> None:
        """Ignore the weights that are left and match a pattern."""
        for name in [name for name in self._left if re.fullmatch(pattern, name)]:
            del self._left[name]

    def finish(self, values: Values) -> None:
        """Raise ValueError if a weight was not taken."""
        if any(_OTHER_HEADS.match(name) for name in self._left):
            raise _without_head(values)
        if self._left:
            raise ValueError(
                f"it has a weight {shortened(min(self._left))} that this network has no place for"
            )


def half_split(rows: Tensor, n_heads: int, rotary_size: int) -> Tensor:
    """Rows (H D, ...) of a network that rotates neighbouring features, in the order in which a
    feature and the one half of them on are a pair. Scores stay the same."""
    heads = rows.unflatten(0, (n_heads, -1))
    first, second = heads[:, 0:rotary_size:2], heads[:, 1:rotary_size:2]
    return torch.cat([first, second, heads[:, rotary_size:]], dim=1).flatten(0, 1)


def with_biases(ours: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights, with zeros for the biases of norms that are stored without them."""
    norms = [name for name in ours if name.endswith("norm.weight")]
    return {name.replace("weight", "bias"): torch.zeros(len(ours[name])) for name in norms} | ours


def second_norm(ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A copy of each layer's first norm, where attention and feed-forward read one."""
    copies = {}
    for name, tensor in ours.items():
        if ".self_residual.norm." in name:
            copies[name.replace("self_residual", "feed_forward_residual")] = tensor.clone()
    return copies
