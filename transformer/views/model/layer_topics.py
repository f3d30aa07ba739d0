"""The topics of one token in a layer: norm and residual stream, and the feed-forward."""

from __future__ import annotations

from torch import Tensor, nn

from transformer.analysis.layer_at_position import FedForward, SubLayer
from transformer.messages import numeral, say
from transformer.model.activations import ACTIVATIONS
from transformer.model.blocks import FeedForward, Layer, Residual
from transformer.model.norms import RMSNorm, unscaled_rms
from transformer.network_words import attention_name
from transformer.views.model.source import excerpt
from transformer.views.model.topic import Topic

_STREAM = "B × T × C"

# --- norm and residual stream ---------------------------------------------------------------------


def norm(topic: Topic) -> None:
    """The norm of the chosen attention's sub-layer, and its way back into the stream."""
    layer = topic.layer
    part, first = layer.part(topic.site.kind), topic.config.norm == "pre"
    of, result = ("x:x", "normalised") if first else ("y:y", "out")
    topic.says = _say_of_norm(topic)
    topic.say_if_altered(layer.agrees)
    name = say("the residual stream that comes in")
    topic.features("x", "x", name, _STREAM, part.stream)
    made = "{f(N:normalised(x:x))}:added" if first else "{f(x:x)}:added"
    if not first:
        topic.features("added", made, say("what the sub-layer makes"), _STREAM, part.added)
        name = say("the sum of both, which is normalised")
        topic.features("y", "y", name, _STREAM, part.norm_of)
    add = _add_layer_norm if isinstance(part.norm, nn.LayerNorm) else _add_rms
    add(topic, part, of, result)
    _add_way_back(topic, made)
    if first:
        topic.features("normalised", f"N({of})", say("normalised"), _STREAM, part.normalised)
        topic.features("added", made, say("what the sub-layer makes"), _STREAM, part.added)
    name = (
        say("the residual stream that goes on")
        if first
        else say("normalised: the residual stream that goes on")
    )
    topic.features("out", "x′", name, _STREAM, part.out)


def _say_of_norm(topic: Topic) -> list[str]:
    stack, layer, kind = topic.site
    attention = attention_name(stack, kind)
    where = say("Around the {attention} of layer {layer}.", attention=attention, layer=layer)
    if topic.config.parallel:
        how = say(
            "Here attention and feed-forward read the same stream side by side, and all that they "
            "make is added to it."
        )
    elif topic.config.norm == "pre":
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


def _add_layer_norm(topic: Topic, part: SubLayer, of: str, result: str) -> None:
    """of: what the norm is taken of; result: the part that it makes."""
    assert isinstance(part.norm, nn.LayerNorm)
    row, shift = part.norm_of.double(), part.norm.bias
    shifted = shift is not None
    topic.formula = [
        f"N:{result}({of}) = {{{of} − μ:mean}} / √{{σ^2:variance + ε}} ⊙ γ:gain"
        + (" + β:shift" if shifted else "")
    ]
    inside = ["mean", "variance", "gain", *(["shift"] if shifted else []), result]
    topic.code = [excerpt(Residual, **dict.fromkeys(inside, "norm"))]
    topic.number("mean", "μ", say("the mean of its features"), float(row.mean()))
    note = say(
        "ε = {eps} keeps the root from 0. PyTorch's own layer norm computes all this.",
        eps=numeral(part.norm.eps, "g"),
    )
    variance = float(row.var(unbiased=False))
    topic.number("variance", "σ^2", say("their variance"), variance, note=note)
    _add_trained(topic, "gain", "γ", say("the trained scale"), part.norm.weight)
    if shifted:
        _add_trained(topic, "shift", "β", say("the trained shift"), shift)


def _add_rms(topic: Topic, part: SubLayer, of: str, result: str) -> None:
    """of: what the norm is taken of; result: the part that it makes."""
    assert isinstance(part.norm, RMSNorm)
    gain = "{(1 + w)}:gain" if part.norm.plus_one else "γ:gain"
    topic.formula = [f"N:{result}({of}) = {of} / √{{{{mean({{{of}}}^2)}}:square + ε}} ⊙ {gain}"]
    topic.code = [
        excerpt(unscaled_rms, square="return:square"),
        excerpt(RMSNorm.forward, **{result: "return"}, gain="return:scale"),
    ]
    square = float(part.norm_of.double().square().mean())
    root, eps = numeral(square**0.5, ".3f"), numeral(part.norm.eps, "g")
    note = say("Its root is {root}; ε = {eps} keeps it from 0.", root=root, eps=eps)
    name = say("the mean of its squared features")
    topic.number("square", "mean (x^2)", name, square, note=note)
    _add_trained(topic, "gain", gain, say("the trained scale"), part.norm.scale)


