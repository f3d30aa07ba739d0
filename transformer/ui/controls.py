"""Gradio's own controls: a generation's settings, and what the tabs hold beside the views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from transformer.inference.model import Model
from transformer.runs.request import MAX_BEAMS
from transformer.ui.components import component
from transformer.ui.examples import METHODS, STARTS, Example, example_of
from transformer.ui.language import remade, wording
from transformer.ui.limits import MAX_NEW_TOKENS
from transformer.ui.page_data import model_card, settings_table, whatif_introduction


def drawn_by(example: Example) -> dict[str, Any]:
    """The first values of the settings that say what is drawn: the first four of `settings_of`."""
    return {"method": example.methods[0]} | {
        name: STARTS[name] for name in ("temperature", "top_k", "top_p")
    }


def settings_of(example: Example) -> list[Any]:
    """Method and its numbers, length, seed: in the order of `handlers.settings_of`.

    The page's scripts know each number by its class, setting-NAME with its name in a link. The
    temperature stands by itself, under the bars that it moves.
    """
    temperature = gr.Slider(
        0, 2, STARTS["temperature"], step=0.05, label=wording("Temperature (0 = greedy)"),
        elem_id="temperature", elem_classes=["setting-temperature"],
    )  # fmt: skip
    with gr.Accordion(wording("Settings"), open=False, elem_id="settings"):
        method = gr.Radio(**_methods(example), label=wording("Method"), elem_id="method")
        with gr.Row():
            top_k = _number("top_k", wording("Top-k (0 = off)"), 90, precision=0)
            top_p = _number("top_p", wording("Top-p (1 = off)"), 90)
        with gr.Row():
            beams = _number("beams", wording("Beams (to {most})", most=MAX_BEAMS), 120, precision=0)
            penalty = _number("penalty", wording("Length penalty"), 120)
        with gr.Row():
            length = _number(
                "length", wording("New tokens (to {most})", most=MAX_NEW_TOKENS), 120,
                value=example.settings["max_new_tokens"], precision=0, elem_id="length",
            )  # fmt: skip
            seed = _number("seed", wording("Seed"), 120, precision=0)
    return [method, temperature, top_k, top_p, beams, penalty, length, seed]


def _number(name: str, words: str, min_width: int, **more: Any) -> gr.Number:
    given: dict[str, Any] = {"value": STARTS[name], "elem_classes": [f"setting-{name}"]} | more
    return gr.Number(label=words, min_width=min_width, **given)


def _methods(example: Example) -> dict[str, Any]:
    choices = [(METHODS[name], name) for name in example.methods]
    return {"choices": choices, "value": example.methods[0]}


def _of_masks(model: Model) -> dict[str, Any]:
    """The batch's box and its two buttons."""
    lines = gr.Textbox(
        "\n".join(example_of(model).batch), label=wording("Sentences, one a line"), lines=3,
        max_lines=8, elem_id="lines",
    )  # fmt: skip
    with gr.Row(elem_id="read-batch"):
        show = gr.Button(
            wording("Show the masks"), variant="primary", size="sm", elem_id="show-masks"
        )
        bare = gr.Button(
            wording("What if there were no padding mask?"), size="sm", elem_id="without-padding"
        )
    return {"lines": lines, "show": show, "bare": bare}


def _of_whatif(model: Model) -> dict[str, Any]:
    """What all its views have in common."""
    introduction = remade(lambda: whatif_introduction(model))
    return {"introduction": gr.Markdown(introduction, elem_id="whatif-introduction")}


def _of_model(model: Model) -> dict[str, Any]:
    """The card and all settings, and the glossary."""
    with gr.Accordion(wording("Model card"), open=False, elem_id="about-model"):
        card = gr.Markdown(remade(lambda: model_card(model)), elem_id="card")
    with gr.Accordion(wording("All settings"), open=False, elem_id="all-settings"):
        table = gr.Markdown(remade(lambda: settings_table(model)), elem_id="settings-table")
    component("glossary", script="terms")
    return {"card": card, "table": table}


# What stands above a tab's views, and below; each gives its controls by name.
ABOVE: dict[str, Callable[[Model], dict[str, Any]]] = {"Masks": _of_masks, "What if?": _of_whatif}
BELOW: dict[str, Callable[[Model], dict[str, Any]]] = {"Model": _of_model}
