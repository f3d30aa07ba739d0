"""The page's layout: a generation's settings, the tabs, and their contents other than views."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from html import escape
from typing import Any

import gradio as gr

from transformer.inference.model import Model
from transformer.messages import language_names, languages, mark, say
from transformer.server.fields import METHODS, NUMBERS
from transformer.server.http.limits import MAX_CHARACTERS
from transformer.server.kept.page_models import (
    Example,
    example_of,
    first_controls,
    headline,
    html_of,
    model_card,
    read_as_choices,
    settings_table,
)
from transformer.server.kept.page_runs import example_facts, first_head
from transformer.server.kept.service import Service
from transformer.server.page.components import (
    PRIVATE,
    calling,
    component,
    connect_buttons,
    connect_state,
    view_component,
)
from transformer.server.page.presses import said
from transformer.server.page.resources import answer
from transformer.views.declaration import tab_name, tabs
from transformer.views.registry import PICTURES, VIEWS

# Temperature 0 is greedy and greedy is temperature 0: each control follows the other.
METHOD_OF = "(method, t) => (method === 'beam' ? method : t > 0 ? 'sample' : 'greedy')"
TEMPERATURE_OF = f"""(method, t) =>
  method === "greedy" ? 0 : method === "sample" && t === 0 ? {NUMBERS["temperature"].first} : t"""
TITLE = mark("Transformer, seen from inside")
_ONE_AT_A_TIME = threading.Lock()  # see Blocks


def _of_settings(example: Example, first: Mapping[str, Any]) -> dict[str, Any]:
    """All but the temperature, which is elsewhere: under the bars that it moves.

    Each but the method has the class setting-NAME, with its name in a link. first: see
    `page_models.first_controls`.
    """
    controls: dict[str, Any] = {}

    def number(name: str, min_width: int, **more: Any) -> None:
        controls[name] = gr.Number(
            first[name], label=say(NUMBERS[name].title), min_width=min_width,
            elem_classes=[f"setting-{name}"], **more,
        )  # fmt: skip

    def language(name: str, words: str) -> None:
        controls[name] = gr.Dropdown(
            list(example.languages), value=first[name], label=words, min_width=120,
            elem_classes=[f"setting-{name}"],
        )  # fmt: skip

    with gr.Accordion(say("Settings"), open=False, elem_id="settings"):
        with gr.Row():
            language("source_language", say("Source language"))
            language("target_language", say("Target language"))
        controls["read_as"] = gr.Dropdown(
            read_as_choices(), value=first["read_as"], label=say("The text is"),
            elem_classes=["setting-read_as"],
        )  # fmt: skip
        methods = [(say(METHODS[name]), name) for name in example.methods]
        controls["method"] = gr.Radio(
            methods, value=first["method"], label=say("Method"), elem_id="method"
        )
        with gr.Row():
            number("top_k", 90, precision=0)
            number("top_p", 90)
        with gr.Row():
            number("beams", 120, precision=0)
            number("length_penalty", 120)
        with gr.Row():
            number("max_new_tokens", 120, precision=0, elem_id="max_new_tokens")
            number("seed", 120, precision=0)
    return controls


def _of_masks(lines: str) -> dict[str, Any]:
    """The batch's box and its two buttons."""
    with gr.Row(elem_id="read-batch"):
        box = gr.Textbox(
            lines, label=say("Sentences, one a line"), lines=3, max_lines=8, elem_id="lines",
            scale=3,
        )  # fmt: skip
        with gr.Column(scale=1, min_width=220):
            show = gr.Button(
                say("Show the masks"), variant="primary", size="sm", elem_id="show-masks"
            )
            bare = gr.Button(
                say("What if there were no padding mask?"), size="sm", elem_id="without-padding"
            )
    return {"lines": box, "show": show, "bare": bare}


def _of_model(model: Model) -> dict[str, Any]:
    """Its size; and, folded, the card, all settings, and the glossary."""
    size = _prose(headline(model), "headline")
    with gr.Accordion(say("Model card, settings, words"), open=False, elem_id="about-model"):
        card = _prose(model_card(model), "card")
        table = _prose(settings_table(model), "settings-table")
        component("glossary", script="terms")
    return {"headline": size, "card": card, "table": table}


def _prose(markdown: str, name: str) -> gr.HTML:
    """Markdown without Gradio's component for it, whose scripts are a tenth of what a page loads as
    it opens, whichever tab has one."""
    return gr.HTML(html_of(markdown), js_on_load=None, apply_default_css=False, elem_id=name)


