"""Which handler the page's buttons and boxes call, and what of the page it changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from transformer.ui import handlers
from transformer.ui.limits import AT_ONCE
from transformer.ui.link import SETTINGS
from transformer.ui.page_request import settings_of
from transformer.ui.service import Service

TOGGLED = """(name, lines) =>
  [name, lines, document.querySelector("#without-padding").ariaPressed !== "true"]"""
# preprocess: the handlers check every value themselves, with the sentences that the API gives too.
PRIVATE: dict[str, Any] = {
    "api_visibility": "private", "show_progress": "hidden", "preprocess": False,
}  # fmt: skip


def connect_generation(service: Service, model: gr.Dropdown, left: dict[str, Any]) -> None:
    """Enter, the button, an alteration and a drawn seed generate; Stop ends it. left: by name."""

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


def _or_skip(facts: dict[str, Any] | None) -> Any:
    return gr.skip() if facts is None else facts
