"""A check as numbers: every answer's own, so that a page without the network grades as Python does.

    stored(check, ground)  # {"kind": "head", "values": {"decoder.5.self": [0.1, …], …}, …}

What is right is not among them: `views/export/static/grading.js` finds it by the same rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from transformer.lessons.checks import Check, Choose, Click, Number, worded
from transformer.lessons.quantities import OF_A_BATCH, QUANTITIES, Ground, of
from transformer.messages import say


def stored(check: Check, ground: Ground) -> dict[str, Any] | None:
    """What grades it; None where only the network can, or where it is about a batch."""
    if isinstance(check, Click | Number | Choose) and check.of in OF_A_BATCH:
        return None
    if isinstance(check, Click):
        return _click(check, ground)
    if isinstance(check, Number):
        return _of(check) | {
            "value": of(ground, check.of, check.arguments), "tolerance": check.tolerance,
        }  # fmt: skip
    if isinstance(check, Choose):
        values = [of(ground, check.of, one) for one in check.measured()]
        return _of(check) | {"values": values, "bounds": list(check.bounds)}
    return None


def _of(check: Click | Number | Choose) -> dict[str, Any]:
    return {"kind": check.kind, "quantity": worded(check.of)}


def _click(check: Click, ground: Ground) -> dict[str, Any]:
    quantity = QUANTITIES[check.of]
    found = _of(check) | {
        "least": check.least, "within": check.within, "stack": check.stack,
        "yes": say(quantity.yes) if quantity.yes else "",
        "no": say(quantity.no) if quantity.no else "",
    }  # fmt: skip
    each: dict[str, Callable[[Click, Ground], dict[str, Any]]] = {
        "head": _heads, "token": _tokens, "cell": _cells,
    }  # fmt: skip
    return found | each[check.kind](check, ground)


def _heads(check: Click, ground: Ground) -> dict[str, Any]:
    """values: of each place, one a head; none where its heads have no such number."""
    values = {}
    for site in ground.run.trace.sites:
        n_heads = ground.run.trace[site].weights.shape[1]
        answers = [{"site": str(site), "head": head} for head in range(n_heads)]
        found = [_value(check, ground, one) for one in answers]
        if None not in found:
            values[str(site)] = found
    return {
        "among": str(check.arguments.get("kind", "decoder.self")), "name": check.of,
        "values": values,
    }  # fmt: skip


def _tokens(check: Click, ground: Ground) -> dict[str, Any]:
    """values: one a token, null where it has none; first: the first that can be right."""
    places = [one["token"] for one in check.answers(ground)]
    values = [_value(check, ground, {"token": place}) for place in range(places[-1] + 1)]
    return {"first": places[0], "values": values, "name": "key" if "key" in check.free else "token"}


def _cells(check: Click, ground: Ground) -> dict[str, Any]:
    """values: rows of the picture of one place."""
    site = str(check.arguments["site"])
    record = ground.run.trace[site]
    own = record.site.stack == "decoder" or ground.run.config.family == "encoder"
    first = ground.run.trace_start if own else 0
    n_queries, n_keys = record.weights.shape[2:]
    values = [
        [check.value(ground, {"query": first + row, "key": key}) for key in range(n_keys)]
        for row in range(n_queries)
    ]
    return {"site": site, "values": values}


def _value(check: Click, ground: Ground, answer: dict[str, Any]) -> float | None:
    try:
        return check.value(ground, answer)
    except ValueError:
        return None
