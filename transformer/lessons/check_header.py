"""Read the check in a step's header, see `checks` and `output_check`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import MISSING, Field, fields
from typing import Any

from transformer.checks import check_choice, check_names, shortened
from transformer.lessons.checks import CLICKED, Best, Check, NumberCheck, RangeCheck
from transformer.lessons.measures import MEASURES
from transformer.lessons.output_check import COMPARED, OutputCheck

# What a check's header has besides its measure's arguments.
CHECKS = {
    "click": ("of", "least", "within", "kind"), "number": ("tolerance",), "choose": ("bounds",),
    "run": (),
}  # fmt: skip


def check_of(header: Any) -> Check:
    """The check in a step's header. Raises ValueError for an unknown one."""
    if not isinstance(header, dict):
        raise ValueError(f"check must be a table; got {shortened(header)}")
    kind = next((one for one in CHECKS if one in header), None)
    if kind is None:
        raise ValueError(f"a check needs one of {', '.join(CHECKS)}")
    if kind == "run":
        return _output_check(header["run"])
    settings = {name: header[name] for name in CHECKS[kind] if name in header}
    given = {name: one for name, one in header.items() if name not in (kind, *settings)}
    if kind == "click":
        return _click(header["click"], settings, given)
    of, lists = header[kind], [name for name, one in given.items() if isinstance(one, list)]
    _check_arguments(of, given)
    if kind == "number":
        return NumberCheck(of=of, arguments=given, **settings)
    if len(lists) != (0 if settings else 1):
        raise ValueError(
            f"a choice has bounds, or one argument that is a list; got {shortened(given)}"
        )
    choice: dict[str, Any] = {"of": of, "arguments": given}
    if settings:
        n_options = len(settings["bounds"]) + 1
        return RangeCheck(**choice, **settings, n_options=n_options, is_ordered=True)
    n_options = len(given[lists[0]])
    return Best(kind="choose", **choice, free=(lists[0],), n_options=n_options, within=0)


def _click(what: Any, settings: dict[str, Any], given: dict[str, Any]) -> Check:
    check_choice("click", what, CLICKED)
    of, attention = settings.pop("of", None), settings.pop("kind", "decoder.self")
    check_choice("measure", of, MEASURES)
    free = CLICKED[what]
    if what == "token":
        asked = (one for one in MEASURES[of].arguments if one not in given)
        free = tuple(one for one in asked if one in ("token", "key"))
    _check_arguments(of, [*given, *free])
    site = str(given.get("site", ""))
    of_source = "key" in free and (site.endswith(".cross") or site.startswith("encoder"))
    return Best(
        kind=what, of=of, arguments=given, free=free, attention=attention,
        stack="encoder" if of_source else "own", **settings,
    )  # fmt: skip


def _output_check(header: Any) -> Check:
    own = fields(OutputCheck)[len(fields(Check)) :]
    allowed = {one.name: list if one.default == () else _type_of(one) for one in own}
    if not isinstance(header, dict) or not header:
        raise ValueError("run must be a table of what the run is to be")
    check_names("run", header, allowed)
    for name, value in header.items():
        if not isinstance(value, allowed[name]):
            raise ValueError(f"run takes {[*allowed]}; got {name} = {shortened(value)}")
    for number in (*header.get("numbers", ()), *header.get("intact", {}).get("numbers", ())):
        given = [name for name in number if name not in (*COMPARED, "of")]
        _check_arguments(number.get("of"), given)
    lists = {name: tuple(header.get(name, ())) for name in ("alters", "numbers")}
    return OutputCheck(**header | lists)


def _type_of(field: Field[Any]) -> type:
    return dict if field.default is MISSING else type(field.default)


def _check_arguments(name: Any, given: Collection[str]) -> None:
    """Raise ValueError unless a measure gets exactly its arguments."""
    check_choice("measure", name, MEASURES)
    wanted, got = sorted(MEASURES[name].arguments), sorted(given)
    if got != wanted:
        raise ValueError(f"{name} takes {wanted}; got {got}")
