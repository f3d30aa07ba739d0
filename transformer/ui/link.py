"""The state in a share link: what a run puts there, and how it is read back and checked.

A link is plain names and values as in a query string, or, where that gets long, one value `z`: the
same names and values as JSON, deflated, in base64url. It stands behind the "#" of the page's
address (of old: the "?"). Every field that there is is declared once: what makes a run and what the
page shows of it here, and what a view shows of it in the view. The page's scripts read them from
`fields_schema`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from transformer.checks import InvalidRequest, shortened
from transformer.messages import say
from transformer.ui.limits import (
    MAX_LINK_CHARACTERS,
    MAX_NAMES,
    MAX_STATE_BYTES,
    MAX_VIEW_CHARACTERS,
)
from transformer.views.declaration import tab_name, tabs
from transformer.views.drawing.style import dark_colours
from transformer.views.parameters import Choice, Int, Parameter, Text
from transformer.views.registry import VIEWS

# The page's settings in the order of its controls.
SETTINGS = (
    "method", "temperature", "top_k", "top_p", "beams", "penalty", "length", "seed",
)  # fmt: skip
REQUEST = ("model", "text", *SETTINGS, "forced_tokens", "alter")  # all that makes a run again
BATCH = ("lines",)
UNNAMED_TAB = "attention"  # of a link that names none: it was the first when there were such
_ON = {"1": ""}
# What a link says of the page itself; "tab" stands in `page_fields`.
_PAGE = (
    Text(name="site", use="place"),  # of the chosen head
    Int(name="head", default=0, use="place"),
    Text(name="read", use="place"),  # the chosen token: the last one that is read
    Text(name="more"),  # the open section
    Choice(name="projector", options=_ON, optional=True),
    Text(name="tour"),  # the card's number
    Text(name="lesson"),  # NAME.STEP
)
_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,18})?(e-?\d{1,3})?")


@dataclass(frozen=True, kw_only=True, slots=True)
class PageState:
    """What a link asks for; None or empty where it says nothing.

    settings: the page's controls by name. lines: the batch, one text a line. problems: a sentence
    for each part of the link that was left out.
    """

    model: str | None
    text: str | None
    settings: dict[str, Any]
    forced_tokens: list[int]
    interventions: list[Any]
    lines: str | None
    view: dict[str, str]
    problems: tuple[str, ...]

    @property
    def altered(self) -> dict[str, list[Any]]:
        """What is altered for its run."""
        return {"interventions": self.interventions, "forced_tokens": self.forced_tokens}

    @property
    def asks_for_a_run(self) -> bool:
        """Whether it wants another run than a model's stored one."""
        return self.text is not None or bool(
            self.settings or self.forced_tokens or self.interventions
        )


def read_link(query: Any) -> PageState:
    """The state that a query string holds. Raises ValueError if it cannot be read at all."""
    return read_state(pairs_of(query))


def read_state(state: Mapping[str, str]) -> PageState:
    """The same of its names and values.

    Numbers, texts and interventions are checked where they are used, as for any other request.
    """
    values: dict[str, Any] = {}
    view: dict[str, str] = {}
    problems = []
    shown = view_fields()
    for name, text in state.items():
        try:
            if name in shown:
                if len(text) > MAX_VIEW_CHARACTERS:
                    raise ValueError
                view[name] = _encodable(text)
            else:
                values[name] = _READERS[name](text)
        except (ValueError, KeyError, RecursionError):
            part = shortened(name)
            problems.append(say("The link's {part} is unknown or unreadable.", part=part))
    return PageState(
        model=values.get("model"),
        text=values.get("text"),
        settings={name: values[name] for name in SETTINGS if name in values},
        forced_tokens=values.get("forced_tokens", []),
        interventions=values.get("alter", []),
        lines=values.get("lines"),
        view=view,
        problems=tuple(problems),
    )


def view_fields() -> dict[str, Parameter]:
    """Every field of a link that says what the page shows of a run."""
    of_views = (view.controls() for view in VIEWS.values())
    return page_fields() | {name: field for each in of_views for name, field in each.items()}


