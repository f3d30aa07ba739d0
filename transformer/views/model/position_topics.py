"""The topic of positions: what tells the network where a token stands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transformer.messages import numeral, say
from transformer.model import rotary
from transformer.model.positions import LearnedPositions, sinusoidal_matrix
from transformer.model.rotary import SCALINGS, frequencies_of
from transformer.model.stacks import Embedding
from transformer.runs.head_data import array
from transformer.views.model.source import excerpt
from transformer.views.model.topic import FIRST, Topic
from transformer.views.positions.rotary import rotated_pair

HALF = FIRST // 2


def positions(topic: Topic) -> None:
    """As the run's model has them: waves, a trained table, or a rotation of queries and keys."""
    if topic.config.positions == "rotary":
        _rotation(topic)
        return
    if topic.config.positions == "learned":
        _learned(topic)
    else:
        _waves(topic, halves=topic.config.positions.endswith("halves"))
    _add_to_token(topic)


def _add_position(topic: Topic) -> None:
    name = say("the position of {token}, counted from 0", token=topic.label)
    topic.number("p", "p", name, topic.position)


def _waves(topic: Topic, *, halves: bool) -> None:
    """Sines and cosines. halves: all sines first."""
    size = topic.config.d_model
    topic.says = [
        say(
            "This model adds waves that were never trained: each pair of features has a sine and a "
            "cosine of its own wavelength, and their values at p are the position's vector."
        )
    ]
    even, odd = ("i", "C / 2 + i") if halves else ("2 i", "2 i + 1")
    angle = "p:p / 10000^{{2 i} / C}"
    topic.formula = [
        f"PE_{{p:p, {index}}}:position = {wave}({{{angle}}}:angle)"
        for wave, index in (("sin", even), ("cos", odd))
    ]
    made = "return/sin" if halves else "matrix/sin matrix/cos"
    topic.code = [
        excerpt(sinusoidal_matrix, p="position angle:position", angle="angle", position=made)
    ]
    _add_position(topic)
    angles = topic.position / 10_000.0 ** (np.arange(0, size, 2) / size)
    name = say("the angles of the first pairs of features, in radians")
    note = say("Pair 0 rotates fastest; each next one rotates slower.")
    first = range(min(HALF, size // 2))
    topic.features("angle", angle, name, "C / 2", angles, first, note=note)


def _learned(topic: Topic) -> None:
    """A row of a table that was trained."""
    topic.says = [
        say(
            "This model has a trained vector for each of its {max_len} positions: a row of a "
            "table, looked up.",
            max_len=numeral(topic.config.max_len_of(topic.site.stack)),
        )
    ]
    topic.formula = ["P_{p:p}:position = table [p:p]"]
    topic.code = [excerpt(LearnedPositions.forward, position="return", p="return:positions")]
    _add_position(topic)


def _add_to_token(topic: Topic) -> None:
    """The sum that every added encoding ends in."""
    run, config, stack = topic.run, topic.config, topic.site.stack
    embedded, added = (
        array(rows[stack][0, topic.position]) for rows in (run.trace.embed, run.trace.pos_embed)
    )
    vector = "P_p" if config.positions == "learned" else "PE_p"
    scaled = config.scale_embeddings
    topic.formula.append(f"x:sum = {{{'√C e' if scaled else 'e'}}}:token + {vector}:position")
    topic.code.append(
        excerpt(
            Embedding,
            token="embed/tokens" + " embed/scale" * scaled,
            position="pos_embed",
            sum="x/embedded",
        )
    )
    size = config.d_model
    shown: Sequence[int] = range(min(FIRST, size))
    if config.positions.endswith("halves"):  # the sines and the cosines of the first pairs
        pairs = range(min(HALF, size // 2))
        shown = [*pairs, *(size // 2 + at for at in pairs)]
    name = say("the vector of its position")
    topic.features("position", vector, name, "T × C", added, shown)
    name = (
        say("the token's own vector, times the root of d_model as the paper has it")
        if scaled
        else say("the token's own vector")
    )
    topic.features("token", "e", name, "B × T × C", embedded, shown)
    name = say("their sum, which enters the first layer")
    note = say("This model then norms the sum.") if config.norm_embeddings else ""
    topic.features("sum", "x", name, "B × T × C", embedded + added, shown, note=note)
    known = array(run.position_matrices[stack][topic.position])
    topic.say_if_altered(np.allclose(known, added, atol=1e-5))


def _rotation(topic: Topic) -> None:
    """Nothing is added: each head rotates its queries and keys."""
    nothing = say("No vector is added to a token in this model, so there is no position matrix.")
    if topic.site.kind == "cross":
        topic.says = [f"{nothing} " + say("Cross-attention rotates nothing either.")]
        return
    settings = topic.config.rotary
    half, scaled = settings.size // 2, SCALINGS[settings.scaling].does
    topic.says = [
        nothing,
        say(
            "Instead each head rotates its queries and keys: features i and i + {half} are a "
            "point in a plane, which is rotated by p times the pair's own angle.",
            half=half,
        ),
        *([say(scaled, factor=numeral(settings.factor, "g"))] if scaled else []),
    ]
    base = numeral(settings.base, ",.0f")
    other = f"{{i + {half}}}"
    cos, sin = (f"{{{wave}(p:p θ_i:theta)}}:{wave}" for wave in ("cos", "sin"))
    topic.formula = [
        f"q′_i:after = q_i:before {cos} − q_{other}:before {sin}",
        f"q′_{other}:after = q_{other}:before {cos} + q_i:before {sin}",
        f"θ_i:theta = {base}^{{− {{2 i}} / {settings.size}}}",
    ]
    topic.code = [
        excerpt(rotary, theta="frequencies"),
        excerpt(
            rotary,
            p="positions angles:positions",
            theta="angles:frequencies_of",
            cos="cosines",
            sin="sines",
        ),
        excerpt(
            rotary,
            before="first pair:first pair:second",
            after="pair",
            cos="pair:cosines",
            sin="pair:sines",
        ),
    ]
    _add_rotated(topic, half)


def _add_rotated(topic: Topic, half: int) -> None:
    found = rotated_pair(topic.run, topic.site, topic.head, topic.position)
    frequencies = frequencies_of(topic.config.rotary).double().numpy()
    angles = frequencies * topic.position
    pairs = range(min(HALF, half))
    features = [*pairs, *(half + at for at in pairs)]
    _add_position(topic)
    name = say("radians for each step of p, of each pair")
    topic.features("theta", "θ_i", name, "R / 2", frequencies, pairs)
    name = say("the cosines at p")
    topic.features("cos", "cos(p:p θ_i:theta)", name, "R / 2", np.cos(angles), pairs)
    name = say("the sines at p")
    topic.features("sin", "sin(p:p θ_i:theta)", name, "R / 2", np.sin(angles), pairs)
    axes, name = "B × H × Tq × D", say("the query before it is rotated")
    topic.features("before", "q", name, axes, found.q_before, features)
    before, after = (
        numeral(float(np.linalg.norm(one)), ".3f") for one in (found.q_before, found.q)
    )
    note = say(
        "A rotation keeps the length: {before} before, {after} after.", before=before, after=after
    )
    name = say("the query as it meets the keys")
    topic.features("after", "q′", name, axes, found.q, features, note=note)
