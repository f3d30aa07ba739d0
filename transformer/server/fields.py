"""The fields of the page's state: what makes a run, and what the page and each view show of it.

Each field is declared once: the page's own here, a view's in the view. The page's scripts read them
from `fields_schema`, and alone write and read a link (`web/link_text.js`). tour.toml holds states
in these fields: of the tour's cards, and how each model's page opens; other cards need no code.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from transformer.checks import InvalidRequest, check_choice, check_names
from transformer.messages import mark
from transformer.model.config import ModelConfig
from transformer.runs.request import request_to_dict
from transformer.runs.run import Run
from transformer.views.declaration import tab_name, tabs
from transformer.views.drawing.style import dark_colours
from transformer.views.parameters import SELECTION, Choice, Parameter, Text
from transformer.views.registry import VIEWS

TOUR = Path(__file__).parent / "tour.toml"
GREEDY, SAMPLE, BEAM = "greedy", "sample", "beam"
METHODS = {
    GREEDY: mark("greedy: always the likeliest"),
    SAMPLE: mark("sample"),
    BEAM: mark("beam search"),
}


class Setting(NamedTuple):
    """A number among the page's settings: what the page calls it, its first value, and the value
    that is None in a `Request`."""

    title: str
    first: float
    off: float | None = None


NUMBERS = {
    "temperature": Setting(mark("Temperature (0 = greedy)"), 0.7),
    "top_k": Setting(mark("Top-k (0 = off)"), 40, off=0),
    "top_p": Setting(mark("Top-p (1 = off)"), 1, off=1),
    "beams": Setting(mark("Beams"), 4),
    "length_penalty": Setting(mark("Length penalty"), 1),
    "max_new_tokens": Setting(mark("New tokens"), 40),
    "seed": Setting(mark("Seed"), 3),
}
# What the page calls the settings, which a request's own sentences begin with.
WORDS = {name: setting.title for name, setting in NUMBERS.items()}
# The numbers that each method reads.
SETTINGS_OF_METHOD = {
    GREEDY: ("max_new_tokens",),
    SAMPLE: ("max_new_tokens", "temperature", "top_k", "top_p", "seed"),
    BEAM: ("max_new_tokens", "beams", "length_penalty"),
}
LANGUAGES = ("source_language", "target_language")  # settings of a translator of several
TEXT, CHAT = "text", "chat"
# What a model with a chat template takes the typed text for.
READ_AS = {TEXT: mark("a text to go on with"), CHAT: mark("a message to answer")}
SETTINGS = ("method", *NUMBERS, *LANGUAGES, "read_as")
# What is changed in a run's network.
CHANGES = ("interventions", "forced_tokens")
# What makes a run, by name in a link, and the type of each value there.
REQUEST = {name: "number" if name in NUMBERS else "text" for name in ("model", "text", *SETTINGS)}
REQUEST |= {"interventions": "list", "forced_tokens": "intlist"}
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
    tab = Choice(name="tab", options=names, default=next(iter(names)))
    return {field.name: field for field in (tab, *_PAGE)}


def fields_schema() -> dict[str, Any]:
    """The fields and what the views declare, as plain values for the page's scripts."""
    return {
        "request": REQUEST,
        "settings": SETTINGS,
        "page": {name: field.schema() for name, field in page_fields().items()},
        "views": [view.schema() for view in VIEWS.values()],
        "dark": dark_colours(),
    }


# ---- a run's request ----


def settings_of(request: Mapping[str, Any], method: str = GREEDY) -> dict[str, Any]:
    """The settings of a run's request, as `Service.stream` takes them.

    method: where the request names none. An altered network does not search: a beam search becomes
    greedy. Raises ValueError for an unknown method and for other names; the rest is checked by the
    `Request` itself.
    """
    check_names("a request", request, REQUEST)
    method = request.get("method", method)
    check_choice("method", method, METHODS)
    settings = {name: request[name] for name in CHANGES if request.get(name)}
    if method == BEAM and settings:
        method = GREEDY
    for name in SETTINGS_OF_METHOD[method]:
        _, first, off = NUMBERS[name]
        value = request.get(name, first)
        if value is None:
            raise InvalidRequest("no_number", "{name} is empty: give a number", name=name)
        settings[name] = None if value == off else value
    if request.get("read_as") is not None:
        check_choice("read_as", request["read_as"], READ_AS)
    names = (*LANGUAGES, "read_as")
    return settings | {name: request[name] for name in names if request.get(name) is not None}


def request_of_run(run: Run, *, chats: bool = False) -> dict[str, Any]:
    """The request whose run this is; if it was stopped early, for as many tokens as it has. chats:
    whether its model has a chat template."""
    request = run.reproducing_request
    fields: dict[str, Any] = {"model": run.model, "text": request.text}
    if not run.config.generates:
        return fields
    sampling = request.sampling
    if chats:
        fields["read_as"] = CHAT if request.input_ids else TEXT
    fields["method"] = BEAM if request.beams > 1 else GREEDY if sampling is None else SAMPLE
    for name in SETTINGS_OF_METHOD[fields["method"]]:
        value = getattr(sampling if name == "temperature" else request, name)
        fields[name] = NUMBERS[name].off if value is None else value
    values = request_to_dict(request, defaults=False)
    names = (*CHANGES, *LANGUAGES)
    return fields | {name: values[name] for name in names if name in values}


# ---- the tour ----


@cache
def read_tour() -> dict[str, Any]:
    """The file: {"card": every card, "opens": by model}."""
    return tomllib.loads(TOUR.read_text(encoding="utf-8"))


def cards(models: Iterable[str]) -> list[dict[str, Any]]:
    """The cards about these models."""
    offered = set(models)
    return [card for card in read_tour()["card"] if card["state"]["model"] in offered]


def opening_of(name: str, config: ModelConfig) -> dict[str, Any]:
    """A model's own example, and how the page first shows it and other runs of the model.

    For one that the file does not name a translator's cross-attention, whatever is first of others.
    """
    usual = {"site": "decoder.0.cross"} if config.family == "encoder-decoder" else {}
    return dict(read_tour()["opens"].get(name, usual))


def shown_first(name: str, config: ModelConfig, *, example: bool = False) -> dict[str, Any]:
    """The fields of `opening_of` that say how a run is shown. example: for the model's own example,
    with its chosen token."""
    elsewhere = (*REQUEST, *(() if example else ("read",)))
    return {k: v for k, v in opening_of(name, config).items() if k not in elsewhere}
