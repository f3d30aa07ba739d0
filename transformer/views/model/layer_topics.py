"""The topics of a layer: attention and the mask of its keys; norm and residual; feed-forward."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import nn

from transformer.messages import numeral, say
from transformer.model.attention import MultiHeadAttention
from transformer.model.blocks import FeedForward, Layer, Residual
from transformer.model.functional import (
    attention_scores,
    causal_mask,
    masked_softmax,
    position_mask,
    window_mask,
)
from transformer.model.primitives import ACTIVATIONS, PLACEMENTS, RMSNorm, unscaled_rms
from transformer.network_words import attention_name
from transformer.views.model.source import excerpt
from transformer.views.model.topic import FIRST, Topic, most_read, quoted

# What a sub-layer f adds to the stream x, by the place of its norms.
_MADE = {
    "pre": "f(N:normalised(x:x))",
    "pre-but-first": "f(N:normalised(x:x))",
    "post": "f(x:x)",
    "output": "N(y:y)",
    "both": "N′(f(N:normalised(x:x)))",
}
QUERIES, KEYS, SCORES = "B × H × Tq × D", "B × H × Tk × D", "B × H × Tq × Tk"
STREAM, WIDE = "B × T × C", "B × T × d_ff"

# --- one head and one query -----------------------------------------------------------------------


def attention(topic: Topic) -> None:
    """Scores, softmax, weights and output of one query."""
    found, config = topic.row, topic.config
    best, size = int(found.weights.argmax()), found.score_size
    near = quoted(found.key_labels[best])
    topic.says = [
        say(
            "The chosen token asks with its query; each key answers with a score. The scores "
            "become weights, and the weights mix the values."
        ),
        say(
            "With {token}: q·k = {dot}, and {dot} ÷ √{size} = {score}.",
            token=near,
            dot=numeral(found.dots[best], ".3f"),
            size=size,
            score=numeral(found.scores[best], ".3f"),
        ),
    ]
    if config.heads_per_key > 1:
        share = numeral(config.heads_per_key)
        topic.says.append(
            say("{n} heads of this model share one head of keys and values.", n=share)
        )
    topic.say_if_altered(found.agrees)
    divisor = "√C" if config.score_divisor == "d_model" else "√D"
    topic.formula = [
        f"s:scores = {{q:q K^T:k}} / {divisor}:root",
        "w:weights = softmax(s:scores)",
        "{softmax(s)}_j = e^{s_j} / {∑_n e^{s_n}}",
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
        excerpt(masked_softmax, weights="return", scores="return:scores"),
    ]
    # the keys of the largest weights; masked ones only if all of them are
    keys = [at for at in most_read(found.weights) if found.allowed[at]] or most_read(found.weights)
    name = say("the key of the token that it reads most, {token}", token=near)
    topic.add("q", "q", say("the query of the chosen token"), QUERIES, found.q)
    topic.add("k", "K", name, KEYS, found.keys[best])
    name = say("what scores are divided by")
    topic.add("root", divisor, name, "", {f"√{size}": math.sqrt(size)})
    name = say("scores with the keys that it reads most")
    topic.keys("scores", "s", name, SCORES, found.traced_scores, at=keys)
    name = say("weights of the same keys")
    topic.keys("weights", "w", name, SCORES, found.traced_weights, at=keys)
    name = say("the value of the token that it reads most, {token}", token=near)
    topic.add("v", "V", name, KEYS, found.values[best])
    name = say("what the head reads: the values, each by its weight")
    topic.add("output", "o", name, QUERIES, found.output)


def mask(topic: Topic) -> None:
    """The keys that positions hide from one query: the future, or those outside a window."""
    site, found, query = topic.site, topic.row, topic.position
    n, total = int(found.allowed.sum()), len(found.allowed)
    is_self = site.kind == "self"
    window = topic.config.window_of(site.layer) if is_self else None
    is_causal = is_self and site.stack == "decoder"
    hidden = position_mask(total, total, causal=is_causal, window=window)
    if hidden is None:
        topic.says = [
            say("No causal mask: the source is there before the first token is written.")
            if site.kind == "cross"
            else say("No causal mask: an encoder reads the text in both directions.")
        ]
        topic.say_if_altered(n == total)
        return
    allowed = hidden[query].tolist()
    topic.says = [say("The chosen token may read {n} of {total} keys here.", n=n, total=total)]
    topic.say_if_altered(allowed == found.allowed.tolist())
    yes, no = say("if"), say("otherwise")
    reach = ("" if window is None else f"i − {window} < ") + "j"
    reach += " ≤ i" if is_causal else f" < i + {window}"
    topic.formula = [
        f's′_j:filled = cases{{s_j:scores & "{yes}" m_j:mask; {{−∞}}:fill & "{no}";}}',
        f"m_j:mask = {reach}",
    ]
    topic.code = [
        excerpt(causal_mask, mask="allowed/tril return")
        if is_causal
        else excerpt(window_mask, mask="return"),
        excerpt(
            masked_softmax,
            filled="scores",
            scores="scores:scores",
            mask="scores:mask",
            fill="lowest",
        ),
    ]
    # some keys on both sides of the query, where the mask begins to hide
    start = max(0, min(query - FIRST // 2 + 1, total - FIRST))
    keys = range(start, min(total, start + FIRST))
    name = say("whether the key may be read")
    topic.keys("mask", "m_j", name, "B × 1 × Tq × Tk", found.allowed, at=keys)
    name = say("scores before the mask")
    topic.keys("scores", "s_j", name, SCORES, found.traced_scores, at=keys)
    name = say("what hidden scores become: the lowest number of their type, as good as −∞")
    topic.add("fill", "−∞", name, "", {"": torch.finfo(torch.float32).min})
    filled = np.where(found.allowed, found.traced_scores, -np.inf)
    topic.keys("filled", "s′_j", say("scores after the mask"), SCORES, filled, at=keys)


# --- norm and residual stream ---------------------------------------------------------------------


def norm(topic: Topic) -> None:
    """The norm of the chosen attention's sub-layer, and its way back into the stream."""
    layer, placement = topic.layer, PLACEMENTS[topic.config.norm]
    part = layer.part(topic.site.kind)
    is_bare = isinstance(part.norm, nn.Identity)
    first = placement.of_input and not is_bare
    made = f"{{{_MADE['post' if is_bare else topic.config.norm]}}}:added"
    topic.says = _say_of_norm(topic, is_bare)
    topic.say_if_altered(layer.agrees)
    topic.add("x", "x", say("the residual stream that comes in"), STREAM, part.stream)
    added = ("added", made, say("what the sub-layer makes"), STREAM, part.added)
    if is_bare:
        topic.add(*added)
        name = say("the residual stream that goes on")
    elif first:
        _normalise(topic, "x:x", "normalised")
        topic.add("normalised", "N(x:x)", say("normalised"), STREAM, part.normalised)
        topic.add(*added)
        name = say("the residual stream that goes on")
    elif placement.of_output:
        topic.add("y", "y", say("what the sub-layer makes"), STREAM, part.norm_of)
        topic.formula = ["y:y = f(x:x)"]
        _normalise(topic, "y:y", "added")
        topic.add(*added)
        name = say("the residual stream that goes on")
    else:
        topic.add(*added)
        topic.add("y", "y", say("the sum of both, which is normalised"), STREAM, part.norm_of)
        _normalise(topic, "y:y", "out")
        name = say("normalised: the residual stream that goes on")
    topic.add("out", "x′", name, STREAM, part.out)
    if placement.of_sum:
        topic.formula += [f"y:y = x:x + {made}", "x′:out = N:out(y:y)"]
        ways = {"out": "return", "y": "total", "added": "added"}
        topic.code.append(excerpt(Residual.forward, x="x", **ways))
        return
    inside = {"normalised": "read"} if first else {} if is_bare else {"y": "sublayer"}
    topic.code.append(excerpt(Residual.added, added="return", x="x", **inside))
    if topic.config.parallel:
        topic.formula.append(f"x′:out = x:x + {made} + g(N(x:x))")
        topic.code.append(excerpt(Layer._in_parallel, x="x", out="return", added="y/self_residual"))
    else:
        topic.formula.append(f"x′:out = x:x + {made}")
        topic.code.append(excerpt(Residual.forward, x="x", out="total", added="added"))


