"""The topics of a layer: attention and the mask of its keys; norm and residual; feed-forward."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import nn

from transformer.messages import say
from transformer.model.attention import MultiHeadAttention
from transformer.model.blocks import FeedForward, Layer, Residual
from transformer.model.functional import (
    attention_scores,
    causal_mask,
    masked_softmax,
    position_mask,
    window_mask,
)
from transformer.model.primitives import NORMS
from transformer.views.model.formulas import (
    RESIDUAL,
    of_attention,
    of_feed_forward,
    of_residual,
)
from transformer.views.model.topic import N_NUMBERS, Code, HeadAtQuery, Topic

# --- one head and one query -----------------------------------------------------------------------


def attention(chosen: HeadAtQuery) -> Topic:
    """Scores, softmax, weights and output of one query."""
    config, row, kind = chosen.run.config, chosen.row, chosen.site.kind
    best, root = int(row.weights.argmax()), math.sqrt(row.score_size)
    # the keys of the largest weights; masked ones only if all of them are
    order = np.argsort(-row.weights, kind="stable")[:N_NUMBERS].tolist()
    keys = sorted([key for key in order if row.allowed[key]] or order)
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
        says=[*chosen.does(kind), asks],
        formula=of_attention(config, kind, row.score_size),
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


def mask(chosen: HeadAtQuery) -> Topic:
    """The keys that positions hide from one query: the future, or those outside a window."""
    site, row, says = chosen.site, chosen.row, chosen.does(chosen.site.kind)
    allowed, n, total = row.allowed, int(row.allowed.sum()), len(row.allowed)
    then = [say("The chosen token may read {n} of {total} keys here.", n=n, total=total)]
    window = chosen.run.config.window_of(site.layer) if site.kind == "self" else None
    is_causal = (site.stack, site.kind) == ("decoder", "self")
    by_position = position_mask(total, total, causal=is_causal, window=window)
    if by_position is None:
        return Topic(says, agrees=n == total, then=then)
    after = "" if window is None else f"i − {window} < "
    before = " ≤ i" if is_causal else f" < i + {window}"
    # some keys on both sides of the query, where the mask begins to hide
    start = max(0, min(chosen.query - N_NUMBERS // 2 + 1, total - N_NUMBERS))
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
        shown=[("Tk", range(start, min(total, start + N_NUMBERS)))],
        agrees=by_position[chosen.query].tolist() == allowed.tolist(),
        then=then,
    )


# --- norm and residual stream ---------------------------------------------------------------------


def norm(chosen: HeadAtQuery) -> Topic:
    """The norm of the chosen attention's sub-layer, and its way back into the stream."""
    layer, config, kind = chosen.layer, chosen.run.config, chosen.site.kind
    part = layer.part(kind)
    module: Any = part.norm
    has_norm = not isinstance(module, nn.Identity)
    placement = config.norm.removesuffix("-but-first") if has_norm else "none"
    _, of, result = RESIDUAL[placement]
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
        "square": row.square().mean(), "shift": getattr(module, "bias", None),
        "gain": getattr(module, "scale", getattr(module, "weight", None)),
    }  # fmt: skip
    says = chosen.does(f"{kind}_norm", f"{kind}_output_norm")
    formula = of_residual(config, placement)
    if has_norm and kind_of_norm.formula is not None:
        formula.append(f"N:{result}({of}) = {kind_of_norm.formula(module, of)}")
    elif not has_norm:
        says = [say("Nothing is normalised before the first sub-layer of this model.")]
    return Topic(says, formula, code, numbers, agrees=layer.agrees, is_placed=has_norm)


# --- feed-forward ---------------------------------------------------------------------------------


def feed_forward(chosen: HeadAtQuery) -> Topic:
    """Two linear maps with an activation between, and a gate where the model has one."""
    config, layer = chosen.run.config, chosen.layer
    of = layer.feed_forward
    return Topic(
        says=chosen.does("feed_forward"),
        formula=of_feed_forward(config),
        code=[
            (FeedForward.forward, "wide=expand gate=wide:gate read=x inner=wide/f made=contract")
        ],
        numbers=dict(read=of.read, wide=of.wide, gate=of.gate, inner=of.inner, made=of.out),
        agrees=layer.agrees,
    )
