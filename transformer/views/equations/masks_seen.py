"""The topic of masks: which keys a token may read, and what becomes of the other scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from transformer.analysis.row_arithmetic import RowArithmetic
from transformer.messages import say
from transformer.model.masks import causal_mask, padding_mask
from transformer.views.equations.mathml import Node, cases, equal, mi, mn, mo, row, sub, words
from transformer.views.equations.one_head import Axes, axes_of, worked_out
from transformer.views.equations.shown import (
    FIRST,
    RenderContext,
    Topic,
    altered,
    keys_of,
    no_such,
    one,
    tensor,
)
from transformer.views.equations.source import Code


@dataclass(frozen=True, slots=True)
class _Condition:
    """One mask of this attention. allowed: for each key, whether the chosen query may read it."""

    part: str
    symbol: Node
    says: str
    axes: Axes
    code: Code
    allowed: list[bool]


def mask(look: RenderContext) -> Topic:
    """The causal and the padding mask of one query, as far as the attention has them."""
    found = worked_out(look)
    conditions = [one for one in (_causal(look), _padding(look)) if one is not None]
    if not conditions and found.allowed.all():
        return no_such(
            say(
                "There is no mask here: in this attention every token may read every other, and "
                "the model knows no padding."
            )
        )
    score = sub(mi("s"), mi("j"), "scores")
    hidden = row(mo("−"), mi("∞"), part="fill")
    joined = [_JOINED] if len(conditions) > 1 else []
    return Topic(
        says=_says(look, found, conditions),
        formula=[
            equal(
                sub(mi("s′"), mi("j"), "filled"),
                cases((score, row(words(say("if")), _may())), (hidden, words(say("otherwise")))),
            ),
            equal(_may(), *_and([condition.symbol for condition in conditions])),
        ],
        code=[*(condition.code for condition in conditions), *joined, _FILL],
        tensors=_tensors(look, found, conditions),
    )


def _tensors(
    look: RenderContext, found: RowArithmetic, conditions: Sequence[_Condition]
) -> list[dict[str, Any]]:
    labels, axes = found.key_labels, axes_of(look, found)["scores"]
    keys = _around(look.place, len(labels))
    filled = [
        float(score) if may else -math.inf
        for score, may in zip(found.traced_scores, found.allowed, strict=True)
    ]
    lowest = say("what hidden scores become: the lowest number of their type, as good as −∞")
    return [
        *(
            tensor(each.part, each.symbol, each.says, each.axes,
                   **_truths(each.allowed, labels, keys))
            for each in conditions
        ),
        tensor(
            "mask", _may(), say("whether the key may be read, by all masks"),
            [("B", 1), ("1", 1), *axes[2:]], **_truths(found.allowed, labels, keys),
        ),
        tensor(
            "scores", sub(mi("s"), mi("j")), say("scores before the mask"), axes,
            **keys_of(found.traced_scores, labels, keys),
        ),
        tensor(
            "fill", row(mo("−"), mi("∞")), lowest, [], **one(torch.finfo(torch.float32).min)
        ),
        tensor(
            "filled", sub(mi("s′"), mi("j")), say("scores after the mask"), axes,
            **keys_of(filled, labels, keys),
        ),
    ]  # fmt: skip


def _causal(look: RenderContext) -> _Condition | None:
    site, window = look.site, look.config.window
    if site.stack != "decoder" or site.kind != "self":
        return None
    count = len(look.run.queries("decoder"))
    at_most = row(mi("j"), mo("≤"), mi("i"))
    says = say("causal: whether the key stands at or before the query, token {i}", i=look.place)
    if window is not None:
        at_most = row(mi("i"), mo("−"), mn(window), mo("<"), mi("j"), mo("≤"), mi("i"))
        says = say(
            "causal: whether the key is one of the {window} up to the query, token {i}",
            window=window,
            i=look.place,
        )
    slides = "«allowed if window is None else allowed.triu(diagonal=past - window + 1)»"
    return _Condition(
        part="causal",
        symbol=[at_most[0], "causal", *at_most[2:]],
        says=says,
        axes=[("Tq", count), ("Tk", count)],
        code=Code(
            "model.masks.causal_mask",
            ("causal", "«allowed.tril(diagonal=past)»"),
            ("causal", slides),
        ),
        allowed=causal_mask(count, count, window=window)[look.place].tolist(),
    )


def _padding(look: RenderContext) -> _Condition | None:
    config, run, site = look.config, look.run, look.site
    writes = site.stack == "decoder" and site.kind == "self"
    reads_source = bool(run.source_ids) and not writes
    window = run.ids[run.trace_start :][: len(run.queries(site.stack))]
    ids = torch.tensor([run.source_ids if reads_source else window])
    padding_id = config.output_padding_id if writes else config.padding_id
    found = padding_mask(ids, padding_id, reads_first=config.padded_start and writes)
    if found is None:
        return None
    return _Condition(
        part="padding",
        symbol=row(sub(mi("x"), mi("j")), mo("≠"), words(say("padding")), part="padding"),
        says=say("padding: whether the key is text and no filler"),
        axes=[("B", 1), ("1", 1), ("1", 1), ("Tk", ids.shape[1])],
        code=Code("model.masks.padding_mask", ("padding", "«ids != padding_id»")),
        allowed=found[0, 0, 0].tolist(),
    )


_JOINED = Code("model.masks.combine", ("mask", "result = «result & mask»"))
_FILL = Code(
    "model.functional.masked_softmax",
    ("filled", "= «scores.masked_fill(~mask, torch.finfo(scores.dtype).min)»"),
    ("scores", "= «scores».masked_fill"),
    ("mask", "masked_fill(~«mask»"),
    ("fill", "«torch.finfo(scores.dtype).min»"),
)


def _says(look: RenderContext, found: RowArithmetic, conditions: Sequence[_Condition]) -> list[str]:
    said = [
        say(
            "The chosen token may read {n} of {total} keys here.",
            n=int(found.allowed.sum()),
            total=len(found.allowed),
        )
    ]
    parts = {condition.part for condition in conditions}
    if "causal" not in parts and look.site.kind == "cross":
        said.append(say("No causal mask: the source is there before the first token is written."))
    elif "causal" not in parts:
        said.append(say("No causal mask: an encoder reads the text in both directions."))
    if "padding" not in parts:
        said.append(say("No padding mask: this model knows no padding."))
    expected = [all(each.allowed[at] for each in conditions) for at in range(len(found.allowed))]
    return [*said, *([] if expected == found.allowed.tolist() else [altered()])]


def _may() -> Node:
    return sub(mi("m"), mi("j"), "mask")


def _and(conditions: Sequence[Node]) -> list[Node]:
    found: list[Node] = []
    for condition in conditions:
        found += [mo("∧"), condition] if found else [condition]
    return found or [words(say("always"))]


def _around(place: int, count: int) -> list[int]:
    """Some keys on both sides of the query's own place, where a causal mask begins to hide."""
    start = max(0, min(place - FIRST // 2 + 1, count - FIRST))
    return list(range(start, min(count, start + FIRST)))


def _truths(values: Any, labels: Sequence[str], keys: Sequence[int]) -> dict[str, Any]:
    """Which of some keys may be read, as keywords of `tensor`."""
    cells = [{"label": str(at), "token": labels[at], "value": str(bool(values[at]))} for at in keys]
    return {"cells": cells, "more": len(labels) - len(keys)}