def _say_of_norm(topic: Topic, is_bare: bool) -> list[str]:
    stack, layer, kind = topic.site
    attention = attention_name(stack, kind)
    where = say("Around the {attention} of layer {layer}.", attention=attention, layer=layer)
    if topic.config.parallel:
        how = say(
            "Here attention and feed-forward read the same stream side by side, and all that they "
            "make is added to it."
        )
    elif is_bare:
        how = say("Nothing is normalised before the first sub-layer of this model.")
    elif topic.config.norm == "output":
        how = say(
            "This model normalises what each sub-layer makes before it is added to the stream."
        )
    elif topic.config.norm == "both":
        how = say(
            "This model normalises before each sub-layer, and normalises what it makes before it "
            "is added to the stream."
        )
    elif PLACEMENTS[topic.config.norm].of_input:
        how = say(
            "This model normalises before each sub-layer: what the sub-layer makes is added to the "
            "unchanged stream."
        )
    else:
        how = say(
            "This model normalises after each sub-layer: the sum of the stream and what the "
            "sub-layer makes."
        )
    return [where, how]


def _normalise(topic: Topic, of: str, result: str) -> None:
    """A layer norm or an RMS norm. of: its argument in the formula; result: the part it makes."""
    part = topic.layer.part(topic.site.kind)
    made: Any = part.norm
    row, gain, scale = part.norm_of.double(), "γ", made.weight
    if isinstance(made, nn.LayerNorm):
        shifted = made.bias is not None
        topic.formula += [
            f"N:{result}({of}) = {{{of} − μ:mean}} / √{{σ^2:variance + ε}} ⊙ γ:gain"
            + " + β:shift" * shifted
        ]
        inside = ["mean", "variance", "gain", *["shift"] * shifted, result]
        topic.code = [excerpt(Residual._norm, **dict.fromkeys(inside, "norm"))]
        topic.add("mean", "μ", say("the mean of its features"), "", {"": float(row.mean())})
        variance = {"": float(row.var(correction=0))}
        topic.add("variance", "σ^2", say("their variance"), "", variance)
        if shifted:
            shift = made.bias.detach().float().cpu()
            topic.add("shift", "β", say("the trained shift"), "C", shift)
    else:
        gain, scale = "{(1 + w)}" if made.plus_one else "γ", made.scale
        topic.formula += [
            f"N:{result}({of}) = {of} / √{{{{mean({{{of}}}^2)}}:square + ε}} ⊙ {gain}:gain"
        ]
        topic.code = [
            excerpt(unscaled_rms, square="mean"),
            excerpt(RMSNorm.forward, **{result: "return"}, gain="scale"),
        ]
        square = {"": float(row.square().mean())}
        topic.add("square", "mean (x^2)", say("the mean of its squared features"), "", square)
    topic.add("gain", gain, say("the trained scale"), "C", scale.detach().float().cpu())


