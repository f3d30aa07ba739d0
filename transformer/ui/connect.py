"""What the page's buttons, boxes and list of models call, and the link that it was opened with.

controls: everything on the page that is read or changed, by name; a setting's is that of a link.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gradio as gr

from transformer.ui import handlers
from transformer.ui.components import calling
from transformer.ui.limits import AT_ONCE
from transformer.ui.link import SETTINGS, read_typed
from transformer.ui.open_link import opened
from transformer.ui.page_request import settings_of
from transformer.ui.service import Service

Controls = Mapping[str, Any]
CHOSEN = ("model", "text", "lines")
# What a link changes, the chips besides.
SHOWN = (
    "model", "headline", "introduction", "card", "table", "lines", "masks", *SETTINGS, "text",
    "start", "stop", "status", "tokens", "share",
)  # fmt: skip
TOGGLED = """(name, lines) =>
  [name, lines, document.querySelector("#without-padding").ariaPressed !== "true"]"""
# preprocess: the handlers check every value themselves, with the sentences that the API gives too.
PRIVATE: dict[str, Any] = {
    "api_visibility": "private", "show_progress": "hidden", "preprocess": False,
}  # fmt: skip
RUNS: dict[str, Any] = PRIVATE | {"concurrency_limit": AT_ONCE, "concurrency_id": "model"}


def connect_generation(service: Service, controls: Controls) -> None:
    """Enter, the button, an alteration and a drawn seed generate; Stop ends it; what a script types
    stands in the text box."""

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

    asked: dict[str, Any] = RUNS | {
        "fn": generate,
        "inputs": [controls[name] for name in ("model", "text", "altered", *SETTINGS)],
        "outputs": [controls[name] for name in ("tokens", "status", "stop")],
        "trigger_mode": "once",
    }
    triggers = [controls["text"].submit, controls["start"].click, controls["altered"].submit]
    gr.on(triggers, api_name="page_generate", **asked)
    draw, seed = controls["drawn"], controls["seed"]
    drawn = draw.submit(None, draw, seed, js="(seed) => seed", **PRIVATE)
    drawn.then(api_name="page_generate_anew", **asked)
    tokens, text = controls["tokens"], controls["text"]
    typed = tokens.input(None, tokens, text, js="({ text }) => text", **PRIVATE)
    typed.then(None, None, None, js=calling("ui/static/gradio.js", "textTyped()"), **PRIVATE)
    controls["stop"].click(
        stop, None, None, concurrency_limit=None, api_name="page_stop", **PRIVATE
    )


def connect_batch(service: Service, controls: Controls) -> None:
    """The batch is read, with its padding mask or without."""

    def read(request: gr.Request, name: str, lines: str, bare: Any = False) -> tuple[Any, Any]:
        visitor, hidden = str(request.session_hash), bare is not True
        facts, said = handlers.read_batch(service, visitor, name, lines, padding_hidden=hidden)
        return _or_skip(facts), said

    given, bare = [controls["model"], controls["lines"]], controls["bare"]
    asked = RUNS | {"fn": read, "outputs": [controls["masks"], controls["status"]]}
    controls["show"].click(inputs=given, api_name="page_batch", **asked)
    # Pressed again, it brings the mask back.
    bare.click(inputs=[*given, bare], js=TOGGLED, api_name="page_batch_unpadded", **asked)


def connect_choice(controls: Controls) -> None:
    """A visitor's choice in the list of models: link.js asks for another model's page.

    Gradio 6.31 tells of a choice also where the list was left without one.
    """
    given = [controls[name] for name in CHOSEN]
    choose = calling("ui/static/link.js", "chooseModel(model, { text, lines })", *CHOSEN)
    controls["model"].input(None, given, None, js=choose, api_visibility="private")


def connect_link(service: Service, controls: Controls) -> None:
    """The page's script sends the link that the page was opened with, if it was; nothing else runs
    when a page opens."""
    shown = [*SHOWN, *(name for name in controls if name.startswith("chip "))]

    def open_link(event: gr.EventData, request: gr.Request, *values: Any) -> Iterator[Any]:
        asked = event._data if isinstance(event._data, dict) else {"query": event._data}
        typed = read_typed(asked.get("kept"))
        settings = dict(zip(SETTINGS, values, strict=True))
        visitor, query = str(request.session_hash), asked.get("query")
        known, reads = asked.get("run"), bool(asked.get("reads"))
        for changes in opened(service, visitor, query, settings, typed, known, reads=reads):
            yield {controls[name]: value for name, value in changes.items()}

    controls["share"].submit(
        open_link,
        [controls[setting] for setting in SETTINGS],
        [controls[name] for name in shown],
        trigger_mode="multiple",  # gradio.js asks one question at a time
        api_name="page_open",
        **RUNS,
    )


def _or_skip(facts: dict[str, Any] | None) -> Any:
    return gr.skip() if facts is None else facts
