"""The page: what stands where."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gradio as gr

from transformer.learning.moments import story_moments
from transformer.messages import mark
from transformer.training.exercises import EXERCISES
from transformer.ui import handlers
from transformer.ui.api import add_endpoints
from transformer.ui.choose_model import connect_choice, controls_of
from transformer.ui.components import component, panel
from transformer.ui.connect import PRIVATE, connect_batch, connect_generation
from transformer.ui.examples import Example, example_of
from transformer.ui.experiments import Experiments
from transformer.ui.gradio_patches import install
from transformer.ui.language import named, remade, wording
from transformer.ui.lessons import offered
from transformer.ui.open_link import connect_links
from transformer.ui.page_data import headline, how_chosen, model_card, settings_table
from transformer.ui.reach import code_function
from transformer.ui.service import Service
from transformer.ui.settings import settings_of
from transformer.ui.tour import cards, first_head
from transformer.ui.view_functions import LESSONS, Ask, functions, in_threads
from transformer.ui.whatif_page import whatif_tab
from transformer.views import VIEWS
from transformer.views.attention.grid import palette_stops
from transformer.views.declaration import tab_name

TITLE = mark("Transformer, seen from inside")
TABS = (
    mark("Attention"), mark("Masks"), mark("Positions"), mark("Prediction"), mark("What if?"),
    mark("Learn"), mark("Model"),
)  # fmt: skip


def build(service: Service) -> gr.Blocks:
    """The page and its API, ready to launch."""
    install()
    with gr.Blocks(title=TITLE, fill_width=True, analytics_enabled=False) as page:
        experiments = Experiments(service)
        _lay_out(experiments, page)
        add_endpoints(service, experiments)
    page.queue(api_open=False)  # else programs could go past the queue
    return page


def _lay_out(experiments: Experiments, page: gr.Blocks) -> None:
    service = experiments.service
    name = next(iter(service.models))
    model, headline_text, share = _top_line(service, name, page)
    run, batch = handlers.example(service, name)
    stored = service.store.run(service.example(name)[0])
    run["how"] = remade(lambda: how_chosen(stored))
    site, head = first_head(run)
    place = {"run": run["run"], "stack": site.stack, "kind": site.kind}
    ask = functions(experiments)
    first = place | ask["atlas"](place)
    # Plotly's first figure is slow
    ask["heatmap"]({"run": run["run"], "site": str(site), "head": head})
    ask = in_threads(service.shares, ask)
    lessons = offered(service.models)
    with gr.Row(elem_id="columns"):
        with gr.Column(elem_id="left"):
            component("card", None, [ask[name] for name in LESSONS], "tour-card", lessons=lessons)
            left = _left(example_of(service.model(name)), run)
            component("exports", None, [ask["export"]])
        with gr.Column(elem_id="right"), gr.Tabs():
            masks, about = _right(service, ask, name, batch, first)
    left["altered"] = component("altered", handlers.INTACT, [ask["intact_text"], ask["examined"]])
    connect_generation(service, model, left)
    connect_batch(service, model, masks, left["status"])
    controls = controls_of(model, headline_text, left, masks, about)
    connect_choice(controls)
    connect_links(service, controls | {"share": share})


def _top_line(
    service: Service, name: str, page: gr.Blocks
) -> tuple[gr.Dropdown, gr.Markdown, gr.HTML]:
    with gr.Row(elem_id="top"):
        gr.Markdown(wording("# Transformer, seen from inside"))
        model = gr.Dropdown(
            list(service.models), value=name, show_label=False, label=wording("Model"),
            elem_id="model", container=False, filterable=False,
        )  # fmt: skip
        share = component("share", None, [code_function(page)], space=os.environ.get("SPACE_ID"))
        component("projector")
        component("languages", languages=named())
        headline_text = gr.Markdown(headline(service.model(name)), elem_id="headline")
        component("tour", cards(service.models), lessons=len(offered(service.models)))
    return model, headline_text, share


def _left(example: Example, run: dict[str, Any]) -> dict[str, Any]:
    """Text and settings in, tokens out."""
    text = gr.Textbox(example.text, label=example.label, lines=1, max_lines=5, elem_id="text")
    with gr.Row(elem_id="chips"):
        chips = [
            gr.Button(suggestion, size="sm", variant="secondary")
            for suggestion in example.suggestions
        ]
        for chip in chips:
            chip.click(None, chip, text, js="(text) => text", **PRIVATE)
    with gr.Row(elem_id="buttons"):
        start = gr.Button(example.action, variant="primary", elem_id="generate")
        stop = gr.Button(wording("Stop"), interactive=False, elem_id="stop")
    seed = component("seed")
    settings = settings_of(example)
    status = component(
        "status", handlers.said("done", wording("A stored example, made by this model."))
    )
    tokens = component("tokens", run)
    component("hypotheses")
    return {
        "text": text, "chips": chips, "start": start, "stop": stop, "seed": seed,
        "settings": settings,
        "status": status, "tokens": tokens,
    }  # fmt: skip


def _right(
    service: Service,
    ask: dict[str, Ask],
    name: str,
    batch: dict[str, Any],
    first: dict[str, Any],
) -> tuple[dict[str, Any], list[gr.Markdown]]:
    """The tabs. A picture is asked for only when its tab is first seen.

    first: the small pictures of all heads of the stored run, for the first glance.
    """
    with _tab("Attention", ask):
        of_heads = ("atlas", "heatmap", "alignment", "flow", "lines", "metrics")
        functions = [ask[picture] for picture in of_heads]
        component("attention", None, functions, palette=palette_stops(), first=first)
        component("ranking", None, [ask["metrics"], ask["metric_map"]])
        component("worked", None, [ask["worked"]])
    with _tab("Masks", ask):
        masks = _masks(ask, example_of(service.model(name)), batch)
    with _tab("Positions", ask):
        component("positions", None, [ask["positions"], ask["inputs"], ask["shift"]])
        component("rotary", None, [ask["rotary"]])
    with _tab("Prediction", ask):
        component("masked", None, [ask["masked"]])
        functions = [ask["candidates"], ask["surprise"], ask["lens"], ask["beams"]]
        component("prediction", None, functions)
    with _tab("What if?", ask):
        whatif_tab(ask)
    with _tab("Learn", ask):
        _learn(ask)
    for tab in dict.fromkeys(view.tab for view in VIEWS.values() if view.tab not in TABS):
        with gr.Tab(tab, id=tab_name(tab)):
            _panels(tab, ask)
    with _tab("Model", ask):
        about = _model(service, name, ask)
    return masks, about


@contextmanager
def _tab(title: str, ask: dict[str, Ask]) -> Iterator[None]:
    """One of TABS, with the views of other folders that belong there at its end."""
    with gr.Tab(wording(title), id=tab_name(title)):
        yield
        _panels(title, ask)


def _masks(ask: dict[str, Ask], example: Example, batch: dict[str, Any]) -> dict[str, Any]:
    """The batch's box, its two buttons and its pictures, by name."""
    lines = gr.Textbox(
        "\n".join(example.batch), label=wording("Sentences, one a line"), lines=3, max_lines=8,
        elem_id="lines",
    )  # fmt: skip
    with gr.Row(elem_id="read-batch"):
        show = gr.Button(
            wording("Show the masks"), variant="primary", size="sm", elem_id="show-masks"
        )
        bare = gr.Button(
            wording("What if there were no padding mask?"), size="sm", elem_id="without-padding"
        )
    pictures = [ask[name] for name in ("padded", "mask", "heatmap", "removal")]
    return {
        "lines": lines, "show": show, "bare": bare, "view": component("masks", batch, pictures),
    }  # fmt: skip


