"""The topic of positions: how the network knows the position of a token."""

from __future__ import annotations

import numpy as np

from transformer.analysis.rotary import rotated_pair, rotates
from transformer.messages import numeral, say
from transformer.model.blocks import Embedding
from transformer.model.positions import POSITIONS, VectorFormula
from transformer.model.rotary import Rotation, apply_rotary, frequencies_of
from transformer.runs.head_data import array
from transformer.views.model.topic import FIRST, Code, HeadAtQuery, Topic

# Of an encoding that has no formula: its vector by a letter, and where it is added.
UNKNOWN = VectorFormula("{P_{p:p}}:position", (), ())


def positions(chosen: HeadAtQuery) -> Topic:
    """As the run's model has them: vectors added to tokens, or a rotation."""
    encoding, kind = POSITIONS[chosen.run.config.positions], chosen.site.kind
    says = chosen.says(
        *(["self"] if encoding.is_rotary else ["token_types", "positions", "norm_embeddings"])
    )
    if encoding.adds:
        return _added(chosen, says)
    if rotates(chosen.run, chosen.site):
        return _rotation(chosen, says)
    if encoding.is_rotary and kind == "cross":
        says.append(say("Cross-attention rotates nothing."))
    return Topic(says)


def _added(chosen: HeadAtQuery, says: list[str]) -> Topic:
    """The vector that its encoding adds to the token's, by the encoding's formula if it has one."""
    run, config, stack, row = chosen.run, chosen.run.config, chosen.site.stack, chosen.query
    vector, lines, steps, angles_of = POSITIONS[config.positions].formula or UNKNOWN
    scale, has_types = numeral(config.embedding_scale, "g"), config.n_token_types > 0
    token = f"{scale} " * (config.embedding_scale != 1) + "√C " * config.scale_embeddings + "e"
    made = "tokens" + " token=embedded/scale" * (token != "e") + " token=embedded/types" * has_types
    placed = "position=added p=added:positions"
    code: Code = [*steps, (Embedding.forward, f"sum=x/embedded token=embedded/{made} {placed}")]
    embedded, added = (
        array(rows[stack][0, row]) for rows in (run.trace.embed, run.trace.pos_embed)
    )
    angles = None if angles_of is None else angles_of(row, len(added))
    return Topic(
        says=says,
        formula=[
            *lines,
            f"x:sum = {{{token}{' + e′' * has_types}}}:token + {vector}",
            *["x′ = N(x)"] * config.norm_embeddings,
        ],
        code=code,
        numbers=dict(p=row, angle=angles, position=added, token=embedded, sum=embedded + added),
        agrees=np.allclose(array(run.position_matrices[stack][row]), added, atol=1e-5),
    )


def _rotation(chosen: HeadAtQuery, says: list[str]) -> Topic:
    """Nothing is added: each head rotates its queries and keys."""
    settings = chosen.run.config.rotary_of(chosen.site.layer)
    assert settings is not None
    half = settings.size // 2
    base, other = numeral(settings.base, ",.0f"), f"{{i + {half}}}"
    longer = settings.multiplier
    length = f"{numeral(longer, '.6g')} " * (longer != 1)
    cos, sin = (f"{{{length}{wave}(p:p θ_i:theta)}}:{wave}" for wave in ("cos", "sin"))
    slower = {"none": "", "dynamic": "", "linear": f" / {numeral(settings.factor, 'g')}"}
    found = rotated_pair(chosen.run, chosen.site, chosen.head, chosen.query)
    theta = frequencies_of(settings).double().numpy()
    angles, pairs = theta * chosen.query, range(min(FIRST // 2, half))
    numbers = dict(
        p=chosen.query, theta=theta, cos=longer * np.cos(angles), sin=longer * np.sin(angles)
    )
    parts = "before=first before=pair:first before=pair:second cos=pair:cosines sin=pair:sines"
    return Topic(
        says=says,
        formula=[
            f"q′_i:after = q_i:before {cos} − q_{other}:before {sin}",
            f"q′_{other}:after = q_{other}:before {cos} + q_i:before {sin}",
            f"θ_i:theta = {base}^{{− {{2 i}} / {settings.size}}}"
            + slower.get(settings.scaling, " / f_i"),
        ],
        code=[
            (frequencies_of, "theta=frequencies"),
            (
                Rotation.__init__,
                "p=positions p=angles:positions theta=angles:frequencies_of cos sin",
            ),
            (apply_rotary, f"after=pair {parts}"),
        ],
        numbers=numbers | dict(before=found.q_before, after=found.q),
        shown=[("D", [*pairs, *(half + pair for pair in pairs)])],
    )
