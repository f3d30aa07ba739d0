"""The topic of positions: what tells the network where a token stands."""

from __future__ import annotations

import numpy as np

from transformer.messages import numeral, say
from transformer.runs.head_data import array
from transformer.views.equations.mathml import (
    Node,
    equal,
    frac,
    mi,
    mn,
    mo,
    of,
    root,
    row,
    sub,
    sup,
)
from transformer.views.equations.rotation import HALF, place_of, rotation
from transformer.views.equations.shown import FIRST, RenderContext, Topic, altered, row_of, tensor
from transformer.views.equations.source import Code


def positions(look: RenderContext) -> Topic:
    """As the run's model has them: waves, a trained table, or a rotation of queries and keys."""
    kind = look.config.positions
    if kind == "rotary":
        return rotation(look)
    topic = _learned(look) if kind == "learned" else _waves(look, halves=kind.endswith("halves"))
    _add_to_token(look, topic)
    return topic


def _waves(look: RenderContext, *, halves: bool) -> Topic:
    """Sines and cosines. halves: all sines first."""
    size = look.config.d_model
    angle = frac(mi("p", "p"), sup(mn(10000), frac(row(mn(2), mi("i")), mi("C"))))
    even = mi("i") if halves else row(mn(2), mi("i"))
    odd = row(frac(mi("C"), mn(2)), mo("+"), mi("i")) if halves else row(even, mo("+"), mn(1))
    angles = look.place / 10_000.0 ** (np.arange(0, size, 2) / size)
    made = "return torch.cat([«angle.sin(), angle.cos()»]"
    waves = [made] if halves else ["0::2] = «angle.sin()»", "1::2] = «angle.cos()»"]
    says = say(
        "This model adds waves that were never trained: each pair of features has a sine and a "
        "cosine of its own wavelength, and their values at p are the position's vector."
    )
    return Topic(
        says=[says],
        formula=[
            equal(_wave(even), of(mi("sin"), row(angle, part="angle"))),
            equal(_wave(odd), of(mi("cos"), row(angle, part="angle"))),
        ],
        code=[
            Code(
                "model.positions.sinusoidal_matrix",
                ("p", "position = «torch.arange(max_len, dtype=torch.float64)[:, None]»"),
                ("angle", "= «position * torch.exp(-math.log(10_000.0) * pair / d_model)»"),
                ("p", "= «position» * torch"),
                *(("position", wave) for wave in waves),
            )
        ],
        tensors=[
            place_of(look),
            tensor(
                "angle", angle, say("the angles of the first pairs of features, in radians"),
                [("C / 2", size // 2)], **row_of(angles, range(min(HALF, size // 2))),
                note=say("Pair 0 turns quickest; each next one turns slower."),
            ),
        ],
    )  # fmt: skip


def _learned(look: RenderContext) -> Topic:
    """A row of a table that was trained."""
    return Topic(
        says=[
            say(
                "This model has a trained vector for each of its {max_len} positions: a row of a "
                "table, looked up.",
                max_len=numeral(look.config.max_len_of(look.site.stack)),
            )
        ],
        formula=[
            equal(
                sub(mi("P"), mi("p", "p"), "position"), mi("table"), mo("["), mi("p", "p"), mo("]")
            )
        ],
        code=[
            Code(
                "model.positions.LearnedPositions.forward",
                ("position", "return «self.table(positions)»"),
                ("p", "self.table(«positions»)"),
            )
        ],
        tensors=[place_of(look)],
    )


def _add_to_token(look: RenderContext, topic: Topic) -> None:
    """The sum that every added encoding ends in."""
    run, config, stack = look.run, look.config, look.site.stack
    embedded, added = (
        array(rows[stack][0, look.place]) for rows in (run.trace.embed, run.trace.pos_embed)
    )
    axes = [("B", 1), ("T", len(run.queries(stack))), ("C", config.d_model)]
    learned = config.positions == "learned"
    symbol = sub(mi("P" if learned else "PE"), mi("p"))
    token = row(mi("e"), part="token")
    scale = row(root(mi("C")), mi("e")) if config.scale_embeddings else mi("e")
    waves = sub(mi("P" if learned else "PE"), mi("p"), "position")
    topic.formula.append(equal(mi("x", "sum"), row(scale, part="token"), mo("+"), waves))
    topic.code.append(
        Code(
            "model.stacks.Embedding.forward",
            ("token", "embedded = «self.tokens(ids)»"),
            *([("token", "embedded = «embedded * self.scale»")] if config.scale_embeddings else []),
            ("position", "added = «self.positions(positions)»"),
            ("sum", 'x = «embedded + context.at("pos_embed", here, added, embed=embedded)»'),
        )
    )
    says = say("the token's own vector")
    if config.scale_embeddings:
        says = say("the token's own vector, times the root of d_model as the paper has it")
    topic.tensors += [
        tensor(
            "position", symbol, say("the vector of its position"), [axes[1], axes[2]],
            **row_of(added, _shown(look)),
        ),
        tensor("token", token, says, axes, **row_of(embedded, _shown(look))),
        tensor(
            "sum", mi("x"), say("their sum, which enters the first layer"), axes,
            **row_of(embedded + added, _shown(look)),
            note=say("This model then norms the sum.") if config.norm_embeddings else "",
        ),
    ]  # fmt: skip
    known = array(run.position_matrices[stack][look.place])
    if not np.allclose(known, added, atol=1e-5):
        topic.says.append(altered())


def _shown(look: RenderContext) -> list[int]:
    """Features: with halves, the sines and the cosines of the first pairs."""
    size = look.config.d_model
    if not look.config.positions.endswith("halves"):
        return list(range(min(FIRST, size)))
    pairs = range(min(HALF, size // 2))
    return [*pairs, *(size // 2 + at for at in pairs)]


def _wave(index: Node) -> Node:
    return sub(mi("PE"), row(mi("p", "p"), mo(","), index), "position")
