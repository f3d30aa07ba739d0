"""The topic of the feed-forward: two linear maps with a bend between, and a gate."""

from __future__ import annotations

from typing import Any

from transformer.analysis.layer_at_place import FedForward
from transformer.messages import numeral, say
from transformer.model.activations import ACTIVATIONS
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
    sub,
    sup,
)
from transformer.views.equations.shown import (
    RenderContext,
    Topic,
    changed,
    layer_of,
    row_of,
    stream_row,
    tensor,
)
from transformer.views.equations.source import Code

_BENDS = {"relu": "ReLU", "gelu": "GELU", "gelu-tanh": "GELU", "silu": "SiLU"}
_LINES = {
    "relu": "«function=F.relu»",
    "gelu": "«function=F.gelu»",
    "gelu-tanh": '«function=partial(F.gelu, approximate="tanh")»',
    "silu": "«function=F.silu»",
}


def feed_forward(look: RenderContext) -> Topic:
    """Two linear maps with a bend between, and a gate where the model has one."""
    layer, config = layer_of(look), look.config
    gated, bias = config.gated, config.feed_forward_bias
    bend = mi(_bend(look), "inner")
    bent = of(bend, mi("g", "gate")) if gated else of(bend, mi("h", "wide"))
    gate = [_mapped("g", "gate", "g", "x", bias)] if gated else []
    inner = row(bent, mo("⊙"), mi("h", "wide")) if gated else bent
    return Topic(
        says=[*_says(look), *changed(layer)],
        formula=[
            _mapped("h", "wide", "1", "x", bias),
            *gate,
            equal(mi("a", "inner"), inner),
            _mapped("y", "out", "2", "a", bias, "inner"),
            _definition(look),
        ],
        code=_code(look),
        tensors=_tensors(look, layer.feed_forward),
    )


def _tensors(look: RenderContext, found: FedForward) -> list[dict[str, Any]]:
    count = len(found.wide)
    axes = [("B", 1), ("T", len(look.run.queries(look.site.stack))), ("d_ff", count)]
    tensors = [
        stream_row(look, "x", mi("x"), say("what it reads, of the chosen token"), found.read),
        tensor("wide", mi("h"), say("the same, made wide"), axes, **row_of(found.wide)),
    ]
    if found.gate is None:
        above = numeral(int((found.bent > 0).sum()))
        note = say("{n} of {total} are above 0.", n=above, total=numeral(count))
        tensors.append(
            tensor("inner", mi("a"), say("bent"), axes, **row_of(found.inner), note=note)
        )
    else:
        name = say("the gate before its bend")
        tensors.append(tensor("gate", mi("g"), name, axes, **row_of(found.gate)))
        name = say("activated gate × up-projection")
        tensors.append(tensor("inner", mi("a"), name, axes, **row_of(found.inner)))
    made = say("what the feed-forward makes")
    return [*tensors, stream_row(look, "out", mi("y"), made, found.out)]


def _says(look: RenderContext) -> list[str]:
    config = look.config
    said = [
        say(
            "In layer {layer}, each token alone: {size} features become {wide}, are bent by "
            "{bend} ({does}), and become {size} again.",
            layer=look.site.layer,
            size=numeral(config.d_model),
            wide=numeral(config.d_ff),
            bend=say(ACTIVATIONS[config.activation].title),
            does=say(ACTIVATIONS[config.activation].does),
        )
    ]
    if config.gated:
        said.append(say("A second map of the same token is bent and multiplied with them: a gate."))
    if not config.feed_forward_bias:
        said.append(say("Its maps have no bias."))
    return said


def _bend(look: RenderContext) -> str:
    """The activation's symbol; one that was added since has its title."""
    kind = look.config.activation
    return _BENDS.get(kind, ACTIVATIONS[kind].title)


def _mapped(to: str, part: str, number: str, of_what: str, bias: bool, source: str = "x") -> Node:
    """to = W of_what + b."""
    index = mn(number) if number.isdigit() else mi(number)
    more = [mo("+"), sub(mi("b"), index)] if bias else []
    return equal(mi(to, part), sub(mi("W"), index), mi(of_what, source), *more)


def _definition(look: RenderContext) -> Node:
    """What the activation does to a number z."""
    z, name = mi("z"), of(mi(_bend(look)), mi("z"))
    inner = row(z, mo("+"), mn("0.044715"), sup(z, mn(3)))
    right: dict[str, list[Node]] = {
        "relu": [mi("max"), paren(mn(0), mo(","), z)],
        "gelu": [z, mo("·"), of(mi("Φ"), z)],
        "gelu-tanh": [
            frac(z, mn(2)),
            paren(mn(1), mo("+"), of(mi("tanh"), root(frac(mn(2), mi("π"))), paren(inner))),
        ],
        "silu": [frac(z, row(mn(1), mo("+"), sup(mi("e"), row(mo("−"), z))))],
    }
    own = [mi("f"), paren(z)]  # one that was added since
    return equal(row(name, part="inner"), *right.get(look.config.activation, own))


def _code(look: RenderContext) -> list[Code]:
    if look.config.gated:
        bend = [
            ("inner", "else «self.activation(self.gate(x)) * wide»"),
            ("gate", "self.activation(«self.gate(x)») * wide"),
        ]
    else:
        bend = [("inner", "wide = «self.activation(wide)» if")]
    line = _LINES.get(look.config.activation)
    return [
        Code(
            "model.blocks.FeedForward.forward",
            ("wide", "wide = «self.expand(x)»"),
            ("x", "self.expand(«x»)"),
            *bend,
            ("out", "«self.contract(self.dropout(wide))»"),
        ),
        *([Code("model.activations.ACTIVATIONS", ("inner", line))] if line else []),
    ]
