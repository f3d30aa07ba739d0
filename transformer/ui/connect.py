"""What the page's buttons, boxes and list of models call, and what of the page that changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gradio as gr

from transformer.inference.model import Model
from transformer.messages import say
from transformer.ui import handlers
from transformer.ui.components import calling
from transformer.ui.examples import METHODS, example_of
from transformer.ui.limits import AT_ONCE
from transformer.ui.link import SETTINGS
from transformer.ui.page_data import headline, model_card, settings_table
from transformer.ui.page_request import settings_of
from transformer.ui.service import Service

CHOSEN = ("model", "text", "lines")
Changes = dict[str, Any]  # what changes on the page, by the control's name
TOGGLED = """(name, lines) =>
  [name, lines, document.querySelector("#without-padding").ariaPressed !== "true"]"""
# preprocess: the handlers check every value themselves, with the sentences that the API gives too.
PRIVATE: dict[str, Any] = {
    "api_visibility": "private", "show_progress": "hidden", "preprocess": False,
}  # fmt: skip


def connect_generation(service: Service, model: gr.Dropdown, left: dict[str, Any]) -> None:
    """Enter, the button, an alteration and a drawn seed generate; Stop ends it; what a script types
    stands in the text box. left: by name."""

    def generate(
        request: gr.Request, name: str, text: str, altered: Any, *settings: Any
    ) -> Iterator[Any]:
        visitor = str(request.session_hash)
        try:
            chosen = settings_of(dict(zip(SETTINGS, settings, strict=True)), altered)
            for facts, status, running in handlers.generate(service, visitor, name, text, chosen):
                yield _or_skip(facts), status, gr.Button(interactive=running)
        except (ValueError, RecursionError) as error:
            yield gr.skip(), handlers.problem(error), gr.Button(interactive=False)

    def stop(request: gr.Request) -> None:
        service.sessions.stop(str(request.session_hash))

    asked: dict[str, Any] = {
        "fn": generate,
        "inputs": [model, left["text"], left["altered"], *left["settings"]],
        "outputs": [left["tokens"], left["status"], left["stop"]],
        "concurrency_limit": AT_ONCE,
        "concurrency_id": "model",
        "trigger_mode": "once",
        **PRIVATE,
    }
    triggers = [left["text"].submit, left["start"].click, left["altered"].submit]
    gr.on(triggers, api_name="page_generate", **asked)
    box = left["settings"][SETTINGS.index("seed")]
    drawn = left["seed"].submit(None, left["seed"], box, js="(seed) => seed", **PRIVATE)
    drawn.then(api_name="page_generate_anew", **asked)
    typed = left["tokens"].input(
        None, left["tokens"], left["text"], js="({ text }) => text", **PRIVATE
    )
    typed.then(None, None, None, js=calling("ui/static/gradio.js", "textTyped()"), **PRIVATE)
    left["stop"].click(stop, None, None, concurrency_limit=None, api_name="page_stop", **PRIVATE)


def connect_batch(
    service: Service, model: gr.Dropdown, right: dict[str, Any], status: gr.HTML
) -> None:
    """The batch is read, with its padding mask or without. right: the tabs' controls by name."""

    def read(request: gr.Request, name: str, lines: str, bare: Any = False) -> tuple[Any, Any]:
        visitor, hidden = str(request.session_hash), bare is not True
        facts, said = handlers.read_batch(service, visitor, name, lines, padding_hidden=hidden)
        return _or_skip(facts), said

    given = [model, right["lines"]]
    asked: dict[str, Any] = {
        "fn": read,
        "outputs": [right["masks"], status],
        "concurrency_limit": AT_ONCE,
        "concurrency_id": "model",
        **PRIVATE,
    }
    right["show"].click(inputs=given, api_name="page_batch", **asked)
    # Pressed again, it brings the mask back.
    right["bare"].click(
        inputs=[*given, right["bare"]], js=TOGGLED, api_name="page_batch_unpadded", **asked
    )


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


def _or_skip(facts: dict[str, Any] | None) -> Any:
    return gr.skip() if facts is None else facts