def page_fields() -> dict[str, Parameter]:
    """Those of the page itself, in the order in which they are shown."""
    names = {tab_name(tab): tab for tab in tabs(VIEWS.values())}
    tab = Choice(name="tab", options=names, default=UNNAMED_TAB, use="place")
    return {one.name: one for one in (tab, *_PAGE)}


def fields_schema() -> dict[str, Any]:
    """A link's names and what the views declare, as plain values for the page's scripts."""
    return {
        "settings": SETTINGS, "request": REQUEST, "batch": BATCH,
        "page": {name: field.schema() for name, field in page_fields().items()},
        "views": [view.schema() for view in VIEWS.values()], "dark": dark_colours(),
    }  # fmt: skip


def read_typed(given: Any) -> dict[str, Any]:
    """The values of the page's settings and boxes, by name; unknown names are left out."""
    found: dict[str, Any] = {}
    for name in (*SETTINGS, "text", "lines") if isinstance(given, dict) else ():
        with contextlib.suppress(ValueError):
            found |= {name: _READERS[name](str(given[name]))} if name in given else {}
    return found


def pairs_of(query: Any) -> dict[str, str]:
    """Names and values of a link, the first of each name; the framework's are left out.

    Raises ValueError if they cannot be read.
    """
    if not isinstance(query, str):
        raise ValueError(f"a link must be a string; got {type(query).__name__}")
    if len(query) > MAX_LINK_CHARACTERS:
        raise InvalidRequest(
            "too_long",
            "a link must have at most {most} characters; got {got}",
            most=MAX_LINK_CHARACTERS,
            got=len(query),
        )
    pairs: dict[str, str] = {}
    for name, text in parse_qsl(query.removeprefix("?"), keep_blank_values=True):
        if not _is_foreign(name):
            pairs.setdefault(name, text)
    if "z" in pairs:
        pairs = _inflated(pairs.pop("z")) | pairs
    if len(pairs) > MAX_NAMES:
        raise _unreadable()
    return pairs


def _unreadable() -> InvalidRequest:
    return InvalidRequest("unreadable_link", "the link cannot be read; it may have been cut off")


def _is_foreign(name: str) -> bool:
    return name.startswith("__") or name in ("view", "embed")


def _inflated(packed: str) -> dict[str, str]:
    """The names and values of a `z`. Raises ValueError for anything else, however large."""
    try:
        deflated = base64.b64decode(packed + "=" * (-len(packed) % 4), b"-_", validate=True)
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        state = inflater.decompress(deflated, MAX_STATE_BYTES + 1)
        values = _json(state)
    except (zlib.error, ValueError, RecursionError) as error:
        raise _unreadable() from error
    is_read = inflater.eof and len(state) <= MAX_STATE_BYTES and isinstance(values, dict)
    if not is_read or not all(isinstance(v, str) for v in values.values()):
        raise _unreadable()
    if not all(map(_is_whole, values)):
        raise _unreadable()
    return {name: text for name, text in values.items() if not _is_foreign(name)}


def _json(text: str | bytes) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    return json.loads(text, parse_constant=refuse)


def _is_whole(text: str) -> bool:
    """Whether it has no half of a surrogate pair, as JSON may."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _encodable(text: str) -> str:
    if not _is_whole(text):
        raise ValueError(text)
    return text


def _number(text: str) -> int | float:
    if (
        not text.isascii()
        or not _NUMBER.fullmatch(text)
        or not math.isfinite(number := float(text))
    ):
        raise ValueError(text)
    return int(text) if text.lstrip("-").isdecimal() else number


def _ids(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdecimal() and len(part) <= 9 for part in parts):
        raise ValueError(text)
    return [int(part) for part in parts]


def _altered(text: str) -> list[Any]:
    values = _json(_encodable(text))
    if not isinstance(values, list):
        raise ValueError(text)
    return values


_READERS: dict[str, Callable[[str], Any]] = {
    "model": _encodable,
    "text": _encodable,
    "lines": _encodable,
    "forced_tokens": _ids,
    "alter": _altered,
    **dict.fromkeys(SETTINGS, _number),
    "method": _encodable,
}
