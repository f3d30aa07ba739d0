"""The topics of one head and one query: attention, the mask of its keys, and the softmax."""

from __future__ import annotations

import math

import numpy as np
import torch

from transformer.messages import numeral, say
from transformer.model.attention import MultiHeadAttention
from transformer.model.functional import (
    attention_scores,
    causal_mask,
    combine,
    masked_softmax,
    padding_mask,
)
from transformer.runs.compact_trace import stored_at
from transformer.views.model.source import excerpt
from transformer.views.model.topic import FIRST, Topic, most_read, quoted

QUERIES, KEYS, SCORES = "B × H × Tq × D", "B × H × Tk × D", "B × H × Tq × Tk"


def attention(topic: Topic) -> None:
    """Scores, weights and output of one query."""
    found, config = topic.row, topic.config
    divisor = "√C" if config.score_divisor == "d_model" else "√D"
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
    topic.say_if_altered(found.agrees)
    topic.formula = [
        f"s:scores = {{q:q K^T:k}} / {divisor}:root",
        "w:weights = softmax(s:scores)",
        "o:output = w:weights V:v",
    ]
    topic.code = [
        excerpt(attention_scores, scores="return", q="q", k="k", root="sqrt"),
        excerpt(
            MultiHeadAttention.explicit,
            scores="scores",
            weights="pattern z:pattern",
            output="z",
            v="z:v",
        ),
    ]
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
    topic.add("q", "q", say("the query of the chosen token"), QUERIES, found.q)
    topic.add("k", "K", reads, KEYS, found.keys[best])
    name = say("what scores are divided by")
    topic.add("root", divisor, name, "", {f"√{size}": math.sqrt(size)})
    name = say("scores with the keys that it reads most")
    topic.keys("scores", "s", name, SCORES, found.traced_scores, at=keys, note=note)
    name = say("weights of the same keys")
    weights = found.traced_weights.astype(np.float64)  # an altered row need not sum to 1
    topic.keys("weights", "w", name, SCORES, weights, at=keys, total=float(weights.sum()))
    name = say("the value of the token that it reads most, {token}", token=near)
    topic.add("v", "V", name, KEYS, found.values[best])
    name = say("what the head reads: the values, each by its weight")
    topic.add("output", "o", name, QUERIES, found.output)


def mask(topic: Topic) -> None:
    """The causal and the padding mask of one query, as far as the attention has them."""
    found = topic.row
    n, total = int(found.allowed.sum()), len(found.allowed)
    # some keys on both sides of the query, where a causal mask begins to hide
    start = max(0, min(topic.position - FIRST // 2 + 1, total - FIRST))
    keys = range(start, min(total, start + FIRST))
    conditions = [*_causal(topic, keys), *_padding(topic, keys)]
    if not conditions and n == total:
        topic.says = [
            say(
                "There is no mask here: in this attention every token may read every other, and "
                "nothing is padding."
            )
        ]
        return
    topic.says.insert(
        0, say("The chosen token may read {n} of {total} keys here.", n=n, total=total)
    )
    by_masks = [all(may[key] for _, may in conditions) for key in range(total)]
    topic.say_if_altered(by_masks == found.allowed.tolist())
    all_of = " ∧ ".join(symbol for symbol, _ in conditions) or f'"{say("always")}"'
    yes, no = say("if"), say("otherwise")
    topic.formula = [
        f's′_j:filled = cases{{s_j:scores & "{yes}" m_j:mask; {{−∞}}:fill & "{no}";}}',
        f"m_j:mask = {all_of}",
    ]
    if len(conditions) > 1:
        topic.code.append(excerpt(combine, mask="result/result"))
    topic.code.append(
        excerpt(
            masked_softmax,
            filled="scores",
            scores="scores:scores",
            mask="scores:mask",
            fill="lowest",
        )
    )
    name = say("whether the key may be read, by all masks")
    topic.keys("mask", "m_j", name, "B × 1 × Tq × Tk", found.allowed, at=keys)
    name = say("scores before the mask")
    topic.keys("scores", "s_j", name, SCORES, found.traced_scores, at=keys)
    name = say("what hidden scores become: the lowest number of their type, as good as −∞")
    topic.add("fill", "−∞", name, "", {"": torch.finfo(torch.float32).min})
    filled = np.where(found.allowed, found.traced_scores, -np.inf)
    topic.keys("filled", "s′_j", say("scores after the mask"), SCORES, filled, at=keys)


def _causal(topic: Topic, keys: range) -> list[tuple[str, list[bool]]]:
    """The condition of a causal mask and where it holds, if the attention has one."""
    site, window, query = topic.site, topic.config.window, topic.position
    if (site.stack, site.kind) != ("decoder", "self"):
        topic.says.append(
            say("No causal mask: the source is there before the first token is written.")
            if site.kind == "cross"
            else say("No causal mask: an encoder reads the text in both directions.")
        )
        return []
    count = len(topic.run.queries("decoder"))
    allowed = causal_mask(count, count, window=window)[query].tolist()
    symbol = "j ≤ i" if window is None else f"i − {window} < j ≤ i"
    name = (
        say("causal: whether the key stands at or before the query, token {i}", i=query)
        if window is None
        else say(
            "causal: whether the key is one of the {window} up to the query, token {i}",
            window=window,
            i=query,
        )
    )
    topic.code.append(excerpt(causal_mask, causal="allowed/tril return"))
    topic.keys("causal", symbol, name, "Tq × Tk", allowed, at=keys)
    return [(f"{{{symbol}}}:causal", allowed)]


def _padding(topic: Topic, keys: range) -> list[tuple[str, list[bool]]]:
    """The condition of a padding mask and where it holds, if a text of a batch was padded."""
    is_text = stored_at(topic.run.trace, topic.site).allowed[0].any(dim=0).tolist()
    if topic.run.request.interventions or all(is_text):
        topic.says.append(
            say("No padding mask: only a batch of texts of several lengths is padded.")
        )
        return []
    symbol, name = (
        f'x_j ≠ "{say("padding")}"',
        say("padding: whether the key is text and no filler"),
    )
    topic.code.append(excerpt(padding_mask, padding="return"))
    topic.keys("padding", symbol, name, "B × 1 × 1 × Tk", is_text, at=keys)
    return [(f"{{{symbol}}}:padding", is_text)]


def softmax(topic: Topic) -> None:
    """From one row of scores to weights that sum to 1: powers of e, divided by their sum."""
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
    inside = dict.fromkeys(("exponentials", "largest"), "softmax")
    topic.code = [
        excerpt(
            masked_softmax, weights="return", scores="return:scores", sum="return:dim", **inside
        ),
        excerpt(MultiHeadAttention.explicit, weights="pattern"),
    ]
    scores = np.where(found.allowed, found.traced_scores, -np.inf)
    if not found.allowed.any():  # such a row is uniform, as in the network
        scores = np.zeros_like(scores)
    powers = np.exp(scores.astype(np.float64) - scores.max())
    keys, total = most_read(found.weights), float(powers.sum())
    name = say("scores with the keys that it reads most, masked")
    topic.keys("scores", "s", name, SCORES, scores, at=keys)
    topic.add("largest", "m", say("the largest score of the row"), "", {"": float(scores.max())})
    name = say("e to the power of each, less the largest")
    topic.keys("exponentials", "e^{s − m}", name, SCORES, powers, at=keys, total=total)
    topic.add("sum", "∑", say("their sum over all keys"), "", {"": total})
    name = say("weights: each one's share of the sum")
    weights = found.traced_weights.astype(np.float64)
    topic.keys("weights", "w", name, SCORES, weights, at=keys, total=float(weights.sum()))
