"""The check of a step, from the header of its text file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformer.lessons.checks import CLICKED, Check, Choose, Click, Number
from transformer.lessons.quantities import QUANTITIES
from transformer.lessons.said import Said
from transformer.messages import invalid

KINDS = ("click", "number", "choose", "run")


def check_of(given: Any) -> Check:
    """The check of a step's header. Raises ValueError for one that is not known."""
    if not isinstance(given, dict):
        raise invalid("check must be a table; got {got}", got=repr(given))
    given = dict(given)
    kind = next((one for one in KINDS if one in given), None)
    if kind is None:
        raise invalid("a check needs one of {allowed}", allowed=", ".join(KINDS))
    value = given.pop(kind)
    if kind == "run":
        return _said(value)
    if kind == "click":
        return _click(value, given)
    own = "tolerance" if kind == "number" else "bounds"
    extra = {own: given.pop(own)} if own in given else {}
    _measured(value, given, ())
    if kind == "number":
        return Number(of=value, arguments=given, **extra)
    lists = [name for name, one in given.items() if isinstance(one, list)]
    if len(lists) != (0 if extra else 1):
        raise invalid(
            "a choice has bounds, or one argument that is a list; got {got}", got=repr(given)
        )
    return Choose(of=value, arguments=given, bounds=tuple(extra.get("bounds", ())))


def _click(what: Any, given: dict[str, Any]) -> Click:
    if what not in CLICKED:
        raise invalid(
            "click must be one of {allowed}; got {got}", allowed=", ".join(CLICKED), got=repr(what)
        )
    name = given.pop("of", None)
    more = {key: given.pop(key) for key in ("least", "within") if key in given}
    wanted = [one for one in _arguments(name) if one not in given]
    free = CLICKED[what] if what != "token" else tuple(
        one for one in wanted if one in ("token", "key")
    )  # fmt: skip
    kept = {key: value for key, value in given.items() if key != "kind" or what != "head"}
    _measured(name, kept, free)
    return Click(kind=what, of=name, arguments=given, free=free, **more)


def _said(given: Any) -> Said:
    allowed = {
        "has": str, "lacks": str, "text": str, "alters": list, "forced": bool, "changed": bool,
        "method": str, "model": str,
    }  # fmt: skip
    if not isinstance(given, dict) or not given:
        raise invalid("run must be a table of what the run is to be")
    for name, value in given.items():
        if name not in allowed or not isinstance(value, allowed[name]):
            raise invalid(
                "run takes {allowed}; got {got}",
                allowed=", ".join(allowed),
                got=f"{name} = {value!r}",
            )
    return Said(**given | {"alters": tuple(given.get("alters", ()))})


def _arguments(name: Any) -> tuple[str, ...]:
    if name not in QUANTITIES:
        raise invalid(
            "a quantity is one of {allowed}; got {got}",
            allowed=", ".join(QUANTITIES),
            got=repr(name),
        )
    return QUANTITIES[name].arguments


def _measured(name: Any, given: Mapping[str, Any], free: tuple[str, ...]) -> None:
    """Raise ValueError unless the quantity gets what it takes, and nothing else."""
    wanted = set(_arguments(name))
    if sorted([*given, *free]) != sorted(wanted):
        raise invalid(
            "{name} takes {wanted}; got {got}",
            name=name,
            wanted=", ".join(sorted(wanted)),
            got=", ".join(sorted([*given, *free])),
        )
