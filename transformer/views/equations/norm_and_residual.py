"""The topic of norm and residual stream: a sub-layer's way in and back."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from transformer.analysis.layer_at_place import SubLayer
from transformer.messages import numeral, say
from transformer.model.norms import RMSNorm
from transformer.network_words import attention_name
from transformer.views.equations.mathml import (
    Node,
    equal,
    frac,
    mi,
    mn,
    mo,
    of,
    paren,
    root,
    row,
    sup,
)
from transformer.views.equations.shown import (
    RenderContext,
    Topic,
    changed,
    layer_of,
    one,
    row_of,
    stream_row,
    tensor,
)
from transformer.views.equations.source import Code


def norm(look: RenderContext) -> Topic:
    """The norm of the chosen attention's sub-layer, and its way back into the stream."""
    layer = layer_of(look)
    part, first = layer.part(look.site.kind), look.config.norm == "pre"
    made = (_of_layer_norm if isinstance(part.norm, nn.LayerNorm) else _of_rms)(look, part)
    topic = Topic(says=[*_says(look), *changed(layer)], formula=[*made.formula, *_way_back(look)])
    topic.code = [*made.code, *_code_of_way_back(look)]
    stream = stream_row(look, "x", mi("x"), say("the residual stream that comes in"), part.stream)
    added = stream_row(look, "added", _made_of(look), say("what the sub-layer makes"), part.added)
    summed = stream_row(look, "y", mi("y"), say("the sum of both, which is normed"), part.norm_of)
    normed = stream_row(look, "normed", of(mi("N"), _normed(look)), say("normed"), part.normed)
    out = stream_row(look, "out", mi("x′"), say("the residual stream that goes on"), part.out)
    if first:
        topic.tensors = [stream, *made.tensors, normed, added, out]
    else:
        out |= {"part": "out", "name": say("normed: the residual stream that goes on")}
        topic.tensors = [stream, added, summed, *made.tensors, out]
    return topic


def _says(look: RenderContext) -> list[str]:
    where = say(
        "Around the {attention} of layer {layer}.",
        attention=attention_name(look.site.stack, look.site.kind),
        layer=look.site.layer,
    )
    if look.config.parallel:
        how = say(
            "Here attention and feed-forward read the same stream side by side, and all that they "
            "make is added to it."
        )
    elif look.config.norm == "pre":
        how = say(
            "This model norms before each sub-layer: what the sub-layer makes is added to the "
            "stream as it came."
        )
    else:
        how = say(
            "This model norms after each sub-layer: the sum of the stream and what the sub-layer "
            "makes."
        )
    return [where, how]


def _normed(look: RenderContext) -> Node:
    """What the norm is taken of."""
    return mi("x", "x") if look.config.norm == "pre" else mi("y", "y")


def _result(look: RenderContext) -> str:
    """The part that the norm makes: with norm after a sub-layer, what goes on."""
    return "normed" if look.config.norm == "pre" else "out"


def _of_layer_norm(look: RenderContext, part: SubLayer) -> Topic:
    assert isinstance(part.norm, nn.LayerNorm)
    x, row_in = _normed(look), part.norm_of.double()
    mean, variance = float(row_in.mean()), float(row_in.var(unbiased=False))
    gain, shift = part.norm.weight, part.norm.bias
    spread = sup(mi("σ"), mn(2), "variance")
    formula = equal(
        of(mi("N", _result(look)), x),
        frac(
            row(x, mo("−"), mi("μ", "mean")),
            root(row(spread, mo("+"), mi("ε"))),
        ),
        mo("⊙"), mi("γ", "gain"), *([mo("+"), mi("β", "shift")] if shift is not None else []),
    )  # fmt: skip
    inside = "mean", "variance", "gain", *(["shift"] if shift is not None else []), _result(look)
    return Topic(
        formula=[formula],
        code=[
            Code(
                "model.norms.NORMS",
                (_result(look), '«"layer"»: Norm('),
                *((name, "make=«nn.LayerNorm»") for name in inside),
            ),
        ],
        tensors=[
            tensor("mean", mi("μ"), say("the mean of its features"), [], **one(mean)),
            tensor(
                "variance", sup(mi("σ"), mn(2)), say("their variance"), [], **one(variance),
                note=say(
                    "ε = {eps} keeps the root from 0. PyTorch's own layer norm computes all this.",
                    eps=numeral(part.norm.eps, "g"),
                ),
            ),
            _trained(look, "gain", mi("γ"), say("the trained scale"), gain),
            *([_trained(look, "shift", mi("β"), say("the trained shift"), shift)]
              if shift is not None else []),
        ],
    )  # fmt: skip


