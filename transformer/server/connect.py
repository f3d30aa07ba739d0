"""What the page's buttons, boxes and list of models call in its scripts, and what a model brings
with it: its stored example, and the words of the controls.

controls: everything on the page that is read or changed, by name; a setting's is that of a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gradio as gr

from transformer.messages import say
from transformer.server.components import calling, giving
from transformer.server.errors import public_error
from transformer.server.examples import (
    METHODS,
    SAMPLE,
    Example,
    example_of,
    is_offered,
    temperature_of,
)
from transformer.server.fields import LANGUAGES, SETTINGS
from transformer.server.page_data import (
    example_facts,
    headline,
    model_card,
    settings_table,
)
from transformer.server.service import Service

Controls = Mapping[str, Any]
# Those whose values the page's script knows, see web/store.js.
KEPT = ("model", "text", "lines", *SETTINGS)
# What scripts set, the chips besides.
SHOWN = (
    "model", "headline", "card", "table", "lines", *SETTINGS, "text", "start",
    "stop",
)  # fmt: skip
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
EACH: dict[str, Any] = PRIVATE | {"trigger_mode": "multiple"}


def connect_buttons(controls: Controls) -> None:
    """What generates: Enter and the button; what stops it; and what reads the batch, with its
    padding mask or without."""
    for triggers, call in (
        ([controls["text"].submit, controls["start"].click], "generate()"),
        ([controls["stop"].click], "stop()"),
        ([controls["show"].click], "readBatch()"),
        ([controls["bare"].click], "toggleMask()"),
    ):
        gr.on(triggers, None, None, None, js=calling("server/static/presses.js", call), **PRIVATE)


def connect_state(controls: Controls) -> None:
    """Send the page's script each control's changes, and set the controls that it changes.

    Gradio 6.31 reports a change of the model also where the list was left without a choice.
    """
    module = "server/static/gradio.js"
    for name in KEPT:
        told = calling(module, f"controlChanged({name!r}, value)", "value")
        controls[name].change(None, controls[name], None, js=told, **EACH)
    choose = calling("server/static/link.js", "chooseModel(model)", "model")
    controls["model"].input(None, controls["model"], None, js=choose, **PRIVATE)
    header = controls["share"]  # the component whose event carries what is set
    names = [*SHOWN, *(name for name in controls if name.startswith("chip "))]
    outputs = [controls[name] for name in names]
    setting = header.input(
        None, header, outputs, js=giving(module, f"outputsOf(changes, {names})", "changes"), **EACH
    )
    setting.then(None, None, None, js=calling(module, "controlsSet()"), **EACH)


def example_page(
    service: Service, visitor: str, asked: Any, typed: Mapping[str, Any]
) -> dict[str, Any]:
    """A model's stored run and batch, with what the page's controls say of the model; the first
    model's where the one asked for cannot be had, which is among its problems.

    typed: what is in the page's boxes; "own": those of them that are the visitor's own texts.
    """
    name, problems = next(iter(service.models)), []
    try:
        name = service.model(name if asked is None else asked, visitor).name
    except ValueError as error:
        problems.append(public_error(error)["detail"])
    models = [*service.models.values(), *(own.model for own in service.own.of(visitor))]
    example, (run, batch) = example_of(service.model(name)), example_facts(service, name)
    return {
        "run": run,
        "batch": batch,
        "text": example.text,
        "lines": "\n".join(example.batch),
        "methods": example.methods,
        "languages": {name: example.settings.get(name) for name in LANGUAGES},
        "temperature": temperature_of(SAMPLE),
        "length": example.settings["max_new_tokens"],
        "lengths": [example_of(one).settings["max_new_tokens"] for one in service.models.values()],
        "own": {box: text for box, text in typed.items() if not is_offered(text, models)},
        "controls": _furnished(service, visitor, name, example),
        "problems": problems,
    }


def _furnished(service: Service, visitor: str, name: str, example: Example) -> dict[str, Any]:
    """The words of Gradio's controls that belong to a model, by the control's name."""
    model = service.model(name)
    chips = {f"chip {place}": updated(value=text) for place, text in enumerate(example.suggestions)}
    methods = [(say(METHODS[method]), method) for method in example.methods]
    languages = updated(choices=[(name, name) for name in example.languages])
    return chips | {
        "model": updated(choices=service.names(visitor), value=name),
        "method": updated(choices=methods),
        **dict.fromkeys(LANGUAGES, languages),
        "headline": updated(value=headline(model)),
        "card": updated(value=model_card(model)),
        "table": updated(value=settings_table(model)),
        "text": updated(label=say(example.label)),
        "start": updated(value=say(example.action)),
    }


def updated(**properties: Any) -> dict[str, Any]:
    """An update of a control, as Gradio's page reads it."""
    return {"__type__": "update", **properties}
