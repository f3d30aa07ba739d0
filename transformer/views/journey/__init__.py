"""The journey of one token through the network, to the word that follows: numbers of
`analysis.journey`, and what they say in words."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from transformer.analysis.journey import (
    Journey,
    journey,
    reading_weights,
    row_weights,
    without_head,
)
from transformer.analysis.logit_contribution import LogitContribution
from transformer.analysis.model_queries import ModelQueries
from transformer.messages import mark, numeral, say
from transformer.model.sites import Site
from transformer.runs.head_data import array, switched_off
from transformer.runs.run import Run
from transformer.tokenizer import Tokenizer
from transformer.views.declaration import Answer, Picture, View
from transformer.views.parameters import KIND, OF_STACK, SITE, Int
from transformer.views.whatif.contribution import feed_forward_name, head_name

N_LIKELIEST, N_WITHOUT, N_RANKED = 10, 5, 10
N_VECTOR = 24  # features of the first vector that are shown
SURE, LIKELY = 0.5, 0.2  # probabilities
A_LITTLE = 1 / 3  # of all that heads and feed-forwards add: where the largest three add less
WORTH_A_LOOK = 0.08  # of the same: where no head adds so much, the lens is named too
CLEARLY_READ = 0.2  # a weight


def answer_journey(
    models: ModelQueries, item: Run, *, position: int | None = None, target: int | None = None
) -> Answer:
    """The prediction after the last token read, each part's contribution, and a finding."""
    found = models.ask(journey, item, position=position, target=target)
    tokens = models.model(item.model).tokenizer
    stack = "encoder" if item.config.family == "encoder" else "decoder"
    parts, added = found.parts, dict.fromkeys(("heads", "feed_forward", "biases", "embedding"))
    if (
        parts is not None
    ):  # each part's number, heads layer by layer; null where a logit is no such sum
        added = {
            "heads": {kind: array(one.flatten()) for kind, one in parts.heads.items()},
            "feed_forward": array(parts.feed_forward),
            "biases": array(parts.biases),
            "embedding": dict(parts.others),
        }
    lens = zip(found.lens_ids.tolist(), found.lens_probabilities.tolist(), strict=True)
    return {
        "position": found.position,
        "target": found.target,
        "target_label": tokens.label(found.target),
        "stack": stack,
        "logits": array(found.logits),
        "likeliest": _likeliest(tokens, found.logits, N_LIKELIEST),
        "next": _next(tokens, item, found),
        "lens": [{"label": tokens.label(one), "probability": p} for one, p in lens],
        "norms": array(found.stream.norm(dim=-1)),
        "vector": array(_sample(found.stream[0])),
        **added,
        "encoder": _encoder(item),
        "finding": finding(item, found, tokens),
        "named": named_head(item, found),
    }


def answer_without_head(
    models: ModelQueries, item: Run, *, position: int | None = None, site: str, head: int
) -> Answer:
    """The logits of what would follow, and the likeliest of it."""
    logits = models.ask(without_head, item, position=position, site=site, head=head)
    tokens = models.model(item.model).tokenizer
    return {"logits": array(logits), "likeliest": _likeliest(tokens, logits, N_WITHOUT)}


def answer_readers(item: Run, *, stack: str, query: int, kind: str, key: int) -> Answer:
    """Each head's weight from one token to another, layer by layer, and those that read most."""
    weights = reading_weights(item, stack, kind, query, key)
    best = weights.flatten().topk(min(N_RANKED, weights.numel()))
    ranked = [
        (at, w) for at, w in zip(best.indices.tolist(), best.values.tolist(), strict=True) if w
    ]
    n_heads = weights.shape[1]
    return {
        "heads": {kind: array(weights.flatten())},
        "ranked": [
            {
                "stack": stack,
                "kind": kind,
                "layer": at // n_heads,
                "head": at % n_heads,
                "weight": w,
            }
            for at, w in ranked
        ],
    }


def _likeliest(tokens: Tokenizer, logits: Tensor, count: int) -> list[dict[str, Any]]:
    best = logits.softmax(dim=-1).topk(min(count, len(logits)))
    return [
        {"id": index, "label": tokens.label(index), "probability": probability}
        for index, probability in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def _next(tokens: Tokenizer, item: Run, found: Journey) -> dict[str, Any] | None:
    """The next token of the text; of an encoder, the unmasked token at that position."""
    at = found.position + (item.config.family != "encoder")
    if at >= len(item.ids) or item.ids[at] == tokens.mask_id:
        return None
    index = item.ids[at]
    return {"id": index, "label": item.labels[at], "probability": float(found.probabilities[index])}


def _encoder(item: Run) -> Answer | None:
    """What is shown of the encoder before a decoder: its stream, the mean over the source."""
    if item.config.family != "encoder-decoder" or "encoder" not in item.trace.residuals:
        return None
    stream = torch.cat(item.trace.residuals["encoder"])  # (L + 1, Ts, C)
    vector = _sample(stream[0].mean(dim=0))
    return {"norms": array(stream.norm(dim=-1).mean(dim=1)), "vector": array(vector), "lens": []}


def _sample(vector: Tensor) -> Tensor:
    return vector[:: max(1, len(vector) // N_VECTOR)][:N_VECTOR]


# ---- in words ----


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


_POSITION = Int(
    name="position",
    title="Last token read",
    help="Its place in the text; without one, the last.",
    use="selection",
    optional=True,
)
VIEW = View(
    name="journey",
    tab=mark("Journey"),
    order=0,
    title="What comes next, and why",
    help=("One token's way through the network, and what each part adds to the next token."),
    pictures=(
        Picture(
            name="journey",
            title="What comes next, and why",
            help=(
                "The next token's logits, what each head and feed-forward adds to one of "
                "them, and what each layer would have predicted."
            ),
            answer=answer_journey,
            network=True,
            parameters=(
                _POSITION,
                Int(
                    name="target",
                    title="Token",
                    help="The id of the token that parts add to; without one, the likeliest.",
                    use="request",
                    optional=True,
                ),
            ),
        ),
        Picture(
            name="without_head",
            title="Without one head",
            help="The next token's logits with one head switched off (ablated).",
            answer=answer_without_head,
            network=True,
            parameters=(
                _POSITION,
                SITE,
                Int(name="head", title=mark("Head"), use="selection", default=0),
            ),
        ),
        Picture(
            name="readers",
            title="Who reads what?",
            help="How much every head reads one token at another.",
            answer=answer_readers,
            parameters=(
                OF_STACK,
                Int(name="query", title="Reading token", use="selection", default=0),
                KIND,
                Int(name="key", title="Token that is read", use="selection", default=0),
            ),
        ),
    ),
)