# --- feed-forward ---------------------------------------------------------------------------------

# For each activation its symbol and its formula for a number z; others are shown by their titles.
_ACTIVATIONS = {
    "relu": ("ReLU", "max (0, z)"),
    "gelu": ("GELU", "z · Φ(z)"),
    "gelu-tanh": ("GELU", "z / 2 (1 + tanh(√{2 / π} (z + 0.044715 z^3)))"),
    "silu": ("SiLU", "z / {1 + e^{− z}}"),
}


def feed_forward(topic: Topic) -> None:
    """Two linear maps with an activation between, and a gate where the model has one."""
    config, layer = topic.config, topic.layer
    activation, found = ACTIVATIONS[config.activation], layer.feed_forward
    name, does = _ACTIVATIONS.get(config.activation, (activation.title, "f (z)"))
    topic.says = [
        say(
            "In layer {layer}, each token alone: {size} features become {wide}, pass through "
            "{activation} ({does}), and become {size} again.",
            layer=topic.site.layer,
            size=numeral(config.d_model),
            wide=numeral(config.d_ff),
            activation=say(activation.title),
            does=say(activation.does),
        )
    ]
    if config.gated:
        topic.says.append(
            say("A second map of the same token is activated and multiplied by them: a gate.")
        )
    topic.say_if_altered(layer.agrees)
    b_1, b_g, b_2 = (f" + b_{at}" * config.feed_forward_bias for at in "1g2")
    activated = f"{name}:inner(g:gate) ⊙ h:wide" if config.gated else f"{name}:inner(h:wide)"
    topic.formula = [
        f"h:wide = W_1 x:x{b_1}",
        *[f"g:gate = W_g x:x{b_g}"] * config.gated,
        f"a:inner = {activated}",
        f"y:out = W_2 a:inner{b_2}",
        f"{{{name}(z)}}:inner = {does}",
    ]
    gate = {"gate": "wide:gate"} if config.gated else {}
    topic.code = [
        excerpt(FeedForward.forward, wide="expand", x="x", inner="wide/f", out="contract", **gate)
    ]
    topic.add("x", "x", say("what it reads, of the chosen token"), STREAM, found.read)
    topic.add("wide", "h", say("the same, made wide"), WIDE, found.wide)
    if found.gate is None:
        topic.add("inner", "a", say("activated"), WIDE, found.inner)
    else:
        topic.add("gate", "g", say("the gate before the activation"), WIDE, found.gate)
        topic.add("inner", "a", say("activated gate × up-projection"), WIDE, found.inner)
    topic.add("out", "y", say("what the feed-forward makes"), STREAM, found.out)
