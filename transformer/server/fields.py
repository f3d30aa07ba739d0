"""The fields of the page's state: what makes a run, and what the page and each view show of it.

Each field is declared once: the page's own here, a view's in the view. The page's scripts read them
from `fields_schema`, and alone write and read a link (`web/link_text.js`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from transformer.messages import mark
from transformer.views.declaration import tab_name, tabs
from transformer.views.drawing.style import dark_colours
from transformer.views.parameters import SELECTION, Choice, Parameter, Text
from transformer.views.registry import VIEWS

GREEDY, SAMPLE, BEAM = "greedy", "sample", "beam"
METHODS = {
    GREEDY: mark("greedy: always the likeliest"),
    SAMPLE: mark("sample"),
    BEAM: mark("beam search"),
}


class Setting(NamedTuple):
    """A number among the page's settings: what the page calls it, its first value, its name in a
    `Request`, and the value that is None there."""

    title: str
    first: float
    name: str
    off: float | None = None


NUMBERS = {
    "temperature": Setting(mark("Temperature (0 = greedy)"), 0.7, "temperature"),
    "top_k": Setting(mark("Top-k (0 = off)"), 40, "top_k", off=0),
    "top_p": Setting(mark("Top-p (1 = off)"), 1, "top_p", off=1),
    "beams": Setting(mark("Beams"), 4, "beams"),
    "penalty": Setting(mark("Length penalty"), 1, "length_penalty"),
    "length": Setting(mark("New tokens"), 40, "max_new_tokens"),
    "seed": Setting(mark("Seed"), 3, "seed"),
}
# The numbers that each method reads.
READ = {
    GREEDY: ("length",),
    SAMPLE: ("length", "temperature", "top_k", "top_p", "seed"),
    BEAM: ("length", "beams", "penalty"),
}
LANGUAGES = ("source_language", "target_language")  # settings of a translator of several
SETTINGS = ("method", *NUMBERS, *LANGUAGES)
# What is changed in a run's network, with its name in a `Request`.
CHANGES = {"alter": "interventions", "forced_tokens": "forced_tokens"}
# What makes a run, by name in a link, and the type of each value there.
REQUEST = {name: "number" if name in NUMBERS else "text" for name in ("model", "text", *SETTINGS)}
REQUEST |= {"alter": "list", "forced_tokens": "intlist"}
_ON = {"1": ""}
# "tab" is declared in `page_fields`.
_PAGE = (
    *SELECTION,
    Text(name="more"),  # the open section
    Choice(name="projector", options=_ON, optional=True),
    Text(name="tour"),  # the card's number
    Text(name="lesson"),  # NAME.STEP
)


def view_fields() -> dict[str, Parameter]:
    """Every field that says what the page shows of a run."""
    of_views = (view.controls() for view in VIEWS.values())
    return page_fields() | {name: field for each in of_views for name, field in each.items()}


def page_fields() -> dict[str, Parameter]:
    """The fields of the page itself, in the order in which they are shown."""
    names = {tab_name(tab): tab for tab in tabs(VIEWS.values())}
    tab = Choice(name="tab", options=names, default=next(iter(names)), use="place")
    return {one.name: one for one in (tab, *_PAGE)}


def fields_schema() -> dict[str, Any]:
    """The fields and what the views declare, as plain values for the page's scripts."""
    return {
        "request": REQUEST,
        "settings": SETTINGS,
        "page": {name: field.schema() for name, field in page_fields().items()},
        "views": [view.schema() for view in VIEWS.values()],
        "dark": dark_colours(),
    }
