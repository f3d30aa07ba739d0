"""A topic: a formula, the places of its parts in our code, and their numbers in a run.

The formula decides what is shown: code and numbers are declared for all variants of a topic, and
`answer_of` leaves out the parts that this model's formula does not have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from transformer.analysis.layer_at_position import LayerAtPosition, layer_at_position
from transformer.analysis.model_queries import ModelQueries
from transformer.analysis.row_arithmetic import RowArithmetic, row_arithmetic
from transformer.messages import capital, say
from transformer.model.sites import Site
from transformer.model.summary import blocks
from transformer.runs.run import Run
from transformer.views.model.block_text import text_of
from transformer.views.model.source import excerpt

N_NUMBERS = 6  # numbers of a tensor's row that are shown
Code = list[tuple[Callable[..., Any], str]]
QUERIES, KEYS, SCORES = "B × H × Tq × D", "B × H × Tk × D", "B × H × Tq × Tk"
STREAM, WIDE, PAIRS = "B × T × C", "B × T × d_ff", "R / 2"


def parts_by_name() -> dict[str, tuple[str, str]]:
    """The letters of each part's shape ("" = a single number) and its name, in shown order."""
    return {
        "q": (QUERIES, say("the query of the chosen token")),
        "k": (KEYS, say("the key of the token that it reads most")),
        "root": ("", say("what scores are divided by")),
        "bias": ("H × Tq × Tk", say("what positions add to the scores")),
        "mask": ("B × 1 × Tq × Tk", say("whether the key may be read")),
        "scores": (SCORES, say("scores before the mask")),
        "fill": (
            "",
            say("what hidden scores become: the lowest number of their type, as good as −∞"),
        ),
        "filled": (SCORES, say("scores after the mask")),
        "weights": (SCORES, say("weights of the same keys")),
        "v": (KEYS, say("the value of the token that it reads most")),
        "output": (QUERIES, say("what the head reads: the values, each by its weight")),
        "stream": (STREAM, say("the residual stream that comes in")),
        "norm_of": (STREAM, say("what is normalised")),
        "mean": ("", say("the mean of its features")),
        "variance": ("", say("their variance")),
        "square": ("", say("the mean of its squared features")),
        "gain": ("C", say("the trained scale")),
        "shift": ("C", say("the trained shift")),
        "normalised": (STREAM, say("normalised")),
        "added": (STREAM, say("what the sub-layer adds to the stream")),
        "out": (STREAM, say("the residual stream that goes on")),
        "read": (STREAM, say("what it reads, of the chosen token")),
        "wide": (WIDE, say("the same, made wide")),
        "gate": (WIDE, say("the gate before the activation")),
        "inner": (WIDE, say("activated")),
        "made": (STREAM, say("what the feed-forward makes")),
        "p": ("", say("the position of the chosen token, counted from 0")),
        "angle": ("C / 2", say("the angles of the first pairs of features, in radians")),
        "position": ("T × C", say("the vector of its position")),
        "token": (STREAM, say("the token's own vector")),
        "sum": (STREAM, say("their sum")),
        "theta": (PAIRS, say("radians for each step of p, of each pair")),
        "cos": (PAIRS, say("the cosines at p")),
        "sin": (PAIRS, say("the sines at p")),
        "before": (QUERIES, say("the query before it is rotated")),
        "after": (QUERIES, say("the query as it meets the keys")),
        "logits": ("B × V", say("logits of the likeliest tokens")),
        "penalised": ("B × V", say("logits after the repetition penalty")),
        "temperature": ("", say("the temperature of this run")),
        "scaled": ("B × V", say("divided by the temperature")),
        "given": ("B × V", say("what the network gives them")),
        "probabilities": ("B × V", say("what the token was drawn from")),
        "drawn": ("B", say("the token that was taken")),
    }


class Topic(NamedTuple):
    """says: sentences on each run of the model; then: on what is chosen, whose place comes first if
    is_placed. formula: its lines, see equations.js; `:part` after a symbol names it.

    code: where each function computes the parts, see `excerpt`. numbers: of each part the row that
    is shown, or some of its numbers by index. shown: the indices that are shown of rows along an
    axis; by default the first. agrees: whether the numbers follow from the network's formula.
    """

    says: Sequence[str] = ()
    formula: Sequence[str] = ()
    code: Sequence[tuple[Callable[..., Any], str]] = ()
    numbers: Any = None
    shown: Sequence[tuple[str, Sequence[int]]] = ()
    agrees: bool = True
    then: Sequence[str] = ()
    is_placed: bool = True