def _of_rms(look: RenderContext, part: SubLayer) -> Topic:
    assert isinstance(part.norm, RMSNorm)
    x, square = _normed(look), float(part.norm_of.double().square().mean())
    gain: Node = mi("γ", "gain")
    if part.norm.plus_one:
        gain = row(paren(mn(1), mo("+"), mi("w")), part="gain")
    mean = row(mi("mean"), mo("\u2061"), paren(sup(x, mn(2))), part="square")
    return Topic(
        formula=[
            equal(
                of(mi("N", _result(look)), x),
                frac(x, root(row(mean, mo("+"), mi("ε")))),
                mo("⊙"),
                gain,
            )
        ],
        code=[
            Code(
                "model.norms.unscaled_rms",
                ("square", "«wide.square().mean(dim=-1, keepdim=True)»"),
            ),
            Code(
                "model.norms.RMSNorm.forward",
                (_result(look), "«(unscaled_rms(x, self.eps) * self.scale).to(x.dtype)»"),
                ("gain", "* «self.scale»"),
            ),
        ],
        tensors=[
            tensor(
                "square", row(mi("mean"), paren(sup(mi("x"), mn(2)))),
                say("the mean of its squared features"), [], **one(square),
                note=say(
                    "Its root is {root}; ε = {eps} keeps it from 0.",
                    root=numeral(square**0.5, ".3f"), eps=numeral(part.norm.eps, "g"),
                ),
            ),
            _trained(look, "gain", gain, say("the trained scale"), part.norm.scale),
        ],
    )  # fmt: skip


def _made_of(look: RenderContext) -> Node:
    """What the sub-layer makes, as a term."""
    inner = of(mi("N", "normed"), mi("x", "x")) if look.config.norm == "pre" else mi("x", "x")
    return row(of(mi("f"), inner), part="added")


def _way_back(look: RenderContext) -> list[Node]:
    x, added = mi("x", "x"), _made_of(look)
    if look.config.norm == "post":
        return [
            equal(mi("y", "y"), x, mo("+"), added),
            equal(mi("x′", "out"), of(mi("N", "out"), mi("y", "y"))),
        ]
    other = [mo("+"), of(mi("g"), of(mi("N"), mi("x", "x")))] if look.config.parallel else []
    return [equal(mi("x′", "out"), x, mo("+"), added, *other)]


def _code_of_way_back(look: RenderContext) -> list[Code]:
    forward, added = "model.blocks.Residual.forward", "model.blocks.Residual.added"
    if look.config.norm == "post":
        return [
            Code(
                forward,
                ("x", 'stream = «context.at("skip", self.place, x)»'),
                ("out", "«self._normed(stream + self.dropout(sublayer(x, context)), context)»"),
                ("y", "self._normed(«stream + self.dropout(sublayer(x, context))», context)"),
                ("x", "self._normed(«stream» +"),
                ("added", "+ «self.dropout(sublayer(x, context))»"),
            )
        ]
    own = Code(
        added,
        ("added", "return «self.dropout(sublayer(self._normed(x, context), context))»"),
        ("normed", "sublayer(«self._normed(x, context)», context)"),
        ("x", "self._normed(«x», context)"),
    )
    if look.config.parallel:
        return [
            own,
            Code(
                "model.blocks.Layer._side_by_side",
                ("x", 'made = «context.at("skip", self.place, x)»'),
                ("added", "+ «self.self_residual.added(x, self.self_attention, context)»"),
                ("out", "«made + self.feed_forward_residual.added(x, self.feed_forward, context)»"),
            ),
        ]
    whole = (
        ("x", 'stream = «context.at("skip", self.place, x)»'),
        ("out", "return «stream + self.added(x, sublayer, context)»"),
        ("added", "stream + «self.added(x, sublayer, context)»"),
    )
    return [own, Code(forward, *whole)]


def _trained(
    look: RenderContext, part: str, symbol: Node, name: str, values: Tensor
) -> dict[str, Any]:
    row = values.detach().float().cpu()
    return tensor(part, symbol, name, [("C", look.config.d_model)], **row_of(row))
