"""The finding of a journey in words: what comes next, and the part that adds most to it."""

from __future__ import annotations

from typing import Any

import torch

from transformer.analysis.journey import (
    Journey,
    row_weights,
)
from transformer.analysis.logit_contribution import LogitContribution
from transformer.messages import mark, numeral, say
from transformer.model.sites import Site
from transformer.runs.head_data import switched_off
from transformer.runs.run import Run
from transformer.tokenizer import Tokenizer
from transformer.views.whatif.contribution import feed_forward_name, head_name

SURE, LIKELY = 0.5, 0.2  # probabilities
A_LITTLE = 1 / 3  # of all that heads and feed-forwards add: where the largest three add less
WORTH_A_LOOK = 0.08  # of the same: where no head adds so much, the lens is named too
CLEARLY_READ = 0.2  # a weight


def finding(item: Run, found: Journey, tokens: Tokenizer) -> str:
    """What comes next and how sure that is; then the part that adds most to it, or, if none is
    clearly the largest, where to look instead."""
    sentences = [_expected(item, found, tokens), *_reason(item, found, tokens)]
    return " ".join(sentences)


def _expected(item: Run, found: Journey, tokens: Tokenizer) -> str:
    chances = found.probabilities
    best = int(chances.argmax())
    chance = float(chances[found.target])
    values = {
        "word": tokens.label(found.target),
        "percent": _percent(chance),
        "read": item.labels[found.position],
    }
    if found.target != best:
        values |= {"best": tokens.label(best), "most": _percent(float(chances[best]))}
        return say("{word} has {percent}; the likeliest is {best} with {most}.", **values)
    if item.config.family == "encoder":
        is_hidden = item.ids[found.position] == tokens.mask_id
        return say(_HIDDEN if is_hidden else _STANDS, **values)
    return say(_SURE if chance >= SURE else _LIKELY if chance >= LIKELY else _OPEN, **values)


def _reason(item: Run, found: Journey, tokens: Tokenizer) -> list[str]:
    parts = found.parts
    if parts is None:
        return [
            say("What each part adds cannot be told apart in this network."),
            *_settled(found, tokens),
        ]
    forward, named = parts.feed_forward, named_head(item, found)
    by_forward = float(forward.max())
    said = []
    if _are_many(parts):
        said = [say(_MANY)]
    elif named is None or by_forward > _value(parts, named):
        at = int(forward.argmax())
        said = [say(_ADDS, part=feed_forward_name(at), value=numeral(by_forward, "+.1f"))]
    if named is None:
        return said + _settled(found, tokens)
    kind, layer, head = named["kind"], named["layer"], named["head"]
    part = head_name(layer, head, kind if len(parts.heads) > 1 else "")
    value = numeral(_value(parts, named), "+.1f")
    said += [
        say(_OF_HEADS if said else _ADDS, part=part, value=value),
        _reads(item, found, kind, layer, head),
    ]
    is_little = _value(parts, named) < WORTH_A_LOOK * sum(_added(parts))
    return said + (_settled(found, tokens) if is_little else [])


def named_head(item: Run, found: Journey) -> dict[str, Any] | None:
    """The head that the finding names: the active head that adds most; None if none adds
    anything."""
    parts = found.parts
    if parts is None:
        return None
    stack = "encoder" if item.config.family == "encoder" else "decoder"
    reading = {kind: heads.clone() for kind, heads in parts.heads.items()}
    for kind, heads in reading.items():
        for layer, row in enumerate(heads):
            row[list(switched_off(item, Site(stack, layer, kind)))] = -torch.inf
    kind, heads = max(reading.items(), key=lambda one: float(one[1].max()))
    if not bool((heads > 0).any()):
        return None
    layer, head = divmod(int(heads.argmax()), heads.shape[1])
    return {"stack": stack, "kind": kind, "layer": layer, "head": head}


def _value(parts: LogitContribution, named: dict[str, Any]) -> float:
    return float(parts.heads[named["kind"]][named["layer"], named["head"]])


def _added(parts: LogitContribution) -> list[float]:
    """The positive contributions of heads and feed-forwards, largest first."""
    every = torch.cat([one.flatten() for one in (*parts.heads.values(), parts.feed_forward)])
    found: list[float] = every.clamp(min=0).sort(descending=True).values.tolist()
    return found


def _are_many(parts: LogitContribution) -> bool:
    """Whether many parts decide: the largest three add a small share."""
    added = _added(parts)
    return sum(added[:3]) <= A_LITTLE * sum(added)


def _reads(item: Run, found: Journey, kind: str, layer: int, head: int) -> str:
    """What the head reads most at the last token read."""
    stack = "encoder" if item.config.family == "encoder" else "decoder"
    weights = row_weights(item, Site(stack, layer, kind), found.position)[head]
    column = int(weights.argmax())
    weight = float(weights[column])
    values = {
        "key": item.keys(stack, kind)[column],
        "weight": numeral(weight, ".2f"),
        "read": item.labels[found.position],
    }
    if weight < CLEARLY_READ:
        return say("It reads many tokens a little, {key} most ({weight}).", **values)
    if kind == "cross":
        return say("It reads {key} in the source ({weight}).", **values)
    position = column + item.trace_start
    return say(_READS[_relation(item, found, position)], **values)


def _relation(item: Run, found: Journey, key: int) -> str:
    """How the token read relates to the token that reads it and to the predicted one."""
    if key == found.position:
        return "itself"
    if key > item.trace_start and item.ids[key - 1] == item.ids[found.position]:
        return "induction"
    if key == found.position - 1:
        return "previous"
    return "earlier" if item.ids[key] == found.target and key < found.position else "other"


def _settled(found: Journey, tokens: Tokenizer) -> list[str]:
    """The layer from which on the lens agrees with the network's prediction."""
    other = (found.lens_ids != found.lens_ids[-1]).nonzero()
    if found.target != int(found.lens_ids[-1]) or not len(other):
        return []
    return [say("Look at the words below the stream: {word} leads from layer {layer} on.",
                word=tokens.label(found.target), layer=int(other[-1]))]  # fmt: skip


def _percent(probability: float) -> str:
    """As `percentText` of messages.js writes it next to the bars."""
    if 0 < probability < 0.001:
        return f"<{numeral(0.1, '.1f')} %"
    return numeral(100 * probability, ".1f" if probability < 0.0995 else ".0f") + " %"


_HIDDEN = mark("At the hidden place the network expects {word} ({percent}).")
_STANDS = mark("Where {read} stands, the network expects {word} ({percent}).")
_SURE = mark("After {read} the network expects {word} ({percent}).")
_LIKELY = mark("After {read} the likeliest is {word} ({percent}), but others are possible.")
_OPEN = mark("After {read} much is possible: even the likeliest, {word}, has only {percent}.")
_ADDS = mark("Most is added by {part} ({value}).")
_OF_HEADS = mark("Of the heads, {part} adds most ({value}).")
_MANY = mark("No part decides it alone; many add a little.")
_READS = {
    "itself": mark("It reads {read} itself ({weight})."),
    "induction": mark("It reads {key} ({weight}), which followed an earlier {read}."),
    "previous": mark("It reads the token before, {key} ({weight})."),
    "earlier": mark("It reads an earlier {key} ({weight})."),
    "other": mark("It reads {key} most ({weight})."),
}
