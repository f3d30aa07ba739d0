"""The topic of positions where they turn each head's queries and keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from transformer.messages import numeral, say
from transformer.model.rotary import SCALINGS, frequencies_of
from transformer.views.equations.mathml import Node, equal, frac, mi, mn, mo, of, row, sub, sup
from transformer.views.equations.shown import (
    FIRST,
    RenderContext,
    Topic,
    no_such,
    one,
    row_of,
    tensor,
)
from transformer.views.equations.source import Code
from transformer.views.rotary.rotary import Turned, turned

HALF = FIRST // 2


def place_of(look: RenderContext) -> dict[str, Any]:
    """Where the chosen token stands."""
    return tensor(
        "p", mi("p"), say("the position of {token}, counted from 0", token=look.label), [],
        **one(look.place),
    )  # fmt: skip


def rotation(look: RenderContext) -> Topic:
    """Nothing is added: each head turns its queries and keys."""
    nothing = say("No vector is added to a token in this model, so there is no position matrix.")
    if look.site.kind == "cross":
        return no_such(f"{nothing} " + say("Cross-attention turns nothing either."))
    found = turned(look.run, look.site, look.head, look.place)
    settings = look.config.rotary
    frequencies = frequencies_of(settings).double().numpy()
    scaled = SCALINGS[settings.scaling].does
    half, count = settings.size // 2, min(HALF, settings.size // 2)
    features = [*range(count), *(half + at for at in range(count))]
    angles = frequencies * look.place
    axes = [
        ("B", 1), ("H", look.config.n_heads), ("Tq", len(look.run.queries(look.site.stack))),
        ("D", len(found.q)),
    ]  # fmt: skip
    return Topic(
        says=[
            nothing,
            say(
                "Instead each head turns its queries and keys: features i and i + {half} are a "
                "point in a plane, which is turned by p times the pair's own angle.",
                half=half,
            ),
            *([say(scaled, factor=numeral(settings.factor, "g"))] if scaled else []),
        ],
        formula=_rotation(look),
        code=_code_of_rotation(),
        tensors=[
            place_of(look),
            tensor(
                "theta", sub(mi("θ"), mi("i")), say("radians for each step of p, of each pair"),
                [("R / 2", half)], **row_of(frequencies, range(count)),
            ),
            tensor("cos", of(mi("cos"), _angle()), say("the cosines at p"), [("R / 2", half)],
                   **row_of(np.cos(angles), range(count))),
            tensor("sin", of(mi("sin"), _angle()), say("the sines at p"), [("R / 2", half)],
                   **row_of(np.sin(angles), range(count))),
            tensor("before", mi("q"), say("the query before it is turned"), axes,
                   **row_of(found.q_before, features)),
            tensor("after", mi("q′"), say("the query as it meets the keys"), axes,
                   **row_of(found.q, features), note=_length(found)),
        ],
    )  # fmt: skip


def _length(found: Turned) -> str:
    before, after = (float(np.linalg.norm(one)) for one in (found.q_before, found.q))
    return say(
        "A rotation keeps the length: {before} before, {after} after.",
        before=numeral(before, ".3f"),
        after=numeral(after, ".3f"),
    )


def _angle() -> Node:
    return row(mi("p", "p"), sub(mi("θ"), mi("i"), "theta"))


def _rotation(look: RenderContext) -> list[Node]:
    settings = look.config.rotary
    half = row(mi("i"), mo("+"), mn(settings.size // 2))
    cos, sin = (row(of(mi(name), _angle()), part=name) for name in ("cos", "sin"))

    def before(index: Node) -> Node:
        return sub(mi("q"), index, "before")

    power = frac(row(mn(2), mi("i")), mn(settings.size))
    base = mn(numeral(settings.base, ",.0f"))
    return [
        equal(sub(mi("q′"), mi("i"), "after"), before(mi("i")), cos, mo("−"), before(half), sin),
        equal(sub(mi("q′"), half, "after"), before(half), cos, mo("+"), before(mi("i")), sin),
        equal(sub(mi("θ"), mi("i"), "theta"), sup(base, row(mo("−"), power))),
    ]


def _code_of_rotation() -> list[Code]:
    both = "first * cosines - second * sines, second * cosines + first * sines"
    return [
        Code(
            "model.rotary.frequencies_of",
            ("theta", "frequencies = «1.0 / settings.base**exponents»"),
        ),
        Code(
            "model.rotary.Rotation.__init__",
            ("p", "angles = «places[:, None]» *"),
            ("theta", "* «frequencies_of(settings)»"),
            ("cos", '"cosines", «angles.cos()»'),
            ("sin", '"sines", «angles.sin()»'),
        ),
        Code(
            "model.rotary.rotated",
            ("before", "«first, second, rest» = x.split"),
            ("before", "[«first» * cos"),
            ("cos", "[first * «cosines» -"),
            ("before", "- «second» * sines"),
            ("sin", "- second * «sines»,"),
            ("after", f"[«{both}», rest]"),
        ),
    ]
