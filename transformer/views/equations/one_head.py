"""The topics of one head's row: attention, and its softmax."""

from __future__ import annotations

import math
from typing import Any

from transformer.analysis.row_arithmetic import RowArithmetic, row_arithmetic
from transformer.messages import numeral, say
from transformer.views.equations.mathml import Node, equal, frac, mi, mo, of, root, row, sub, sup
from transformer.views.equations.mathml import total as sum_over
from transformer.views.equations.shown import (
    RenderContext,
    Topic,
    altered,
    keys_of,
    most_read,
    one,
    row_of,
    tensor,
    token,
)
from transformer.views.equations.source import Code

Axes = list[tuple[str, int]]
_STEPS = "model.attention.MultiHeadAttention.explicit"


def worked_out(look: RenderContext) -> RowArithmetic:
    """The chosen row of the chosen head, see `row_arithmetic`."""
    return row_arithmetic(look.run, look.site, look.head, look.place)


def axes_of(look: RenderContext, found: RowArithmetic) -> dict[str, Axes]:
    """Letters and sizes of queries, of keys and values, and of scores and weights."""
    outer = [("B", 1), ("H", look.config.n_heads)]
    n_queries, n_keys = len(look.run.queries(look.site.stack)), len(found.key_labels)
    size = ("D", len(found.q))
    return {
        "q": [*outer, ("Tq", n_queries), size],
        "k": [*outer, ("Tk", n_keys), size],
        "scores": [*outer, ("Tq", n_queries), ("Tk", n_keys)],
    }


def changed(found: RowArithmetic) -> list[str]:
    """A sentence where the network's own numbers are others."""
    return [] if found.agrees else [altered()]


# --- attention ------------------------------------------------------------------------------------


def attention(look: RenderContext) -> Topic:
    """Scores, weights and output of one query."""
    found = worked_out(look)
    score = frac(row(mi("q", "q"), sup(mi("K"), mi("T"), "k")), _root(look, "root"))
    return Topic(
        says=_says(look, found),
        formula=[
            equal(mi("s", "scores"), score),
            equal(mi("w", "weights"), of(mi("softmax"), mi("s", "scores"))),
            equal(mi("o", "output"), mi("w", "weights"), mi("V", "v")),
        ],
        code=_CODE,
        tensors=[*_meeting(look, found), *_mixing(look, found)],
    )


_CODE = [
    Code(
        "model.functional.attention_scores",
        ("q", "return «q» @"),
        ("k", "«k.transpose(-2, -1)»"),
        ("root", "«math.sqrt(size or q.shape[-1])»"),
        ("scores", "«q @ k.transpose(-2, -1) / math.sqrt(size or q.shape[-1])»"),
    ),
    Code(
        _STEPS,
        ("scores", "«attention_scores(q, k, self.config.score_size)»"),
        ("weights", "«masked_softmax(scores, mask)»"),
        ("output", "«F.dropout(pattern, self.dropout, self.training) @ v»"),
        ("weights", "F.dropout(«pattern»"),
        ("v", "@ «v»"),
    ),
]


def _meeting(look: RenderContext, found: RowArithmetic) -> list[dict[str, Any]]:
    """The query, a key, and the scores."""
    axes, labels, best = axes_of(look, found), found.key_labels, int(found.weights.argmax())
    near, size = token(labels[best]), found.score_size
    note = say(
        "With {token}: q·k = {dot}, and {dot} ÷ √{size} = {score}.",
        token=near, size=size, dot=numeral(found.dots[best], ".3f"),
        score=numeral(found.scores[best], ".3f"),
    )  # fmt: skip
    return [
        tensor("q", mi("q"), say("the query of the chosen token"), axes["q"], **row_of(found.q)),
        tensor(
            "k", mi("K"), say("the key of the token that it reads most, {token}", token=near),
            axes["k"], **row_of(found.keys[best]),
        ),
        tensor(
            "root", _root(look), say("what scores are divided by"), [],
            **one(math.sqrt(size), f"√{size}"),
        ),
        tensor(
            "scores", mi("s"), say("scores with the keys that it reads most"), axes["scores"],
            **keys_of(found.traced_scores, labels, _keys(found)), note=note,
        ),
    ]  # fmt: skip