def _add_trained(topic: Topic, part: str, symbol: str, name: str, values: Tensor) -> None:
    topic.features(part, symbol, name, "C", values.detach().float().cpu())


def _add_way_back(topic: Topic, made: str) -> None:
    """How what the sub-layer made comes back into the stream."""
    if topic.config.norm == "post":
        topic.formula += [f"y:y = x:x + {made}", "x′:out = N:out(y:y)"]
        topic.code.append(
            excerpt(
                Residual,
                x="skip",
                out="return/sublayer",
                y="return/sublayer",
                added="return:sublayer",
            )
        )
        return
    topic.code.append(
        excerpt(Residual.added, added="return", normalised="return:_norm", x="return:x")
    )
    if topic.config.parallel:
        topic.formula.append(f"x′:out = x:x + {made} + g(N(x:x))")
        topic.code.append(excerpt(Layer, x="skip", out="return", added="y/self_residual"))
        return
    topic.formula.append(f"x′:out = x:x + {made}")
    topic.code.append(excerpt(Residual, x="skip", out="return/added", added="return:added"))


# --- feed-forward ---------------------------------------------------------------------------------

# Of each activation: its symbol, and what it does to a number z; another is shown by its title.
_ACTIVATIONS = {
    "relu": ("ReLU", "max (0, z)"),
    "gelu": ("GELU", "z · Φ(z)"),
    "gelu-tanh": ("GELU", "z / 2 (1 + tanh(√{2 / π} (z + 0.044715 z^3)))"),
    "silu": ("SiLU", "z / {1 + e^{− z}}"),
}


def feed_forward(topic: Topic) -> None:
    """Two linear maps with an activation between, and a gate where the model has one."""
    layer, config = topic.layer, topic.config
    own = ACTIVATIONS[config.activation].title, "f (z)"
    name, does = _ACTIVATIONS.get(config.activation, own)
    bias = config.feed_forward_bias
    topic.says = _say_of_feed_forward(topic)
    topic.say_if_altered(layer.agrees)
    activated = f"{name}:inner(g:gate) ⊙ h:wide" if config.gated else f"{name}:inner(h:wide)"
    topic.formula = [
        "h:wide = W_1 x:x" + (" + b_1" if bias else ""),
        *(["g:gate = W_g x:x" + (" + b_g" if bias else "")] if config.gated else []),
        f"a:inner = {activated}",
        "y:out = W_2 a:inner" + (" + b_2" if bias else ""),
        f"{{{name}(z)}}:inner = {does}",
    ]
    gate = {"gate": "wide:gate"} if config.gated else {}
    topic.code = [
        excerpt(FeedForward, wide="wide/expand", x="wide:x", inner="wide/f", out="mlp_out", **gate)
    ]
    _add_fed(topic, layer.feed_forward)


def _add_fed(topic: Topic, found: FedForward) -> None:
    wide = "B × T × d_ff"
    topic.features("x", "x", say("what it reads, of the chosen token"), _STREAM, found.read)
    topic.features("wide", "h", say("the same, made wide"), wide, found.wide)
    if found.gate is None:
        above, total = int((found.activated > 0).sum()), len(found.wide)
        note = say("{n} of {total} are above 0.", n=numeral(above), total=numeral(total))
        topic.features("inner", "a", say("activated"), wide, found.inner, note=note)
    else:
        topic.features("gate", "g", say("the gate before the activation"), wide, found.gate)
        topic.features("inner", "a", say("activated gate × up-projection"), wide, found.inner)
    topic.features("out", "y", say("what the feed-forward makes"), _STREAM, found.out)


def _say_of_feed_forward(topic: Topic) -> list[str]:
    config, activation = topic.config, ACTIVATIONS[topic.config.activation]
    said = [
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
        said.append(
            say("A second map of the same token is activated and multiplied by them: a gate.")
        )
    if not config.feed_forward_bias:
        said.append(say("Its maps have no bias."))
    return said
