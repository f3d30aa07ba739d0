"""The controls of a generation's settings, as they stand at first."""

from __future__ import annotations

from typing import Any

import gradio as gr

from transformer.runs.request import MAX_BEAMS
from transformer.ui.examples import METHODS, Example
from transformer.ui.language import wording
from transformer.ui.limits import MAX_NEW_TOKENS

# What the settings stand at, at first.
STARTS = {
    "temperature": 0.7, "top_k": 40, "top_p": 1, "beams": 4, "penalty": 1, "length": 40, "seed": 3,
}  # fmt: skip


def settings_of(example: Example) -> list[Any]:
    """Method and its numbers, length, seed: in the order of `handlers.settings_of`.

    The page's scripts know each number by its class, setting-NAME with its name in a link.
    """
    with gr.Accordion(wording("Settings"), open=False, elem_id="settings"):
        method = gr.Radio(**_methods(example), label=wording("Method"), elem_id="method")
        with gr.Row():
            temperature = _number("temperature", wording("Temperature (0 = greedy)"), 90)
            top_k = _number("top_k", wording("Top-k (0 = off)"), 90, precision=0)
            top_p = _number("top_p", wording("Top-p (1 = off)"), 90)
        with gr.Row():
            beams = _number("beams", wording("Beams (to {most})", most=MAX_BEAMS), 120, precision=0)
            penalty = _number("penalty", wording("Length penalty"), 120)
        with gr.Row():
            length = _number(
                "length", wording("New tokens (to {most})", most=MAX_NEW_TOKENS), 120,
                precision=0, elem_id="length",
            )  # fmt: skip
            seed = _number("seed", wording("Seed"), 120, precision=0)
    return [method, temperature, top_k, top_p, beams, penalty, length, seed]


def _number(name: str, words: str, min_width: int, **more: Any) -> gr.Number:
    return gr.Number(
        STARTS[name], label=words, min_width=min_width, elem_classes=[f"setting-{name}"], **more
    )


def _methods(example: Example) -> dict[str, Any]:
    choices = [(METHODS[name], name) for name in example.methods]
    return {"choices": choices, "value": example.methods[0]}
