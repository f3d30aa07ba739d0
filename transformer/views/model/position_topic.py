"""The topic of positions: how the network knows the position of a token."""

from __future__ import annotations

import numpy as np

from transformer.analysis.rotary import rotated_pair, rotates
from transformer.messages import numeral, say
from transformer.model.blocks import Embedding
from transformer.model.positions import (
    FIRST_OF_FAIRSEQ,
    POSITIONS,
    LearnedPositions,
    sinusoidal_matrix,
)
from transformer.model.rotary import SCALINGS, Rotation, apply_rotary, frequencies_of
from transformer.runs.head_data import array
from transformer.views.model.source import excerpt
from transformer.views.model.topic import FIRST, Topic, quoted

HALF = FIRST // 2  # pairs of features that are shown


def positions(topic: Topic) -> None:
    """As the run's model has them: waves, a trained table, or a rotation of queries and keys."""
    run, config, stack = topic.run, topic.config, topic.site.stack
    if config.positions == "rotary" and not rotates(run, topic.site):
        topic.says = [
            say("No vector is added to a token in this model, so there is no position matrix."),
            say("Cross-attention rotates nothing either.")
            if topic.site.kind == "cross"
            else say("Some layers rotate nothing."),
        ]
        return
    if POSITIONS[config.positions].is_bias:
        topic.says = [say(POSITIONS[config.positions].does)]
        return
    name = say(
        "the position of {token}, counted from 0", token=quoted(run.queries(stack)[topic.position])
    )
    topic.add("p", "p", name, "", {"": topic.position})
    if config.positions == "rotary":
        _rotation(topic)
        return
    if config.positions == "learned":
        vector = "P_{p:p}"
        topic.says = [
            say(
                "This model has a trained vector for each of its {max_len} positions: a row of a "
                "table, looked up.",
                max_len=numeral(config.max_len_of(stack)),
            )
        ]
        topic.formula = [f"{vector}:position = table [p:p]"]
        topic.code = [excerpt(LearnedPositions.forward, position="return", p="positions")]
    else:
        vector = "PE_{p:p}"
        _waves(topic, config.positions)
    scaled = config.scale_embeddings
    token = "√C e" if scaled else "e"
    topic.formula.append(f"x:sum = {{{token}}}:token + {vector}:position")
    lookup = "embedded/tokens" + " embedded/scale" * scaled
    topic.code.append(excerpt(Embedding.forward, token=lookup, position="added", sum="x/embedded"))
    embedded, added = (
        array(rows[stack][0, topic.position]) for rows in (run.trace.embed, run.trace.pos_embed)
    )
    known = array(run.position_matrices[stack][topic.position])
    topic.say_if_altered(np.allclose(known, added, atol=1e-5))
    topic.add("position", vector, say("the vector of its position"), "T × C", added)
    name = (
        say("the token's own vector, times the root of d_model as the paper has it")
        if scaled
        else say("the token's own vector")
    )
    topic.add("token", "e", name, "B × T × C", embedded)
    name = say("their sum, which enters the first layer")
    topic.add("sum", "x", name, "B × T × C", embedded + added)


def _waves(topic: Topic, positions: str) -> None:
    """Sines and cosines."""
    halves, fairseq = positions != "sinusoidal", positions == "sinusoidal-fairseq"
    topic.says = [
        say(
            "This model adds waves that were never trained: each pair of features has a sine and a "
            "cosine of its own wavelength, and their values at p are the position's vector."
        )
    ]
    even, odd = ("i", "C / 2 + i") if halves else ("2 i", "2 i + 1")
    first, whole = ("(p:p + 2)", "{C − 2}") if fairseq else ("p:p", "C")
    topic.formula = [
        f"PE_{{p:p, {index}}}:position = {wave}({{{first} / 10000^{{{{2 i}} / {whole}}}}}:angle)"
        for wave, index in (("sin", even), ("cos", odd))
    ]
    waves = "return/sin" if halves else "matrix/sin matrix/cos"
    topic.code = [
        excerpt(sinusoidal_matrix, p="position angle:position", angle="angle", position=waves)
    ]
    size = topic.config.d_model
    position = topic.position + FIRST_OF_FAIRSEQ * fairseq
    angles = position / 10_000.0 ** (np.arange(0, size, 2) / (size - 2 * fairseq))
    name = say("the angles of the first pairs of features, in radians")
    topic.add("angle", "θ_i", name, "C / 2", angles, range(min(HALF, size // 2)))


def _rotation(topic: Topic) -> None:
    """Nothing is added: each head rotates its queries and keys."""
    settings = topic.config.rotary_of(topic.site.layer)
    assert settings is not None
    half, scaled = settings.size // 2, SCALINGS[settings.scaling].does
    topic.says = [
        say("No vector is added to a token in this model, so there is no position matrix."),
        say(
            "Instead each head rotates its queries and keys: features i and i + {half} are a "
            "point in a plane, which is rotated by p times the pair's own angle.",
            half=half,
        ),
        *[say(scaled, factor=numeral(settings.factor, "g"))] * bool(scaled),
    ]
    base, other = numeral(settings.base, ",.0f"), f"{{i + {half}}}"
    cos, sin = (f"{{{wave}(p:p θ_i:theta)}}:{wave}" for wave in ("cos", "sin"))
    topic.formula = [
        f"q′_i:after = q_i:before {cos} − q_{other}:before {sin}",
        f"q′_{other}:after = q_{other}:before {cos} + q_i:before {sin}",
        f"θ_i:theta = {base}^{{− {{2 i}} / {settings.size}}}",
    ]
    angles_of_all = {"p": "positions angles:positions", "theta": "angles:frequencies_of"}
    pair = {"after": "pair", "cos": "pair:cosines", "sin": "pair:sines"}
    topic.code = [
        excerpt(frequencies_of, theta="frequencies"),
        excerpt(Rotation.__init__, cos="cos", sin="sin", **angles_of_all),
        excerpt(apply_rotary, before="first pair:first pair:second", **pair),
    ]
    found = rotated_pair(topic.run, topic.site, topic.head, topic.position)
    frequencies = frequencies_of(settings).double().numpy()
    angles = frequencies * topic.position
    pairs = range(min(HALF, half))
    features = [*pairs, *(half + at for at in pairs)]
    name = say("radians for each step of p, of each pair")
    topic.add("theta", "θ_i", name, "R / 2", frequencies, pairs)
    topic.add("cos", cos, say("the cosines at p"), "R / 2", np.cos(angles), pairs)
    topic.add("sin", sin, say("the sines at p"), "R / 2", np.sin(angles), pairs)
    axes, name = "B × H × Tq × D", say("the query before it is rotated")
    topic.add("before", "q", name, axes, found.q_before, features)
    topic.add("after", "q′", say("the query as it meets the keys"), axes, found.q, features)
