"""The topics of one head's row: attention, the mask of its keys, and the softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from transformer.analysis.row_arithmetic import RowArithmetic
from transformer.messages import numeral, say
from transformer.model.attention import MultiHeadAttention
from transformer.model.functional import attention_scores, masked_softmax
from transformer.model.masks import causal_mask, combine, padding_mask
from transformer.runs.compact_trace import part_at
from transformer.views.model.source import excerpt
from transformer.views.model.topic import FIRST, Topic, most_read, quoted

_QUERIES, _KEYS, _SCORES = "B × H × Tq × D", "B × H × Tk × D", "B × H × Tq × Tk"

# --- attention ------------------------------------------------------------------------------------


def attention(topic: Topic) -> None:
    """Scores, weights and output of one query."""
    found, config = topic.row, topic.config
    by_model = config.score_divisor == "d_model"
    divisor = "√C" if by_model else "√D"
    topic.says = [
        say(
            "The chosen token asks with its query; each key answers with a score. The scores "
            "become weights, and the weights mix the values."
        )
    ]
    if config.heads_per_key > 1:
        share = numeral(config.heads_per_key)
        topic.says.append(
            say("{n} heads of this model share one head of keys and values.", n=share)
        )
    if by_model:
        topic.says.append(say("This historical network divides by the root of d_model."))
    topic.say_if_altered(found.agrees)
    topic.formula = [
        f"s:scores = {{q:q K^T:k}} / {divisor}:root",
        "w:weights = softmax(s:scores)",
        "o:output = w:weights V:v",
    ]
    topic.code = [
        excerpt(attention_scores, scores="return", q="return:q", k="return:k", root="return:sqrt"),
        excerpt(
            MultiHeadAttention, scores="scores", weights="pattern z:pattern", output="z", v="z:v"
        ),
    ]
    _add_numbers(topic, found, divisor)


def _add_numbers(topic: Topic, found: RowArithmetic, divisor: str) -> None:
    best, size = int(found.weights.argmax()), found.score_size
    near = quoted(found.key_labels[best])
    # the keys that are read most; none that the mask hides, where it leaves any
    keys = [at for at in most_read(found.weights) if found.allowed[at]] or most_read(found.weights)
    dot, score = numeral(found.dots[best], ".3f"), numeral(found.scores[best], ".3f")
    note = say(
        "With {token}: q·k = {dot}, and {dot} ÷ √{size} = {score}.",
        token=near, size=size, dot=dot, score=score,
    )  # fmt: skip
    reads = say("the key of the token that it reads most, {token}", token=near)
    topic.features("q", "q", say("the query of the chosen token"), _QUERIES, found.q)
    topic.features("k", "K", reads, _KEYS, found.keys[best])
    name = say("what scores are divided by")
    topic.number("root", divisor, name, math.sqrt(size), label=f"√{size}")
    name = say("scores with the keys that it reads most")
    topic.keys("scores", "s", name, _SCORES, found.traced_scores, keys, note=note)
    name = say("weights of the same keys")
    topic.keys("weights", "w", name, _SCORES, found.traced_weights, keys, adds_up=True)
    name = say("the value of the token that it reads most, {token}", token=near)
    topic.features("v", "V", name, _KEYS, found.values[best])
    name = say("what the head reads: the values, each by its weight")
    topic.features("output", "o", name, _QUERIES, found.output)


# --- masks ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Condition:
    """One mask of this attention. allowed: for each key, whether the chosen query may read it."""

    part: str
    symbol: str
    name: str
    axes: str
    code: dict[str, Any]
    allowed: list[bool]


def mask(topic: Topic) -> None:
    """The causal and the padding mask of one query, as far as the attention has them."""
    found = topic.row
    conditions = [one for one in (_causal(topic), _padding(topic)) if one is not None]
    if not conditions and found.allowed.all():
        topic.says = [
            say(
                "There is no mask here: in this attention every token may read every other, and "
                "nothing is padding."
            )
        ]
        return
    _say_of_masks(topic, found, conditions)
    all_of = " ∧ ".join(f"{{{one.symbol}}}:{one.part}" for one in conditions) or '"always"'
    topic.formula = [
        's′_j:filled = cases{s_j:scores & "if" m_j:mask; {−∞}:fill & "otherwise";}',
        f"m_j:mask = {all_of}",
    ]
    joined = [excerpt(combine, mask="result/result")]
    topic.code = [
        *(one.code for one in conditions),
        *(joined if len(conditions) > 1 else []),
        excerpt(
            masked_softmax,
            filled="scores",
            scores="scores:scores",
            mask="scores:mask",
            fill="lowest",
        ),
    ]
    # some keys on both sides of the query, where a causal mask begins to hide
    count = len(found.key_labels)
    start = max(0, min(topic.position - FIRST // 2 + 1, count - FIRST))
    keys = range(start, min(count, start + FIRST))
    for one in conditions:
        topic.keys(one.part, one.symbol, one.name, one.axes, one.allowed, keys)
    name = say("whether the key may be read, by all masks")
    topic.keys("mask", "m_j", name, "B × 1 × Tq × Tk", found.allowed, keys)
    name = say("scores before the mask")
    topic.keys("scores", "s_j", name, _SCORES, found.traced_scores, keys)
    name = say("what hidden scores become: the lowest number of their type, as good as −∞")
    topic.number("fill", "−∞", name, torch.finfo(torch.float32).min)
    topic.keys("filled", "s′_j", say("scores after the mask"), _SCORES, _filled(found), keys)


def _filled(found: RowArithmetic) -> list[float]:
    """The scores after the mask."""
    pairs = zip(found.traced_scores, found.allowed, strict=True)
    return [float(score) if may else -math.inf for score, may in pairs]


def _say_of_masks(topic: Topic, found: RowArithmetic, conditions: Sequence[_Condition]) -> None:
    n, total = int(found.allowed.sum()), len(found.allowed)
    topic.says = [say("The chosen token may read {n} of {total} keys here.", n=n, total=total)]
    parts = {condition.part for condition in conditions}
    if "causal" not in parts:
        topic.says.append(
            say("No causal mask: the source is there before the first token is written.")
            if topic.site.kind == "cross"
            else say("No causal mask: an encoder reads the text in both directions.")
        )
    if "padding" not in parts:
        topic.says.append(
            say("No padding mask: only a batch of texts of several lengths is padded.")
        )
    expected = [all(each.allowed[at] for each in conditions) for at in range(total)]
    topic.say_if_altered(expected == found.allowed.tolist())


def _causal(topic: Topic) -> _Condition | None:
    site, window, query = topic.site, topic.config.window, topic.position
    if site.stack != "decoder" or site.kind != "self":
        return None
    count = len(topic.run.queries("decoder"))
    symbol = "j ≤ i"
    name = say("causal: whether the key stands at or before the query, token {i}", i=query)
    if window is not None:
        symbol = f"i − {window} < j ≤ i"
        name = say(
            "causal: whether the key is one of the {window} up to the query, token {i}",
            window=window,
            i=query,
        )
    code = excerpt(causal_mask, causal="allowed/tril return")
    allowed = causal_mask(count, count, window=window)[query].tolist()
    return _Condition("causal", symbol, name, "Tq × Tk", code, allowed)


def _padding(topic: Topic) -> _Condition | None:
    read = part_at(topic.run.trace, topic.site).allowed[0].any(dim=0)
    if topic.run.request.interventions or bool(read.all()):
        return None
    name = say("padding: whether the key is text and no filler")
    code = excerpt(padding_mask, padding="return")
    axes = "B × 1 × 1 × Tk"
    return _Condition("padding", 'x_j ≠ "padding"', name, axes, code, read.tolist())


# --- softmax --------------------------------------------------------------------------------------


def softmax(topic: Topic) -> None:
    """From one row of scores to weights that sum to 1: each one's power of e, and its share."""
    found = topic.row
    topic.says = [
        say(
            "Each score becomes e to its power, and each of these is divided by their sum. The "
            "largest score is taken away first, which changes no weight and lets no number "
            "overflow; PyTorch does so within its softmax."
        )
    ]
    topic.say_if_altered(found.agrees)
    topic.formula = [
        "w_j:weights = e^{s_j:scores − m:largest}:exponentials"
        " / {∑_n e^{s_n:scores − m:largest}:exponentials}:sum",
        "m:largest = max(s:scores)",
    ]
    topic.code = [
        excerpt(
            masked_softmax,
            weights="return",
            scores="return:scores",
            exponentials="return:softmax",
            largest="return:softmax",
            sum="return:dim",
        ),
        excerpt(MultiHeadAttention, weights="pattern"),
    ]
    none = not found.allowed.any()  # such a row is uniform, as in the network
    scores = [0.0] * len(found.allowed) if none else _filled(found)
    powers = [math.exp(score - max(scores)) for score in scores]
    keys = most_read(found.weights)
    name = say("scores with the keys that it reads most, masked")
    topic.keys("scores", "s", name, _SCORES, scores, keys)
    topic.number("largest", "m", say("the largest score of the row"), max(scores))
    name = say("e to the power of each, less the largest")
    topic.keys("exponentials", "e^{s − m}", name, _SCORES, powers, keys, adds_up=True)
    topic.number("sum", "∑", say("their sum over all keys"), sum(powers))
    name = say("weights: each one's share of the sum")
    topic.keys("weights", "w", name, _SCORES, found.traced_weights, keys, adds_up=True)
