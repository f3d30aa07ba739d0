"""What a topic answers with: formula, code, and tensors with a few of their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transformer.analysis.layer_at_position import LayerAtPlace, layer_at_position
from transformer.analysis.model_queries import ModelQueries
from transformer.analysis.row_arithmetic import RowArithmetic, row_arithmetic
from transformer.messages import say
from transformer.model.config import ModelConfig
from transformer.model.sites import Site
from transformer.runs.run import Run
from transformer.views.model.mathml import mathml

FIRST = 6  # numbers of a tensor's row that are shown


@dataclass(kw_only=True, slots=True, eq=False)
class Topic:
    """What is said of a head of a site of a run, and of one row of its trace, the chosen token.

    says: sentences on how this model does it. formula: its lines, see `mathml`. tensors: in their
    order, added by the methods, which all take part: the name that symbol, code and numbers share;
    symbol: see `mathml`; name: what it is; axes: the letters of its shape, "B × H × Tq × D".
    """

    models: ModelQueries
    run: Run
    site: Site
    head: int
    position: int
    says: list[str] = field(default_factory=list)
    formula: list[str] = field(default_factory=list)
    code: list[dict[str, Any]] = field(default_factory=list)
    tensors: list[dict[str, Any]] = field(default_factory=list)

    def answer(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "says": self.says,
            "formula": [mathml(line) for line in self.formula],
            "code": self.code,
            "tensors": self.tensors,
        }

    # --- what it is about ---

    @property
    def config(self) -> ModelConfig:
        """The network's."""
        return self.run.config

    @property
    def label(self) -> str:
        """The chosen token, kept apart from the words around it."""
        return quoted(self.run.queries(self.site.stack)[self.position])

    @property
    def row(self) -> RowArithmetic:
        """The arithmetic of the chosen row of the chosen head."""
        return row_arithmetic(self.run, self.site, self.head, self.position)

    @property
    def layer(self) -> LayerAtPlace:
        """The layer of the chosen head, at the chosen token."""
        stack, layer, _ = self.site
        return self.models.ask(
            layer_at_position, self.run, stack=stack, layer=layer, position=self.position
        )

    def label_of(self, token_id: int) -> str:
        """A candidate as people read it."""
        return quoted(self.run.candidate_labels.get(token_id, str(token_id)))

    def say_if_altered(self, agrees: bool) -> None:
        """A sentence where recorded numbers are not what the intact network's formula gives."""
        if not agrees:
            self.says.append(
                say(
                    "This run was made with something altered here (see What if?), so that not "
                    "every number follows from the one before it."
                )
            )

    # --- its numbers ---

    def add(
        self,
        part: str,
        symbol: str,
        name: str,
        axes: str,
        cells: list[dict[str, Any]],
        *,
        count: int = 1,
        rest: float | None = None,
        adds_up: float | None = None,
        note: str = "",
    ) -> None:
        """A tensor. count: the numbers of the row, of which `cells` are some. rest: the sum of
        those that are not shown, and adds_up: that of all, where they add up to something."""
        letters = axes.split(" × ") if axes else []
        sizes = [self._size(letter, count) for letter in letters] if letters[1:] else [count]
        self.tensors.append(
            {
                "part": part, "symbol": mathml(symbol), "name": name,
                "axes": [list(one) for one in zip(letters, sizes, strict=False)],
                "cells": cells, "more": count - len(cells),
                "rest": rest, "adds_up": adds_up, "note": note,
            }
        )  # fmt: skip

    def _size(self, letter: str, count: int) -> int:
        """How long an axis is; the row's own is as long as `count` says."""
        config, (stack, _, kind) = self.config, self.site
        n_queries = len(self.run.queries(stack))
        known = {"B": 1, "1": 1, "H": config.n_heads, "T": n_queries, "Tq": n_queries}
        known |= {"Tk": len(self.run.keys(stack, kind)), "C": config.d_model}
        return known.get(letter, count)

    def number(
        self, part: str, symbol: str, name: str, value: float, *, label: str = "", note: str = ""
    ) -> None:
        """A single number."""
        self.add(part, symbol, name, "", [{"label": label, "value": plain(value)}], note=note)

    def features(
        self,
        part: str,
        symbol: str,
        name: str,
        axes: str,
        values: Any,
        at: Sequence[int] | None = None,
        *,
        note: str = "",
    ) -> None:
        """Numbers of a row of features: those at some positions, by default the first."""
        numbers = np.asarray(values, dtype=np.float64)
        shown = range(min(FIRST, len(numbers))) if at is None else at
        cells = [{"label": str(place), "value": plain(numbers[place])} for place in shown]
        self.add(part, symbol, name, axes, cells, count=len(numbers), note=note)

    def keys(
        self,
        part: str,
        symbol: str,
        name: str,
        axes: str,
        values: Any,
        at: Sequence[int],
        *,
        adds_up: bool = False,
        note: str = "",
    ) -> None:
        """Numbers, or whether something is true, of the keys at some positions."""
        labels, numbers = self.run.keys(self.site.stack, self.site.kind), np.asarray(values)
        cells = [
            {"label": str(key), "token": labels[key], "value": plain(numbers[key])} for key in at
        ]
        left = np.delete(numbers, list(at))
        rest = float(left.sum(dtype=np.float64)) if adds_up and len(left) else None
        total = float(numbers.sum(dtype=np.float64)) if adds_up else None
        self.add(
            part, symbol, name, axes, cells, count=len(numbers), rest=rest, adds_up=total, note=note
        )

    def vocabulary(
        self, part: str, symbol: str, name: str, ids: Sequence[int], values: Any, **more: Any
    ) -> None:
        """Numbers of some tokens, out of one for each token there is; `more` goes to `add`."""
        cells = self.cells_of(ids, values)
        count = self.config.output_vocab_size
        self.add(part, symbol, name, more.pop("axes", "B × V"), cells, count=count, **more)

    def cells_of(self, ids: Sequence[int], values: Any) -> list[dict[str, Any]]:
        """A number of each of these tokens of the vocabulary."""
        names = self.run.candidate_labels
        return [
            {"label": str(at), "token": names.get(at, str(at)), "value": plain(value)}
            for at, value in zip(ids, values, strict=True)
        ]


def quoted(label: str) -> str:
    """A token's label within a sentence, whatever direction its letters have."""
    return f"\u2068{label}\u2069"


def plain(value: Any) -> float | str:
    """A number as JSON has it, what was cut as minus infinity; True and False in words."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    found = float(value)
    return found if np.isfinite(found) else "−∞"


def most_read(weights: Any) -> list[int]:
    """The keys of the largest weights, in the order of the text."""
    order = np.argsort(-np.asarray(weights), kind="stable")[:FIRST]
    return sorted(int(at) for at in order)
