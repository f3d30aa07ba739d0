"""Helpers of the adapters: another project's weights by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from transformer.checkpoint.adapters.options import Values, only
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