def _learn(ask: dict[str, Ask]) -> None:
    """A training to watch, and the moments of one that was recorded, where they are there."""
    tasks = {one.name: {"title": one.title, "words": one.words} for one in EXERCISES.values()}
    functions = [ask[name] for name in ("train", "steer", "learned", "adopt", "checkpoint")]
    kept = story_moments() is not None
    component("learn", None, functions, palette=palette_stops(), tasks=tasks, moments=kept)
    if kept:
        component("moments", None, [ask["moment"]], palette=palette_stops())


def _panels(tab: str, ask: dict[str, Ask]) -> None:
    """The views of a tab that have no script of their own."""
    for view in VIEWS.values():
        if view.tab == tab and not view.script:
            panel(view, ask)


def _model(service: Service, name: str, ask: dict[str, Ask]) -> list[gr.Markdown]:
    """The drawing of the network, which follows the run; the card and all settings."""
    model = service.model(name)
    component("architecture", None, [ask["architecture"]])
    component("equations", None, [ask["equation"]])
    card = gr.Markdown(remade(lambda: model_card(model)), elem_id="card")
    with gr.Accordion(wording("All settings"), open=False, elem_id="all-settings"):
        table = gr.Markdown(remade(lambda: settings_table(model)), elem_id="settings-table")
    component("glossary")
    return [card, table]
