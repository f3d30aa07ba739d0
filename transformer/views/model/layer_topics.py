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
from transformer.model.config import ModelConfig
from transformer.model.functional import (
    attention_scores,
    causal_mask,
    masked_softmax,
    position_mask,
    window_mask,
)
from transformer.model.primitives import ACTIVATIONS, NORMS
from transformer.views.model.topic import FIRST, Code, HeadAtQuery, Topic

# --- one head and one query -----------------------------------------------------------------------


def attention(chosen: HeadAtQuery) -> Topic:
    """Scores, softmax, weights and output of one query."""
    config, row, kind = chosen.run.config, chosen.row, chosen.site.kind
    best, root, cap = int(row.weights.argmax()), math.sqrt(row.score_size), config.score_cap
    # the keys of the largest weights; masked ones only if all of them are
    order = np.argsort(-row.weights, kind="stable")[:FIRST].tolist()
    keys = sorted([key for key in order if row.allowed[key]] or order)
    scores = "q:q K:k^T" if row.score_size == 1 else f"{{q:q K:k^T}} / {_root(config)}:root"
    if config.biases_scores and kind == "self":
        scores += " + b:bias"
    if cap is not None:
        scores = f"{cap:g} tanh({{{scores}}} / {cap:g})"
    asks = say(
        "The chosen token asks with its query; each key answers with a score. The scores "
        "become weights, and the weights mix the values."
    )
    numbers = {
        "q": row.q, "k": row.keys[best], "root": root, "bias": row.bias,
        "scores": row.traced_scores, "weights": row.traced_weights, "v": row.values[best],
        "output": row.output,
    }  # fmt: skip
    return Topic(
        says=[*chosen.says(kind), asks],
        formula=[
            f"s:scores = {scores}",
            "w:weights = softmax(s:scores)",
            "{softmax(s)}_j = e^{s_j} / {∑_n e^{s_n}}",
            "o:output = w:weights V:v",
        ],
        code=[
            (attention_scores, "scores=return q k root=sqrt"),
            (
                MultiHeadAttention.explicit,
                "scores bias weights=pattern weights=z:pattern output=z v=z:v",
            ),
            (masked_softmax, "weights=return scores=return:scores"),
        ],
        numbers=numbers,
        shown=[("Tk", keys)],
        agrees=row.agrees,
    )


def _root(config: ModelConfig) -> str:
    """What scores are divided by: in letters, or as the number of a network that has its own."""
    letters: dict[float, str] = {config.d_model: "√C", config.d_head: "√D"}
    return letters.get(config.score_size, f"√{numeral(config.score_size, 'g')}")


