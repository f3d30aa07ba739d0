"""The page's layout."""

from __future__ import annotations

import html
import os
import re
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np

from transformer.analysis.atlas import atlas
from transformer.inference.model import Model
from transformer.learning.checkpoints import story_training
from transformer.messages import language, mark
from transformer.messages.markup import translated
from transformer.runs.head_data import head_view
from transformer.training.exercises import EXERCISES
from transformer.ui import handlers
from transformer.ui.api import add_endpoints
from transformer.ui.components import calling, component, view_component
from transformer.ui.connect import (
    PRIVATE,
    connect_batch,
    connect_choice,
    connect_generation,
    connect_link,
)
from transformer.ui.controls import ABOVE, BELOW, drawn_by, settings_of
from transformer.ui.examples import Example, example_of
from transformer.ui.gradio_patches import install
from transformer.ui.language import named, remade, wording
from transformer.ui.link import SETTINGS
from transformer.ui.page_data import headline, how_chosen
from transformer.ui.page_request import INTACT
from transformer.ui.questions import answer
from transformer.ui.service import Service
from transformer.ui.tour import first_head
from transformer.views import PICTURES, VIEWS
from transformer.views.attention.grid import data_url, mosaic, tiles
from transformer.views.attention.heatmap import head_title
from transformer.views.declaration import tab_name, tabs

SET = """(value) => {{
  document.dispatchEvent(new CustomEvent("setting", {{ detail: {{ {name}: value }} }}));
}}"""
DRAWS = '(method) => (method === "greedy" ? "sample" : undefined)'  # with a temperature
TEMPLATE = Path(__file__).parent / "static" / "first_look.html"
FEW_COLOURS = 0xE0  # eight: the picture of all heads then takes a third of the bytes
HOLE = re.compile(r"/\*(text|title|heads|head)\*/")
TITLE = mark("Transformer, seen from inside")


def build(service: Service) -> gr.Blocks:
    """The page and its API, ready to launch."""
    install()
    with gr.Blocks(title=TITLE, fill_width=True, analytics_enabled=False) as page:
        _lay_out(service)
        add_endpoints(service)
    page.queue(api_open=False)  # else programs could go past the queue
    return page


def _lay_out(service: Service) -> None:
    name = next(iter(service.models))
    model, headline_text, share = _top_line(service, name)
    run, batch = handlers.example(service, name)
    stored = service.store.run(service.example(name)[0])
    run["how"] = remade(lambda: how_chosen(stored))
    site, head = first_head(run)
    place = {"run": run["run"], "stack": site.stack, "kind": site.kind}
    small = answer(service, PICTURES["atlas"], place)
    values: dict[str, Any] = {
        "batch": batch,
        # The small pictures of all heads, with their bytes as text.
        "first": place
        | small
        | {part: b64encode(small[part].tobytes()).decode("ascii") for part in ("pixels", "masked")},
        "tasks": {one.name: {"title": one.title, "words": one.words} for one in EXERCISES.values()},
        "checkpoints": story_training() is not None,
    }
    # Plotly's first figure is slow
    answer(service, PICTURES["heatmap"], {"run": run["run"], "site": str(site), "head": head})
    with gr.Row(elem_id="columns"):
        with gr.Column(elem_id="left"):
            component("card", elem_id="tour-card")
            left = _left(example_of(service.model(name)), run, values["first"])
            component("exports", folder="views/export")
        with gr.Column(elem_id="right"), gr.Tabs():
            right = _right(service.model(name), values)
    top = {"model": model, "headline": headline_text, "share": share}
    controls = {**right, **left, **top}
    connect_generation(service, controls)
    connect_batch(service, controls)
    connect_choice(controls)
    connect_link(service, controls)


def _top_line(service: Service, name: str) -> tuple[gr.Dropdown, gr.Markdown, gr.HTML]:
    with gr.Row(elem_id="top"):
        gr.Markdown(wording("# Transformer, seen from inside"))
        model = gr.Dropdown(
            list(service.models), value=name, show_label=False, label=wording("Model"),
            elem_id="model", container=False, filterable=False,
        )  # fmt: skip
        headline_text = gr.Markdown(
            remade(lambda: headline(service.model(name))), elem_id="headline"
        )
        header = component("header", languages=named(), space=os.environ.get("SPACE_ID"))
    return model, headline_text, header