def description(service: Service) -> dict[str, Any]:
    """The page in the language of this context, as Gradio's frontend reads it.

    Made in a thread with an event loop: where none runs, Gradio would make one and leave it open.
    """

    async def described() -> dict[str, Any]:
        with gr.Blocks(title=say(TITLE), fill_width=True, analytics_enabled=False) as page:
            _lay_out(service)
        return dict(page.get_config_file())

    with _ONE_AT_A_TIME, ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, lambda: asyncio.run(described())).result()


def _lay_out(service: Service) -> None:
    name, first_model = next(iter(service.models.items()))
    first = first_controls(first_model)
    model, share = _top_line(service, name)
    run, batch = example_facts(service, name)
    site, head = first_head(run)
    # Plotly's first figure is slow
    answer(service, PICTURES["heatmap"], {"run": run["run"], "site": str(site), "head": head})
    with gr.Row(elem_id="columns"):
        with gr.Column(elem_id="left"):
            component("guide", elem_id="tour-card")
            left = _left(example_of(first_model), first, run, batch)
            component("exports", folder="views/export")
        with gr.Column(elem_id="right"), gr.Tabs():
            right = _right(first_model, first["lines"])
    top = {"model": model, "share": share}
    controls = {**right, **left, **top}
    connect_buttons(controls)
    connect_state(controls)


def _top_line(service: Service, name: str) -> tuple[gr.Dropdown, gr.HTML]:
    with gr.Row(elem_id="top"):
        _of_text("h1", say(TITLE))
        _of_text("p", say("How a small language model chooses each word."), elem_id="tagline")
        component("models", script="header", models=list(service.models))
        model = gr.Dropdown(
            list(service.models), value=name, show_label=False, label=say("Model"),
            elem_id="model", container=False, filterable=False,
        )  # fmt: skip
        named = [language_names(language) for language in languages()]
        header = component(
            "header", script="header", languages=named, space=os.environ.get("SPACE_ID")
        )
    return model, header


def _of_text(tag: str, text: str, **more: Any) -> None:
    value = f"<{tag}>{escape(text)}</{tag}>"
    gr.HTML(value, js_on_load=None, apply_default_css=False, **more)


def _left(
    example: Example,
    first: Mapping[str, Any],
    run: dict[str, Any],
    batch: dict[str, Any],
) -> dict[str, Any]:
    """The text and its continuation, the box for the visitor's text, and the next token."""
    around = partial(component, script="prompt_panel")
    with gr.Column(elem_id="story"):
        around("tokens", run, batch=batch)
        with gr.Row(elem_id="buttons"):
            start = gr.Button(say(example.action), variant="primary", elem_id="generate")
            stop = gr.Button(say("Stop"), interactive=False, elem_id="stop")
            around("own_text", max_characters=MAX_CHARACTERS)
            around("status", said("done", say("A stored example, read by this model.")))
        with gr.Group(elem_id="prompt"):
            text = gr.Textbox(
                first["text"], label=say(example.label), lines=1, max_lines=5, elem_id="text"
            )
            with gr.Row(elem_id="chips"):
                chips = [gr.Button(suggestion, size="sm") for suggestion in example.suggestions]
                for chip in chips:
                    chip.click(None, chip, text, js="(text) => text", **PRIVATE)
        around("altered")
        around("seed")
    with gr.Column(elem_id="next"):
        component("next_words", folder="views/journey")
        component("hidden_words", folder="views/prediction")
        temperature = gr.Slider(
            0, 2, first["temperature"], step=0.05,
            label=say(NUMBERS["temperature"].title), elem_id="temperature",
            elem_classes=["setting-temperature"],
        )  # fmt: skip
    settings = _of_settings(example, first) | {"temperature": temperature}
    around("hypotheses")
    method = settings["method"]
    both = [method, temperature]
    temperature.input(None, both, method, js=METHOD_OF, **PRIVATE)
    method.input(None, both, temperature, js=TEMPERATURE_OF, **PRIVATE)
    return {
        "text": text, "start": start, "stop": stop, **settings,
        **{f"chip {place}": chip for place, chip in enumerate(chips)},
    }  # fmt: skip


def _right(model: Model, lines: str) -> dict[str, Any]:
    """The tabs, as the views declare them: each view's component and the other controls, by name.

    A picture is loaded only when its tab is first seen.
    """
    placed: dict[str, Any] = {}
    for tab, views in tabs(VIEWS.values()).items():
        with gr.Tab(say(tab), id=tab_name(tab)) as part:
            opened = calling("server/static/main.js", f"tabShown({tab_name(tab)!r})")
            part.select(None, js=opened, **PRIVATE)
            for view in views:
                placed |= _of_masks(lines) if view.name == "masks" else {}
                placed[view.name] = view_component(view)
            placed |= _of_model(model) if tab == "Model" else {}
    return placed
