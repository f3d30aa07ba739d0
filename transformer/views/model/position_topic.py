"""The topic of positions: how the network knows the position of a token."""

from __future__ import annotations

import numpy as np

from transformer.analysis.rotary import rotated_pair, rotates
from transformer.messages import say
from transformer.model.blocks import Embedding
from transformer.model.positions import POSITIONS
from transformer.model.rotary import Rotation, apply_rotary, frequencies_of
from transformer.runs.head_data import array
from transformer.views.model.formulas import (
    UNKNOWN,
    embedded_token,
    of_added_positions,
    of_rotation,
)
from transformer.views.model.topic import N_NUMBERS, Code, HeadAtQuery, Topic


def positions(chosen: HeadAtQuery) -> Topic:
    """As the run's model has them: vectors added to tokens, or a rotation."""
    encoding, kind = POSITIONS[chosen.run.config.positions], chosen.site.kind
    says = chosen.does(
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
    _, _, steps, angles_of = POSITIONS[config.positions].formula or UNKNOWN
    token, has_types = embedded_token(config), config.n_token_types > 0
    made = "tokens" + " token=embedded/scale" * (token != "e") + " token=embedded/types" * has_types
    placed = "position=added p=added:positions"
    code: Code = [*steps, (Embedding.forward, f"sum=x/embedded token=embedded/{made} {placed}")]
    embedded, added = (
        array(rows[stack][0, row]) for rows in (run.trace.embed, run.trace.pos_embed)
    )
    angles = None if angles_of is None else angles_of(row, len(added))
    return Topic(
        says=says,
        formula=of_added_positions(config),
        code=code,
        numbers=dict(p=row, angle=angles, position=added, token=embedded, sum=embedded + added),
        agrees=np.allclose(array(run.position_matrices[stack][row]), added, atol=1e-5),
    )


def _rotation(chosen: HeadAtQuery, says: list[str]) -> Topic:
    """Nothing is added: each head rotates its queries and keys."""
    settings = chosen.run.config.rotary_of(chosen.site.layer)
    assert settings is not None
    half = settings.size // 2
    longer = settings.multiplier
    vectors = rotated_pair(chosen.run, chosen.site, chosen.head, chosen.query)
    theta = frequencies_of(settings).double().numpy()
    angles, pairs = theta * chosen.query, range(min(N_NUMBERS // 2, half))
    numbers = dict(
        p=chosen.query, theta=theta, cos=longer * np.cos(angles), sin=longer * np.sin(angles)
    )
    parts = "before=first before=pair:first before=pair:second cos=pair:cosines sin=pair:sines"
    return Topic(
        says=says,
        formula=of_rotation(settings),
        code=[
            (frequencies_of, "theta=frequencies"),
            (
                Rotation.__init__,
                "p=positions p=angles:positions theta=angles:frequencies_of cos sin",
            ),
            (apply_rotary, f"after=pair {parts}"),
        ],
        numbers=numbers | dict(before=vectors.q_before, after=vectors.q),
        shown=[("D", [*pairs, *(half + pair for pair in pairs)])],
    )