class HeadAtQuery(NamedTuple):
    """A head and a query of a run.

    query: the row. position: for sampling, the token's index in the run's ids; None = the last.
    """

    models: ModelQueries
    run: Run
    site: Site
    head: int
    query: int
    position: int | None

    @property
    def row(self) -> RowArithmetic:
        """The arithmetic of the query in its head."""
        return row_arithmetic(self.run, self.site, self.head, self.query)

    @property
    def layer(self) -> LayerAtPosition:
        """The layer of the head, at the query."""
        place = dict(stack=self.site.stack, layer=self.site.layer, position=self.query)
        return self.models.ask(layer_at_position, self.run, **place)

    @property
    def place(self) -> str:
        """The chosen token, as a sentence."""
        stack, layer, _ = self.site
        values = dict(layer=layer, head=self.head, query=self.query)
        token = quoted(self.run.queries(stack)[self.query])
        where = say("layer {layer}, head {head}, query {query} {token}", token=token, **values)
        return f"{capital(where)}."

    def does(self, *names: str) -> list[str]:
        """What these blocks of the token's stack do, as *Architecture* says it."""
        wanted, config = {f"{self.site.stack}.{name}" for name in names}, self.run.config
        return [text_of(config, block).does for block in blocks(config) if block.name in wanted]


def outline_of(topic: Topic) -> dict[str, Any]:
    """A topic without the numbers of a run, as plain values, with the parts of its formula alone:
    the network in the browser fills them in."""
    parts = set(re.findall(r":(\w+)", " ".join(topic.formula)))
    return {
        "says": list(topic.says),
        "formula": list(topic.formula),
        "code": [excerpt(function, places, parts) for function, places in topic.code],
        "tensors": [
            {"part": part, "name": name, "axes": axes}
            for part, (axes, name) in parts_by_name().items()
            if part in parts
        ],
        "is_placed": topic.is_placed,
    }


def answer_of(topic: Topic, chosen: HeadAtQuery) -> dict[str, Any]:
    """A topic as plain values, with the run's numbers."""
    warning = say(
        "This run was made with something altered here (see What if?), so that not every number "
        "follows from the one before it."
    )
    outline, ranges = outline_of(topic), dict(topic.shown)
    placed, warned = topic.is_placed * [chosen.place], [warning] * (not topic.agrees)
    return {
        "says": [*placed, *topic.says, *topic.then, *warned],
        "formula": outline["formula"],
        "code": outline["code"],
        "tensors": [
            {"part": tensor["part"], "name": tensor["name"]}
            | _tensor(tensor["axes"], topic.numbers[tensor["part"]], ranges, chosen)
            for tensor in outline["tensors"]
        ],
    }


def _tensor(
    axes: str, numbers: Any, ranges: Mapping[str, Sequence[int]], chosen: HeadAtQuery
) -> dict[str, Any]:
    """A tensor's shape and some of its numbers."""
    if isinstance(numbers, torch.Tensor):
        numbers = numbers.detach().float().cpu()
    row = numbers if isinstance(numbers, dict) else dict(enumerate(np.ravel(numbers).tolist()))
    (stack, _, kind), run = chosen.site, chosen.run
    keys, n_queries, letters = run.keys(stack, kind), len(run.queries(stack)), axes.split(" × ")
    size_of = {"B": 1, "1": 1, "H": run.config.n_heads, "T": n_queries, "Tq": n_queries}
    size_of |= {"Tk": len(keys), "V": run.config.output_vocab_size}
    sizes = [size_of.get(letter, len(row)) for letter in letters]
    labels: dict[str, Any] = {"Tk": keys, "V": run.candidate_labels, "B": run.candidate_labels}
    tokens = labels.get(letters[-1])
    cells: list[dict[str, Any]] = []
    for index in ranges.get(letters[-1], list(row)[:N_NUMBERS]):
        number = row[index]  # JSON has no infinity
        value = str(number) if isinstance(number, int) else number if np.isfinite(number) else "−∞"
        cells.append({"label": str(index) if axes else "", "value": value})
        if tokens is not None:
            cells[-1]["token"] = tokens[index]
    shape = f"{axes} = {' × '.join(map(str, sizes))}" if axes else ""
    return {"shape": shape, "cells": cells, "more": sizes[-1] - len(cells)}


def quoted(label: str) -> str:
    """A token's label within a sentence, whatever direction its letters have."""
    return f"\u2068{label}\u2069"
