"""A step that was sampled: temperature, the filters, and what the token was drawn from."""

from __future__ import annotations

from typing import Any

import numpy as np

from transformer.analysis.step_filters import StepFilters
from transformer.messages import numeral, say
from transformer.runs.steps import GenerationStep
from transformer.views.equations.mathml import (
    Node,
    cases,
    equal,
    frac,
    mi,
    mn,
    mo,
    of,
    row,
    sub,
    sup,
    total,
    words,
)
from transformer.views.equations.shown import (
    FIRST,
    RenderContext,
    Topic,
    cells_of,
    chance,
    logit,
    of_vocabulary,
    taken_of,
    tensor,
)
from transformer.views.equations.source import Code

_FILE = "inference.sampling"
_KEEPS = {"top_k": "keep_top_k", "top_p": "keep_top_p", "min_p": "keep_min_p"}


def sampled(
    look: RenderContext, step: GenerationStep, filters: StepFilters | None, says: list[str]
) -> Topic:
    asked = look.run.request.sampling
    assert asked is not None
    active = _active(look)
    ids = [one.id for one in step.candidates[:FIRST]]
    size = ("V", look.config.output_vocab_size)
    z = [one.logit for one in step.candidates[:FIRST]]
    scaled = [value / asked.temperature for value in z]
    taken = [one.sampling_probability for one in step.candidates[:FIRST]]
    tensors = [
        of_vocabulary(look, "logits", logit(), say("logits of the likeliest tokens"), ids, z, size),
        tensor("temperature", mi("T"), say("the temperature of this run"), [],
               cells=[{"label": "", "value": asked.temperature}]),
        of_vocabulary(
            look, "scaled", frac(logit(), mi("T")), say("divided by the temperature"), ids,
            scaled, size,
        ),
    ]  # fmt: skip
    for name, value in active.items():
        tensors.append(_kept(look, name, value, step, filters, ids))
    whole = (
        {}
        if filters is None
        else {
            "rest": float(filters.probabilities.double().sum()) - sum(taken),
            "adds_up": float(filters.probabilities.double().sum()),
        }
    )
    tensors.append(
        tensor(
            "probabilities", chance(), say("what the token was drawn from"), [("B", 1), size],
            cells=cells_of(look, ids, taken), more=size[1] - len(ids), **whole,
            note=say("{n} of {total} tokens could be drawn.", n=numeral(step.n_kept),
                     total=numeral(size[1])),
        )
    )  # fmt: skip
    tensors.append(taken_of(look, step))
    if filters is None and active:
        says = [
            *says,
            say("What each filter left alone is no longer known of this step: its window slid on."),
        ]
    return Topic(says=says, formula=_formula(active), code=_code(active), tensors=tensors)


def _active(look: RenderContext) -> dict[str, float]:
    """The filters of this run, in the order in which they act."""
    asked = look.run.request.sampling
    found = {name: getattr(asked, name) for name in _KEEPS}
    return {name: value for name, value in found.items() if value is not None}


def _kept(
    look: RenderContext,
    name: str,
    value: float,
    step: GenerationStep,
    filters: StepFilters | None,
    ids: list[int],
) -> dict[str, Any]:
    """What one filter does to the likeliest tokens."""
    says = {
        "top_k": lambda: say("top-k: whether it is among the {k} likeliest", k=numeral(value)),
        "top_p": lambda: say(
            "top-p: the share of those likelier than it, which must be below {p}",
            p=numeral(value, "g"),
        ),
        "min_p": lambda: say(
            "min-p: its part of the likeliest one's share, at least {p}", p=numeral(value, "g")
        ),
    }[name]()
    size = look.config.output_vocab_size
    symbol = {"top_k": mi("k"), "top_p": mi("c"), "min_p": mi("r")}[name]
    cells = [] if filters is None else cells_of(look, ids, _measured(name, filters, ids))
    note = ""
    if filters is not None:
        left = int(np.isfinite(filters.kept[name].numpy()).sum())
        note = say("{n} of {total} tokens are left.", n=numeral(left), total=numeral(size))
    return tensor(name, symbol, says, [("V", size)], cells, more=size - len(cells), note=note)


def _measured(name: str, filters: StepFilters, ids: list[int]) -> list[Any]:
    """What a filter looks at, of these tokens."""
    order = list(filters.kept)
    before = filters.kept[order[order.index(name) - 1]] if order.index(name) else filters.scaled
    if name == "top_k":
        kept = filters.kept[name]
        return [str(bool(np.isfinite(float(kept[at])))) for at in ids]
    shares = before.double().softmax(dim=-1)
    if name == "min_p":
        return [float(shares[at] / shares.max()) for at in ids]
    return [float(shares[shares > shares[at]].sum()) for at in ids]


def _formula(active: dict[str, float]) -> list[Node]:
    def power(index: str) -> Node:
        return sup(mi("e"), row(sub(mi("z"), mi(index), "logits"), mo("/"), mi("T", "temperature")))

    allowed: list[Node] = []
    for name, value in active.items():
        allowed += [mo("∧")] * bool(allowed) + [_condition(name, value)]
    keeps = [mo("∈"), mi("A")] if allowed else []
    of_kept = total(row(mi("j"), *keeps)) if keeps else total(mi("j"))
    share = frac(row(power("i"), part="scaled"), row(of_kept, power("j")))
    if not allowed:
        return [equal(chance(), share)]
    inside = row(words(say("if")), mi("i"), mo("∈"), mi("A"))
    return [
        equal(chance(), cases((share, inside), (mn(0), words(say("otherwise"))))),
        row(mi("i"), mo("∈"), mi("A"), mo("⇔"), *allowed),
    ]


def _condition(name: str, value: float) -> Node:
    limit = mn(numeral(value, "g"))
    if name == "top_k":
        rank = of(mi("rank"), sub(mi("z"), mi("i")))
        return row(rank, mo("≤"), limit, part=name)
    if name == "top_p":
        return row(sub(mi("c"), mi("i")), mo("<"), limit, part=name)
    return row(sub(mi("r"), mi("i")), mo("≥"), limit, part=name)


def _code(active: dict[str, float]) -> list[Code]:
    found = [
        Code(
            f"{_FILE}.apply_temperature",
            "scaled",
            ("logits", "return «logits» /"),
            ("temperature", "/ «temperature»"),
        )
    ]
    found += [Code(f"{_FILE}.{_KEEPS[name]}", name) for name in active]
    drawn_from = "apply_sampling(_without(logits, padding_id), sampling).softmax(dim=-1)"
    return [
        *found,
        Code("inference.generation._take", ("probabilities", f"filtered = «{drawn_from}»")),
        Code(f"{_FILE}.draw", "drawn"),
    ]