def _mixing(look: RenderContext, found: RowArithmetic) -> list[dict[str, Any]]:
    """The weights, a value, and the output."""
    axes, labels, best = axes_of(look, found), found.key_labels, int(found.weights.argmax())
    return [
        tensor(
            "weights", mi("w"), say("weights of the same keys"), axes["scores"],
            **keys_of(found.traced_weights, labels, _keys(found), adds_up=True),
        ),
        tensor(
            "v", mi("V"),
            say("the value of the token that it reads most, {token}", token=token(labels[best])),
            axes["k"], **row_of(found.values[best]),
        ),
        tensor(
            "output", mi("o"), say("what the head reads: the values, each by its weight"),
            axes["q"], **row_of(found.output),
        ),
    ]  # fmt: skip


def _keys(found: RowArithmetic) -> list[int]:
    """The keys that are read most; none that the mask hides, where it leaves any."""
    best = most_read(found.weights)
    return [at for at in best if found.allowed[at]] or best


def _root(look: RenderContext, part: str = "") -> Node:
    return root(mi("C" if look.config.score_divisor == "d_model" else "D"), part)


def _says(look: RenderContext, found: RowArithmetic) -> list[str]:
    said = [
        say(
            "The chosen token asks with its query; each key answers with a score. The scores "
            "become weights, and the weights mix the values."
        )
    ]
    if look.config.heads_per_key > 1:
        share = numeral(look.config.heads_per_key)
        said.append(say("{n} heads of this model share one head of keys and values.", n=share))
    if look.config.score_divisor == "d_model":
        said.append(say("This historical network divides by the root of d_model."))
    return [*said, *changed(found)]


# --- softmax --------------------------------------------------------------------------------------


def softmax(look: RenderContext) -> Topic:
    """From one row of scores to weights that sum to 1."""
    found = worked_out(look)
    says = say(
        "Each score becomes e to its power, and each of these is divided by their sum. The "
        "largest score is taken away first, which changes no weight and lets no number overflow; "
        "PyTorch does so within its softmax."
    )
    return Topic(
        says=[says, *changed(found)],
        formula=[
            equal(
                sub(mi("w"), mi("j"), "weights"),
                frac(_power("j"), row(sum_over(mi("n")), _power("n"), part="sum")),
            ),
            equal(mi("m", "largest"), of(mi("max"), mi("s", "scores"))),
        ],
        code=[
            Code(
                "model.functional.masked_softmax",
                ("scores", "return «scores».softmax"),
                ("exponentials", ".«softmax»(dim"),
                ("largest", ".«softmax»(dim"),
                ("sum", "softmax(«dim=-1»)"),
                ("weights", "return «scores.softmax(dim=-1)»"),
            ),
            Code(_STEPS, ("weights", "«masked_softmax(scores, mask)»")),
        ],
        tensors=_shares(look, found),
    )


def _shares(look: RenderContext, found: RowArithmetic) -> list[dict[str, Any]]:
    """Scores, their powers of e, the sum, and each one's share."""
    keys, labels = most_read(found.weights), found.key_labels
    axes = axes_of(look, found)["scores"]
    none = not found.allowed.any()  # such a row is uniform, as in the network
    scores = [
        0.0 if none else float(score) if may else -math.inf
        for score, may in zip(found.traced_scores, found.allowed, strict=True)
    ]
    largest = max(scores)
    powers = [math.exp(score - largest) for score in scores]
    return [
        tensor(
            "scores", mi("s"), say("scores with the keys that it reads most, masked"), axes,
            **keys_of(scores, labels, keys),
        ),
        tensor("largest", mi("m"), say("the largest score of the row"), [], **one(largest)),
        tensor(
            "exponentials", sup(mi("e"), row(mi("s"), mo("−"), mi("m"))),
            say("e to the power of each, less the largest"), axes,
            **keys_of(powers, labels, keys, adds_up=True),
        ),
        tensor("sum", mo("∑"), say("their sum over all keys"), [], **one(sum(powers))),
        tensor(
            "weights", mi("w"), say("weights: each one's share of the sum"), axes,
            **keys_of(found.traced_weights, labels, keys, adds_up=True),
        ),
    ]  # fmt: skip


def _power(index: str) -> Node:
    less = row(sub(mi("s"), mi(index), "scores"), mo("−"), mi("m", "largest"))
    return sup(mi("e"), less, "exponentials")
