"""What a topic answers with: formula, code, and tensors with a few of their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from transformer.analysis.layer_at_place import LayerAtPlace, layer_at_place
from transformer.analysis.model_queries import ModelQueries
from transformer.messages import say
from transformer.model.config import ModelConfig
from transformer.model.sites import Site
from transformer.runs.run import Run
from transformer.runs.steps import GenerationStep
from transformer.views.equations.mathml import Node, mi, sub
from transformer.views.equations.source import Code

FIRST = 6  # numbers of a tensor's row that are shown
MINUS_INFINITY = "−∞"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RenderContext:
    """What is looked at: a head of a site of a run, and a row of its trace, the chosen token."""

    models: ModelQueries
    run: Run
    site: Site
    head: int
    place: int

    @property
    def config(self) -> ModelConfig:
        """The network's."""
        return self.run.config

    @property
    def label(self) -> str:
        """The chosen token, kept apart from the words around it."""
        return token(self.run.queries(self.site.stack)[self.place])


@dataclass(kw_only=True, slots=True, eq=False)
class Topic:
    """says: sentences on how this model does it. formula: its lines. tensors: see `tensor`."""

    says: list[str] = field(default_factory=list)
    formula: list[Node] = field(default_factory=list)
    code: list[Code] = field(default_factory=list)
    tensors: list[dict[str, Any]] = field(default_factory=list)

    def answer(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "says": self.says,
            "formula": self.formula,
            "code": [one.read() for one in self.code],
            "tensors": self.tensors,
        }


def token(label: str) -> str:
    """A token's label within a sentence, whatever direction its letters have."""
    return f"\u2068{label}\u2069"


def tensor(
    part: str,
    symbol: Node,
    name: str,
    axes: Sequence[tuple[str, int]],
    cells: list[dict[str, Any]],
    *,
    more: int = 0,
    rest: float | None = None,
    adds_up: float | None = None,
    note: str = "",
) -> dict[str, Any]:
    """One tensor: its symbol, what it is, the letters and sizes of its axes, and some numbers.

    cells: see `row_of` and `keys_of`. more: how many numbers of the row are not shown. rest: their
    sum, and adds_up: that of the whole row, where it adds up to something.
    """
    return {
        "part": part, "symbol": symbol, "name": name, "axes": [list(one) for one in axes],
        "cells": cells, "more": more, "rest": rest, "adds_up": adds_up, "note": note,
    }  # fmt: skip


def row_of(values: Any, places: Sequence[int] | None = None) -> dict[str, Any]:
    """The first numbers of a row, each with its place, as keywords of `tensor`."""
    numbers = np.asarray(values, dtype=np.float64)
    shown = range(min(FIRST, len(numbers))) if places is None else places
    return {
        "cells": [{"label": str(at), "value": number(numbers[at])} for at in shown],
        "more": len(numbers) - len(shown),
    }


def keys_of(
    values: Any, labels: Sequence[str], places: Sequence[int], *, adds_up: bool = False
) -> dict[str, Any]:
    """Numbers of some keys, each with its token, as keywords of `tensor`."""
    numbers = np.asarray(values, dtype=np.float64)
    cells = [{"label": str(at), "token": labels[at], "value": number(numbers[at])} for at in places]
    left = np.delete(numbers, list(places))
    found: dict[str, Any] = {"cells": cells, "more": len(left)}
    if adds_up:
        found |= {"rest": float(left.sum()) if len(left) else None, "adds_up": float(numbers.sum())}
    return found


def one(value: float, label: str = "") -> dict[str, Any]:
    """A single number, as keywords of `tensor`."""
    return {"cells": [{"label": label, "value": number(value)}]}


def number(value: Any) -> float | str:
    """A number as JSON has it; what was cut is minus infinity."""
    found = float(value)
    return found if np.isfinite(found) else MINUS_INFINITY


def most_read(weights: Any) -> list[int]:
    """The keys of the largest weights, in the order of the text."""
    order = np.argsort(-np.asarray(weights), kind="stable")[:FIRST]
    return sorted(int(at) for at in order)


def no_such(sentence: str) -> Topic:
    """A topic of which this model, or this run, has nothing to show."""
    return Topic(says=[sentence])


def altered() -> str:
    """Said where recorded numbers are not what the intact network's formula gives."""
    return say(
        "This run was made with something altered here (see What if?), so that not every number "
        "follows from the one before it."
    )


def layer_of(look: RenderContext) -> LayerAtPlace:
    """The layer of the chosen head, at the chosen token."""
    site = look.site
    return look.models.ask(
        layer_at_place, look.run, stack=site.stack, layer=site.layer, place=look.place
    )


def changed(found: LayerAtPlace) -> list[str]:
    """A sentence where the recorded layer ends elsewhere."""
    return [] if found.agrees else [altered()]


def stream_row(
    look: RenderContext, part: str, symbol: Node, name: str, values: Tensor
) -> dict[str, Any]:
    """The chosen token's row of a (B, T, C) tensor."""
    axes = [("B", 1), ("T", len(look.run.queries(look.site.stack))), ("C", look.config.d_model)]
    return tensor(part, symbol, name, axes, **row_of(values))


def logit() -> Node:
    """The symbol of a token's logit."""
    return sub(mi("z"), mi("i"), "logits")


def chance() -> Node:
    """The symbol of a token's probability."""
    return sub(mi("p"), mi("i"), "probabilities")


def label_of(look: RenderContext, token_id: int) -> str:
    """A candidate as people read it."""
    return token(look.run.candidate_labels.get(token_id, str(token_id)))


def cells_of(look: RenderContext, ids: list[int], values: Any) -> list[dict[str, Any]]:
    """A number of each of these tokens of the vocabulary."""
    names = look.run.candidate_labels
    return [
        {
            "label": str(at), "token": names.get(at, str(at)),
            "value": value if isinstance(value, str) else number(value),
        }
        for at, value in zip(ids, values, strict=True)
    ]  # fmt: skip


def of_vocabulary(
    look: RenderContext, part: str, symbol: Node, name: str, ids: list[int], values: Any, size: Any
) -> dict[str, Any]:
    """Numbers of the likeliest tokens, out of one for each token there is."""
    cells = cells_of(look, ids, values)
    return tensor(part, symbol, name, [("B", 1), size], cells, more=size[1] - len(cells))


def taken_of(look: RenderContext, step: GenerationStep) -> dict[str, Any]:
    """The token of a step."""
    chosen = step.chosen
    return tensor(
        "drawn", mi("i"), say("the token that was taken"), [],
        cells=cells_of(look, [chosen.id], [chosen.sampling_probability]),
    )  # fmt: skip
