"""Another model on the page: its words, and the controls that suit it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gradio as gr

from transformer.inference.model import Model
from transformer.messages import say
from transformer.ui.components import calling
from transformer.ui.examples import METHODS, example_of
from transformer.ui.link import SETTINGS
from transformer.ui.page_data import headline, model_card, settings_table

CHOSEN = ("model", "text", "lines")
Changes = dict[str, Any]  # what changes on the page, by the control's name


def controls_of(
    model: gr.Dropdown,
    headline_text: gr.Markdown,
    left: Mapping[str, Any],
    right: Mapping[str, Any],
) -> dict[str, Any]:
    """The page's controls by name, the settings with the names that they have in a link."""
    return {
        "model": model, "headline": headline_text,
        **{name: right[name] for name in ("card", "table", "lines", "masks")},
        **{f"chip {place}": chip for place, chip in enumerate(left["chips"])},
        **dict(zip(SETTINGS, left["settings"], strict=True)),
        **{name: left[name] for name in ("text", "start", "stop", "status", "tokens")},
    }  # fmt: skip


def words_of(model: Model) -> Changes:
    """What stands on the page about a model, and on the controls that suit it."""
    example = example_of(model)
    chips = enumerate(example.suggestions)
    choices = [(say(METHODS[method]), method) for method in example.methods]
    return {
        "headline": headline(model),
        "card": model_card(model),
        "table": settings_table(model),
        "text": gr.Textbox(label=say(example.label)),
        **{f"chip {place}": gr.Button(suggestion) for place, suggestion in chips},
        "start": gr.Button(say(example.action)),
        "method": gr.Radio(choices=choices, value=example.methods[0]),
    }


def connect_choice(controls: Mapping[str, Any]) -> None:
    """A visitor's choice in the list of models: link.js asks for another model's page.

    Gradio 6.31 tells of a choice also where the list was left without one.
    """
    given = [controls[name] for name in CHOSEN]
    choose = calling("ui/static/link.js", "chooseModel(model, { text, lines })", *CHOSEN)
    controls["model"].input(None, given, None, js=choose, api_visibility="private")
