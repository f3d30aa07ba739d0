"""The answer of a topic: formula, code, and tensors with a few of their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transformer.analysis.layer_at_position import LayerAtPosition, layer_at_position
from transformer.analysis.model_queries import ModelQueries
from transformer.analysis.row_arithmetic import RowArithmetic, row_arithmetic
from transformer.messages import say
from transformer.model.config import ModelConfig
from transformer.model.sites import Site
from transformer.runs.run import Run

FIRST = 6  # numbers of a tensor's row that are shown


@dataclass(kw_only=True, slots=True, eq=False)
class Topic:
    """A formula with its code and tensors, for one head and one query of a run.

    position: the query's row. token: for sampling, the index in the run's ids; None = the last.
    says: sentences on how this model does it. formula: its lines, see equations.js. code: see
    `excerpt`. tensors: see `add`. A part is a name that symbol, code and numbers share.
    """

    models: ModelQueries
    run: Run
    site: Site
    head: int
    position: int
    token: int | None
    says: list[str] = field(default_factory=list)
    formula: list[str] = field(default_factory=list)
    code: list[dict[str, Any]] = field(default_factory=list)
    tensors: list[dict[str, Any]] = field(default_factory=list)

    @property
    def config(self) -> ModelConfig:
        """The network's configuration."""
        return self.run.config

    @property
    def row(self) -> RowArithmetic:
        """The arithmetic of the query in its head."""
        return row_arithmetic(self.run, self.site, self.head, self.position)

    @property
    def layer(self) -> LayerAtPosition:
        """The layer of the head, at the query."""
        stack, layer, _ = self.site
        return self.models.ask(
            layer_at_position, self.run, stack=stack, layer=layer, position=self.position
        )

    def say_if_altered(self, agrees: bool) -> None:
        """Add a warning unless the recorded numbers follow from the intact network's formula."""
        if not agrees:
            self.says.append(
                say(
                    "This run was made with something altered here (see What if?), so that not "
                    "every number follows from the one before it."
                )
            )

    def add(
        self,
        part: str,
        symbol: str,
        name: str,
        axes: str,
        values: Any,
        at: Sequence[int] | None = None,
        *,
        tokens: Mapping[int, str] | None = None,
    ) -> None:
        """Add a tensor.

        symbol: see equations.js. axes: the letters of its shape, "B × H × Tq × D"; "" = a single
        number. values: the row that is shown, or a dict of some of its numbers by label. at: the
        shown ones, by default the first. tokens: their labels.
        """
        row = values if isinstance(values, dict) else dict(enumerate(np.asarray(values).tolist()))
        shown = list(row)[:FIRST] if at is None else at
        letters = axes.split(" × ") if axes else []
        sizes = self._sizes(letters, len(row))
        self.tensors.append(
            {
                "part": part, "symbol": symbol, "name": name,
                "axes": list(zip(letters, sizes, strict=True)),
                "cells": [
                    {"label": str(key), "value": plain(row[key])}
                    | ({} if tokens is None else {"token": tokens[key]})
                    for key in shown
                ],
                "more": (sizes[-1] if sizes else 1) - len(shown),
            }
        )  # fmt: skip

    def keys(self, part: str, symbol: str, name: str, axes: str, values: Any, **more: Any) -> None:
        """Add a tensor with a number for each key; `more` goes to `add`."""
        labels = self.run.keys(self.site.stack, self.site.kind)
        self.add(part, symbol, name, axes, values, tokens=dict(enumerate(labels)), **more)

    def _sizes(self, letters: Sequence[str], count: int) -> list[int]:
        """The length of each axis. A last axis V may be longer than the row."""
        config, (stack, _, kind) = self.config, self.site
        n_queries = len(self.run.queries(stack))
        known = {"B": 1, "1": 1, "H": config.n_heads, "T": n_queries, "Tq": n_queries}
        known |= {"Tk": len(self.run.keys(stack, kind)), "C": config.d_model}
        last = {"V": config.output_vocab_size}
        first = [known.get(letter, count) for letter in letters[:-1]]
        return first + [last.get(letter, count) for letter in letters[-1:]]


def quoted(label: str) -> str:
    """A token's label within a sentence, whatever direction its letters have."""
    return f"\u2068{label}\u2069"


def plain(value: Any) -> float | str:
    """A number for JSON: as text if it is True, False or cut to minus infinity."""
    if isinstance(value, bool):
        return str(value)
    return float(value) if np.isfinite(value) else "−∞"


def most_read(weights: Any) -> list[int]:
    """The keys of the largest weights, in the order of the text."""
    order = np.argsort(-np.asarray(weights), kind="stable")[:FIRST]
    return sorted(order.tolist())
