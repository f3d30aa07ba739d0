"""The formulas of a network's parts, from its configuration alone, in the marks of equations.js.

A `:part` after a symbol names what code and numbers show beside it, see topic.py.
"""

from __future__ import annotations

from transformer.messages import numeral
from transformer.model.config import ModelConfig
from transformer.model.positions import POSITIONS, VectorFormula
from transformer.model.primitives import ACTIVATIONS
from transformer.model.rotary import RotarySettings

# Of an encoding that has no formula: its vector by a letter, and where it is added.
UNKNOWN = VectorFormula("{P_{p:p}}:position", (), ())

# By the placement of norms: how a sub-layer f adds to the stream x, what its norm N is taken of,
# and the part that the norm makes.
RESIDUAL = {
    "pre": (["x′:out = x:stream + {f({N(x)}:normalised)}:added"], "x:stream", "normalised"),
    "post": (["y:norm_of = x:stream + {f(x)}:added", "x′:out = N(y)"], "y:norm_of", "out"),
    "output": (["y:norm_of = f(x)", "x′:out = x:stream + {N(y)}:added"], "y:norm_of", "added"),
    "both": (["x′:out = x:stream + {N′(f({N(x)}:normalised))}:added"], "x:stream", "normalised"),
    "none": (["x′:out = x:stream + {f(x)}:added"], "", ""),
}
SOFTMAX = "p_i:given = e^{z_i:logits} / {∑_j e^{z_j}}"


def of_attention(config: ModelConfig, kind: str, score_size: float) -> list[str]:
    """Formulas of scores, weights and output.

    kind: "self" or "cross". score_size: the scores are divided by its square root.
    """
    scores = "q:q K:k^T" if score_size == 1 else f"{{q:q K:k^T}} / {_root(config)}:root"
    if config.biases_scores and kind == "self":
        scores += " + b:bias"
    if (cap := config.score_cap) is not None:
        scores = f"{cap:g} tanh({{{scores}}} / {cap:g})"
    return [
        f"s:scores = {scores}",
        "w:weights = softmax(s:scores)",
        "{softmax(s)}_j = e^{s_j} / {∑_n e^{s_n}}",
        "o:output = w:weights V:v",
    ]


def _root(config: ModelConfig) -> str:
    """What scores are divided by: in letters, or as the number of a network that has its own."""
    letters: dict[float, str] = {config.d_model: "√C", config.d_head: "√D"}
    return letters.get(config.score_size, f"√{numeral(config.score_size, 'g')}")


def of_residual(config: ModelConfig, placement: str) -> list[str]:
    """How a sub-layer adds to the stream; placement: of RESIDUAL."""
    scale = f"{numeral(config.residual_scale, 'g')} " * (config.residual_scale != 1)
    lines = [line.replace("+ {", f"+ {{{scale}") for line in RESIDUAL[placement][0]]
    return [*lines[:-1], lines[-1] + f" + {scale}g(N′(x))" * config.parallel]


def of_feed_forward(config: ModelConfig) -> list[str]:
    """Two linear maps with an activation between, and a gate where the model has one."""
    activation = ACTIVATIONS[config.activation]
    name, function = activation.symbol, activation.formula
    b_1, b_g, b_2 = (f" + b_{at}" * config.feed_forward_bias for at in "1g2")
    return [
        f"h:wide = W_1 x:read{b_1}",
        *[f"g:gate = W_g x:read{b_g}"] * config.gated,
        f"a:inner = {name}" + ("(g:gate) ⊙ h:wide" if config.gated else "(h:wide)"),
        f"y:made = W_2 a:inner{b_2}",
        *([] if function is None else [f"{{{name}(z)}}:inner = {function}"]),
    ]


def of_added_positions(config: ModelConfig) -> list[str]:
    """The vector of a position, and what it is added to."""
    vector, lines, *_ = POSITIONS[config.positions].formula or UNKNOWN
    types = " + e′" * (config.n_token_types > 0)
    return [
        *lines,
        f"x:sum = {{{embedded_token(config)}{types}}}:token + {vector}",
        *["x′ = N(x)"] * config.norm_embeddings,
    ]


def embedded_token(config: ModelConfig) -> str:
    """The token's own vector, as the network scales it."""
    scale = numeral(config.embedding_scale, "g")
    return f"{scale} " * (config.embedding_scale != 1) + "√C " * config.scale_embeddings + "e"


def of_rotation(settings: RotarySettings) -> list[str]:
    """How the queries of a layer are rotated; keys as well."""
    half = settings.size // 2
    base, other = numeral(settings.base, ",.0f"), f"{{i + {half}}}"
    longer = settings.multiplier
    length = f"{numeral(longer, '.6g')} " * (longer != 1)
    cos, sin = (f"{{{length}{wave}(p:p θ_i:theta)}}:{wave}" for wave in ("cos", "sin"))
    slower = {"none": "", "dynamic": "", "linear": f" / {numeral(settings.factor, 'g')}"}
    return [
        f"q′_i:after = q_i:before {cos} − q_{other}:before {sin}",
        f"q′_{other}:after = q_{other}:before {cos} + q_i:before {sin}",
        f"θ_i:theta = {base}^{{− {{2 i}} / {settings.size}}}"
        + slower.get(settings.scaling, " / f_i"),
    ]
