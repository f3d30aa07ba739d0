"""The fields of the page's state: what makes a run, and what the page and each view show of it.

Each field is declared once: the page's own here, a view's in the view. The page's scripts read them
from `fields_schema`, and alone write and read a link (`web/link_text.js`).
"""

from __future__ import annotations

from typing import Any

from transformer.views.declaration import tab_name, tabs
from transformer.views.drawing.style import dark_colours
from transformer.views.parameters import SELECTION, Choice, Parameter, Text
from transformer.views.registry import VIEWS

LANGUAGES = ("source_language", "target_language")  # settings of a translator of several
# The page's settings in the order of its controls.
SETTINGS = (
    "method", "temperature", "top_k", "top_p", "beams", "penalty", "length", "seed", *LANGUAGES,
)  # fmt: skip
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
        "settings": SETTINGS,
        "page": {name: field.schema() for name, field in page_fields().items()},
        "views": [view.schema() for view in VIEWS.values()],
        "dark": dark_colours(),
    }
