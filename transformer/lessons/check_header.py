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
    kind = next((name for name in CHECKS if name in header), None)
    if kind is None:
        raise ValueError(f"a check needs one of {', '.join(CHECKS)}")
    if kind == "run":
        return _output_check(header["run"])
    settings = {name: header[name] for name in CHECKS[kind] if name in header}
    arguments = {name: value for name, value in header.items() if name not in (kind, *settings)}
    if kind == "click":
        return _click(header["click"], settings, arguments)
    of, lists = header[kind], [name for name, value in arguments.items() if isinstance(value, list)]
    _check_arguments(of, arguments)
    if kind == "number":
        return NumberCheck(of=of, arguments=arguments, **settings)
    if len(lists) != (0 if settings else 1):
        raise ValueError(
            f"a choice has bounds, or one argument that is a list; got {shortened(arguments)}"
        )
    choice: dict[str, Any] = {"of": of, "arguments": arguments}
    if settings:
        n_options = len(settings["bounds"]) + 1
        return RangeCheck(**choice, **settings, n_options=n_options, is_ordered=True)
    n_options = len(arguments[lists[0]])
    return Best(kind="choose", **choice, free=(lists[0],), n_options=n_options, within=0)


def _click(what: Any, settings: dict[str, Any], arguments: dict[str, Any]) -> Check:
    check_choice("click", what, CLICKED)
    of, attention = settings.pop("of", None), settings.pop("kind", "decoder.self")
    check_choice("measure", of, MEASURES)
    free = CLICKED[what]
    if what == "token":
        missing = (name for name in MEASURES[of].arguments if name not in arguments)
        free = tuple(name for name in missing if name in ("token", "key"))
    _check_arguments(of, [*arguments, *free])
    site = str(arguments.get("site", ""))
    of_source = "key" in free and (site.endswith(".cross") or site.startswith("encoder"))
    return Best(
        kind=what, of=of, arguments=arguments, free=free, attention=attention,
        stack="encoder" if of_source else "own", **settings,
    )  # fmt: skip


def _output_check(header: Any) -> Check:
    own = fields(OutputCheck)[len(fields(Check)) :]
    allowed = {field.name: list if field.default == () else _type_of(field) for field in own}
    if not isinstance(header, dict) or not header:
        raise ValueError("run must be a table of what the run is to be")
    check_names("run", header, allowed)
    for name, value in header.items():
        if not isinstance(value, allowed[name]):
            raise ValueError(f"run takes {[*allowed]}; got {name} = {shortened(value)}")
    for number in (*header.get("numbers", ()), *header.get("intact", {}).get("numbers", ())):
        arguments = [name for name in number if name not in (*COMPARED, "of")]
        _check_arguments(number.get("of"), arguments)
    lists = {name: tuple(header.get(name, ())) for name in ("alters", "numbers")}
    return OutputCheck(**header | lists)


def _type_of(field: Field[Any]) -> type:
    return dict if field.default is MISSING else type(field.default)


def _check_arguments(name: Any, arguments: Collection[str]) -> None:
    """Raise ValueError unless a measure gets exactly its arguments."""
    check_choice("measure", name, MEASURES)
    wanted, got = sorted(MEASURES[name].arguments), sorted(arguments)
    if got != wanted:
        raise ValueError(f"{name} takes {wanted}; got {got}")