def _left(example: Example, run: dict[str, Any], first: dict[str, Any]) -> dict[str, Any]:
    """Text and settings in, tokens out, and what comes next. first: small pictures of all heads."""
    with gr.Group(elem_id="prompt"):
        text = gr.Textbox(example.text, label=example.label, lines=1, max_lines=5, elem_id="text")
        with gr.Row(elem_id="chips"):
            chips = [gr.Button(suggestion, size="sm") for suggestion in example.suggestions]
            for chip in chips:
                chip.click(None, chip, text, js="(text) => text", **PRIVATE)
    with gr.Row(elem_id="buttons"):
        start = gr.Button(example.action, variant="primary", elem_id="generate")
        stop = gr.Button(wording("Stop"), interactive=False, elem_id="stop")
    around = partial(component, script="around_text")
    altered = around("altered", INTACT)
    drawn_seed = around("seed")
    status = around(
        "status", handlers.said("done", wording("A stored example, read by this model."))
    )
    tokens = around("tokens", run)
    component("hidden_words", folder="views/masked")
    drawn = drawn_by(example)
    component("next_words", drawn, first=first, folder="views/journey")
    settings = settings_of(example)
    around("hypotheses")
    method, temperature, *_ = settings
    for name, one in zip(drawn, settings, strict=False):  # they move the bars
        one.change(None, one, None, js=SET.format(name=name), **PRIVATE)
    temperature.input(None, method, method, js=DRAWS, **PRIVATE)
    return {
        "text": text, "start": start, "stop": stop, "drawn": drawn_seed, "status": status,
        "tokens": tokens, "altered": altered, **dict(zip(SETTINGS, settings, strict=True)),
        **{f"chip {place}": chip for place, chip in enumerate(chips)},
    }  # fmt: skip


def _right(model: Model, values: dict[str, Any]) -> dict[str, Any]:
    """The tabs, as the views declare them: each view's component and the other controls, by name.

    values: what a view may get, by name. A picture is asked for only when its tab is first seen.
    """
    placed: dict[str, Any] = {}
    for tab, shown in tabs(VIEWS.values()).items():
        with gr.Tab(wording(tab), id=tab_name(tab)) as part:
            opened = calling("ui/static/main.js", f"tabShown({tab_name(tab)!r})")
            part.select(None, js=opened, **PRIVATE)
            if placed:  # the first tab is the journey itself
                component(
                    "strip",
                    elem_id=f"strip-{tab_name(tab)}",
                    tab=tab_name(tab),
                    folder="views/journey",
                )
            placed |= ABOVE[tab](model) if tab in ABOVE else {}
            placed |= {view.name: view_component(view, values) for view in shown}
            placed |= BELOW[tab](model) if tab in BELOW else {}
    return placed


def first_look(service: Service) -> Callable[[], str]:
    """Makes what the page shows before its scripts have run, in the language of the request: the
    stored example and its heads, as pictures, which are made once. views/attention takes them away.

    A phone needs seconds until Gradio's controls stand.
    """
    template = TEMPLATE.read_text(encoding="utf-8")
    name = next(iter(service.models))
    run = service.store.run(service.example(name)[0])
    site, head = first_head(handlers.example(service, name)[0])
    small = atlas(run, site.stack, site.kind)
    few = np.bitwise_and(small.pixels, FEW_COLOURS, dtype=np.uint8)
    heads = data_url(mosaic(small._replace(pixels=few)))
    large = data_url(tiles(small)[site.layer, head])
    view = head_view(run, site, head)

    def markup() -> str:
        words = {"text": run.text, "title": head_title(view)}
        parts = {name: html.escape(text) for name, text in words.items()}
        parts |= {"heads": heads, "head": large}
        return HOLE.sub(lambda found: parts[found[1]], translated(template, language()))

    return markup
