"""Another model on the page: its words, its stored example; a text of the visitor's own stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr

from transformer.inference.model import Model
from transformer.ui import handlers
from transformer.ui.examples import METHODS, example_of, is_offered
from transformer.ui.facts import headline, model_card, settings_table
from transformer.ui.link import SETTINGS
from transformer.ui.service import Service

Changes = dict[str, Any]  # what changes on the page, by the control's name


def controls_of(
    model: gr.Dropdown,
    headline_text: gr.Markdown,
    left: Mapping[str, Any],
    masks: Mapping[str, Any],
    about: Sequence[gr.Markdown],
) -> dict[str, Any]:
    """The page's controls by name, the settings with the names that they have in a link."""
    return {
        "model": model, "headline": headline_text, "card": about[0], "table": about[1],
        "lines": masks["lines"], "masks": masks["view"],
        **{f"chip {place}": chip for place, chip in enumerate(left["chips"])},
        **dict(zip(SETTINGS, left["settings"], strict=True)),
        **{name: left[name] for name in ("text", "start", "stop", "status", "tokens")},
    }  # fmt: skip


def words_of(model: Model) -> Changes:
    """What stands on the page about a model, and on the controls that suit it."""
    example = example_of(model)
    chips = enumerate(example.suggestions)
    choices = [(METHODS[method], method) for method in example.methods]
    return {
        "headline": headline(model),
        "card": model_card(model),
        "table": settings_table(model),
        "text": gr.Textbox(label=example.label),
        **{f"chip {place}": gr.Button(suggestion) for place, suggestion in chips},
        "start": gr.Button(example.action),
        "method": gr.Radio(choices=choices, value=example.methods[0]),
    }


def connect_choice(service: Service, controls: Mapping[str, Any]) -> None:
    """A visitor's choice in the list of models."""

    def pick(name: str, text: str, lines: str) -> dict[Any, Any]:
        chosen = service.model(name)
        example = example_of(chosen)
        models = service.models.values()
        own = not is_offered(text, models)
        run, batch = handlers.example(service, name)
        kept = " Your text is kept." if own else ""
        changes = words_of(chosen) | {
            "tokens": run,
            "masks": batch,
            "status": handlers.said("done", f"{name}: a stored example.{kept}"),
            "text": gr.Textbox(value=text if own else example.text, label=example.label),
            "lines": "\n".join(example.batch) if is_offered(lines, models) else lines,
        }
        return {controls[changed]: value for changed, value in changes.items()}

    unchanged = ("model", "stop", *SETTINGS[1:])
    controls["model"].input(
        pick,
        [controls["model"], controls["text"], controls["lines"]],
        [control for changed, control in controls.items() if changed not in unchanged],
        api_name="page_model",
        api_visibility="private",
        show_progress="hidden",
        preprocess=False,
    )