def mask(chosen: HeadAtQuery) -> Topic:
    """The keys that positions hide from one query: the future, or those outside a window."""
    site, row, says = chosen.site, chosen.row, chosen.says(chosen.site.kind)
    allowed, n, total = row.allowed, int(row.allowed.sum()), len(row.allowed)
    says.append(say("The chosen token may read {n} of {total} keys here.", n=n, total=total))
    window = chosen.run.config.window_of(site.layer) if site.kind == "self" else None
    is_causal = (site.stack, site.kind) == ("decoder", "self")
    by_position = position_mask(total, total, causal=is_causal, window=window)
    if by_position is None:
        return Topic(says, agrees=n == total)
    after = "" if window is None else f"i − {window} < "
    before = " ≤ i" if is_causal else f" < i + {window}"
    # some keys on both sides of the query, where the mask begins to hide
    start = max(0, min(chosen.query - FIRST // 2 + 1, total - FIRST))
    numbers = {
        "scores": row.traced_scores, "fill": torch.finfo(torch.float32).min, "mask": allowed,
        "filled": np.where(allowed, row.traced_scores, -np.inf),
    }  # fmt: skip
    return Topic(
        says=says,
        formula=[
            f's′_j:filled = s_j:scores "{say("if")}" m_j:mask',
            f's′_j = {{−∞}}:fill "{say("otherwise")}"',
            f"m_j:mask = {after}j{before}",
        ],
        code=[
            (causal_mask, "mask=allowed/tril mask=return")
            if is_causal
            else (window_mask, "mask=return"),
            (masked_softmax, "filled=scores scores=scores:scores mask=scores:mask fill=lowest"),
        ],
        numbers=numbers,
        shown=[("Tk", range(start, min(total, start + FIRST)))],
        agrees=by_position[chosen.query].tolist() == allowed.tolist(),
    )


# --- norm and residual stream ---------------------------------------------------------------------

# By the placement of norms: how a sub-layer f adds to the stream x, what its norm N is taken of,
# and the part that the norm makes.
_RESIDUAL = {
    "pre": (["x′:out = x:stream + {f({N(x)}:normalised)}:added"], "x:stream", "normalised"),
    "post": (["y:norm_of = x:stream + {f(x)}:added", "x′:out = N(y)"], "y:norm_of", "out"),
    "output": (["y:norm_of = f(x)", "x′:out = x:stream + {N(y)}:added"], "y:norm_of", "added"),
    "both": (["x′:out = x:stream + {N′(f({N(x)}:normalised))}:added"], "x:stream", "normalised"),
    "none": (["x′:out = x:stream + {f(x)}:added"], "", ""),
}


def norm(chosen: HeadAtQuery) -> Topic:
    """The norm of the chosen attention's sub-layer, and its way back into the stream."""
    layer, config, kind = chosen.layer, chosen.run.config, chosen.site.kind
    part = layer.part(kind)
    made: Any = part.norm
    has_norm = not isinstance(made, nn.Identity)
    lines, of, result = _RESIDUAL[config.norm.removesuffix("-but-first") if has_norm else "none"]
    scale = f"{numeral(config.residual_scale, 'g')} " * (config.residual_scale != 1)
    lines = [line.replace("+ {", f"+ {{{scale}") for line in lines]
    kind_of_norm = NORMS[config.norm_kind]
    code: Code = []
    if has_norm:
        whole = (Residual._norm, f"{result}=norm mean=norm variance=norm gain=norm shift=norm")
        of_its_own = [(step, places.format(result=result)) for step, places in kind_of_norm.code]
        code = of_its_own or [whole]
    if config.norm == "post":
        code += [(Residual.forward, "out=return norm_of=total added stream=x")]
    else:
        code += [(Residual.added, "added=return normalised=read norm_of=sublayer stream=x")]
        alone = (Residual.forward, "out=total added stream=x")
        parallel = (Layer._in_parallel, "out=return added=y/self_residual stream=x")
        code += [parallel if config.parallel else alone]
    row = part.norm_of.double()
    numbers = {
        "stream": part.stream, "added": part.added, "out": part.out, "norm_of": part.norm_of,
        "normalised": part.normalised, "mean": row.mean(), "variance": row.var(correction=0),
        "square": row.square().mean(), "shift": getattr(made, "bias", None),
        "gain": getattr(made, "scale", getattr(made, "weight", None)),
    }  # fmt: skip
    says = chosen.says(f"{kind}_norm", f"{kind}_output_norm")
    formula = [*lines[:-1], lines[-1] + f" + {scale}g(N′(x))" * config.parallel]
    if has_norm and kind_of_norm.formula is not None:
        formula.append(f"N:{result}({of}) = {kind_of_norm.formula(made, of)}")
    elif not has_norm:
        says = [say("Nothing is normalised before the first sub-layer of this model.")]
    return Topic(says, formula, code, numbers, agrees=layer.agrees)


# --- feed-forward ---------------------------------------------------------------------------------


def feed_forward(chosen: HeadAtQuery) -> Topic:
    """Two linear maps with an activation between, and a gate where the model has one."""
    config, layer = chosen.run.config, chosen.layer
    of, activation = layer.feed_forward, ACTIVATIONS[config.activation]
    name, function = activation.symbol, activation.formula
    b_1, b_g, b_2 = (f" + b_{at}" * config.feed_forward_bias for at in "1g2")
    return Topic(
        says=chosen.says("feed_forward"),
        formula=[
            f"h:wide = W_1 x:read{b_1}",
            *[f"g:gate = W_g x:read{b_g}"] * config.gated,
            f"a:inner = {name}" + ("(g:gate) ⊙ h:wide" if config.gated else "(h:wide)"),
            f"y:made = W_2 a:inner{b_2}",
            *([] if function is None else [f"{{{name}(z)}}:inner = {function}"]),
        ],
        code=[
            (FeedForward.forward, "wide=expand gate=wide:gate read=x inner=wide/f made=contract")
        ],
        numbers=dict(read=of.read, wide=of.wide, gate=of.gate, inner=of.inner, made=of.out),
        agrees=layer.agrees,
    )
