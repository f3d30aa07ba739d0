"""The page: what stands where, and which handler each control calls."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import gradio as gr

from transformer.learning.moments import story_moments
from transformer.messages import mark
from transformer.runs.request import MAX_BEAMS
from transformer.training.exercises import EXERCISES
from transformer.ui import handlers
from transformer.ui.api import add_endpoints
from transformer.ui.choose_model import connect_choice, controls_of
from transformer.ui.components import component, panel
from transformer.ui.examples import METHODS, Example, example_of
from transformer.ui.experiments import Experiments
from transformer.ui.gradio_patches import install
from transformer.ui.language import named, remade, wording
from transformer.ui.lessons import offered
from transformer.ui.limits import AT_ONCE, MAX_NEW_TOKENS, MAX_WAITING
from transformer.ui.link import SETTINGS
from transformer.ui.open_link import connect_links
from transformer.ui.page_data import headline, how_chosen, model_card, settings_table
from transformer.ui.reach import code_function
from transformer.ui.service import Service
from transformer.ui.tour import cards, first_head
from transformer.ui.view_functions import LESSONS, Ask, functions
from transformer.ui.whatif_page import whatif_tab
from transformer.views import VIEWS
from transformer.views.attention.grid import palette_stops
from transformer.views.declaration import tab_name

TITLE = mark("Transformer, seen from inside")
# What the settings stand at, at first.
STARTS = {
    "temperature": 0.7, "top_k": 40, "top_p": 1, "beams": 4, "penalty": 1, "length": 40, "seed": 3,
}  # fmt: skip
TABS = (
    mark("Attention"), mark("Masks"), mark("Positions"), mark("Prediction"), mark("What if?"),
    mark("Learn"), mark("Model"),
)  # fmt: skip
TOGGLED = """(name, lines) =>
  [name, lines, document.querySelector("#without-padding").ariaPressed !== "true"]"""
# preprocess: the handlers check every value themselves, with the sentences that the API gives too.
PRIVATE: dict[str, Any] = {
    "api_visibility": "private", "show_progress": "hidden", "preprocess": False,
}  # fmt: skip


def build(service: Service) -> gr.Blocks:
    """The page and its API, ready to launch."""
    install()
    with gr.Blocks(title=TITLE, fill_width=True, analytics_enabled=False) as page:
        experiments = Experiments(service)
        _lay_out(experiments, page)
        add_endpoints(service, experiments)
    page.queue(max_size=MAX_WAITING, api_open=False)  # else programs could go past the queue
    return page


def _lay_out(experiments: Experiments, page: gr.Blocks) -> None:
    service = experiments.service
    name = next(iter(service.models))
    model, headline_text, share = _top_line(service, name, page)
    run, batch = handlers.example(service, name)
    stored = service.store.run(service.examples[name][0])
    run["how"] = remade(lambda: how_chosen(stored))
    site, head = first_head(run)
    place = {"run": run["run"], "stack": site.stack, "kind": site.kind}
    ask = functions(experiments)
    first = place | ask["atlas"](place)
    # Plotly's first figure is slow
    ask["heatmap"]({"run": run["run"], "site": str(site), "head": head})
    lessons = offered(service.models)
    with gr.Row(elem_id="columns"):
        with gr.Column(elem_id="left"):
            component("card", None, [ask[name] for name in LESSONS], "tour-card", lessons=lessons)
            left = _left(example_of(service.model(name)), run)
            component("exports", None, [ask["export"]])
        with gr.Column(elem_id="right"), gr.Tabs():
            masks, about = _right(service, ask, name, batch, first)
    left["altered"] = component("altered", handlers.INTACT, [ask["intact_text"], ask["examined"]])
    _connect_generation(service, model, left)
    _connect_batch(service, model, masks, left["status"])
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
    settings = _settings(example)
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


def _settings(example: Example) -> list[Any]:
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
    with gr.Tab(wording("Attention"), id="attention"):
        of_heads = ("atlas", "heatmap", "alignment", "flow", "lines", "metrics")
        functions = [ask[picture] for picture in of_heads]
        component("attention", None, functions, palette=palette_stops(), first=first)
        component("ranking", None, [ask["metrics"], ask["metric_map"]])
        component("worked", None, [ask["worked"]])
        _panels("Attention", ask)
    with gr.Tab(wording("Masks"), id="masks"):
        lines = gr.Textbox(
            "\n".join(example_of(service.model(name)).batch),
            label=wording("Sentences, one a line"), lines=3, max_lines=8, elem_id="lines",
        )  # fmt: skip
        with gr.Row(elem_id="read-batch"):
            show = gr.Button(
                wording("Show the masks"), variant="primary", size="sm", elem_id="show-masks"
            )
            bare = gr.Button(
                wording("What if there were no padding mask?"), size="sm", elem_id="without-padding"
            )
        view = component(
            "masks", batch, [ask["padded"], ask["mask"], ask["heatmap"], ask["removal"]]
        )
        _panels("Masks", ask)
    with gr.Tab(wording("Positions"), id="positions"):
        component("positions", None, [ask["positions"], ask["inputs"], ask["shift"]])
        component("rotary", None, [ask["rotary"]])
        _panels("Positions", ask)
    with gr.Tab(wording("Prediction"), id="prediction"):
        component("masked", None, [ask["masked"]])
        functions = [ask["candidates"], ask["surprise"], ask["lens"], ask["beams"]]
        component("prediction", None, functions)
        _panels("Prediction", ask)
    with gr.Tab(wording("What if?"), id="what-if"):
        whatif_tab(ask)
        _panels("What if?", ask)
    with gr.Tab(wording("Learn"), id="learn"):
        learning = ("train", "steer", "learned", "adopt", "checkpoint")
        tasks = {one.name: {"title": one.title, "words": one.words} for one in EXERCISES.values()}
        functions = [ask[name] for name in learning]
        kept = story_moments() is not None
        component("learn", None, functions, palette=palette_stops(), tasks=tasks, moments=kept)
        if kept:
            component("moments", None, [ask["moment"]], palette=palette_stops())
        _panels("Learn", ask)
    for tab in dict.fromkeys(view.tab for view in VIEWS.values() if view.tab not in TABS):
        with gr.Tab(tab, id=tab_name(tab)):
            _panels(tab, ask)
    with gr.Tab(wording("Model"), id="model"):
        about = _model_tab(service, name, ask)
        _panels("Model", ask)
    return {"lines": lines, "show": show, "bare": bare, "view": view}, about


def _panels(tab: str, ask: dict[str, Ask]) -> None:
    """The views of a tab that have no script of their own."""
    for view in VIEWS.values():
        if view.tab == tab and not view.script:
            panel(view, ask)


def _model_tab(service: Service, name: str, ask: dict[str, Ask]) -> list[gr.Markdown]:
    """The drawing of the network, which follows the run; the card and all settings."""
    model = service.model(name)
    component("architecture", None, [ask["architecture"]])
    component("equations", None, [ask["equation"]])
    card = gr.Markdown(remade(lambda: model_card(model)), elem_id="card")
    with gr.Accordion(wording("All settings"), open=False, elem_id="all-settings"):
        table = gr.Markdown(remade(lambda: settings_table(model)), elem_id="settings-table")
    component("glossary")
    return [card, table]


def _connect_generation(service: Service, model: gr.Dropdown, left: dict[str, Any]) -> None:
    def generate(
        request: gr.Request, name: str, text: str, altered: Any, *settings: Any
    ) -> Iterator[Any]:
        visitor = str(request.session_hash)
        try:
            chosen = handlers.altered_settings(handlers.settings_of(*settings), altered)
            for facts, status, running in handlers.generate(service, visitor, name, text, chosen):
                yield _or_skip(facts), status, gr.Button(interactive=running)
        except (ValueError, RecursionError) as error:
            yield gr.skip(), handlers.problem(error), gr.Button(interactive=False)

    def stop(request: gr.Request) -> None:
        service.visitors.stop(str(request.session_hash))

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


def _connect_batch(
    service: Service, model: gr.Dropdown, masks: dict[str, Any], status: gr.HTML
) -> None:
    def read(request: gr.Request, name: str, lines: str, bare: Any = False) -> tuple[Any, Any]:
        visitor, hidden = str(request.session_hash), bare is not True
        facts, said = handlers.read_batch(service, visitor, name, lines, padding_hidden=hidden)
        return _or_skip(facts), said

    given = [model, masks["lines"]]
    asked: dict[str, Any] = {
        "fn": read,
        "outputs": [masks["view"], status],
        "concurrency_limit": AT_ONCE,
        "concurrency_id": "model",
        **PRIVATE,
    }
    masks["show"].click(inputs=given, api_name="page_batch", **asked)
    # Pressed again, it brings the mask back.
    masks["bare"].click(
        inputs=[*given, masks["bare"]], js=TOGGLED, api_name="page_batch_unpadded", **asked
    )


def _or_skip(facts: dict[str, Any] | None) -> Any:
    return gr.skip() if facts is None else facts
