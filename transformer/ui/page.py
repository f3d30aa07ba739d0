"""The page: what stands where, and which handler each control calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr
from plotly.colors import hex_to_rgb, sequential

from transformer.inference.beam import MAX_BEAMS
from transformer.ui import handlers, views
from transformer.ui.api import add_endpoints
from transformer.ui.choosing import connect_choice, controls_of
from transformer.ui.components import PLOTLY_JS, component
from transformer.ui.examples import METHODS, Example, example_of
from transformer.ui.experiments import Experiments
from transformer.ui.facts import headline, model_card, settings_table
from transformer.ui.limits import AT_ONCE, MAX_NEW_TOKENS, MAX_WAITING
from transformer.ui.opening import connect_links
from transformer.ui.service import Service
from transformer.ui.whatif_page import whatif_tab

TITLE = "Transformer, seen from inside"
# preprocess: the handlers check every value themselves, with the sentences that the API gives too.
PRIVATE: dict[str, Any] = {
    "api_visibility": "private", "show_progress": "hidden", "preprocess": False,
}  # fmt: skip


def build(service: Service) -> gr.Blocks:
    """The page and its API, ready to launch."""
    gr.set_static_paths([PLOTLY_JS])
    with gr.Blocks(title=TITLE, fill_width=True, analytics_enabled=False) as page:
        experiments = Experiments(service)
        _lay_out(experiments)
        add_endpoints(service, experiments)
    page.queue(max_size=MAX_WAITING, api_open=False)  # else programs could go past the queue
    return page


def _lay_out(experiments: Experiments) -> None:
    service = experiments.service
    name = next(iter(service.models))
    model, headline_text, share = _top_line(service, name)
    run, batch = handlers.example(service, name)
    place = {"run": run["run"], "stack": run["kinds"][0]["stack"], "kind": run["kinds"][0]["kind"]}
    first = place | views.atlas(service.store, **place)
    site = f"{place['stack']}.0.{place['kind']}"
    views.heatmap(service.store, run=run["run"], site=site, head=0)  # Plotly's first figure is slow
    with gr.Row(elem_id="columns"):
        with gr.Column(elem_id="left"):
            left = _left(example_of(service.model(name)), run)
            component("exports", None, [views.server_function(service.store, views.export)])
        with gr.Column(elem_id="right"):
            left["altered"] = component("altered", handlers.INTACT)
            with gr.Tabs():
                masks, about = _right(experiments, name, batch, first)
    _connect_generation(service, model, left)
    _connect_batch(service, model, masks, left["status"])
    controls = controls_of(model, headline_text, left, masks, about)
    connect_choice(service, controls)
    connect_links(service, controls | {"share": share})


def _top_line(service: Service, name: str) -> tuple[gr.Dropdown, gr.Markdown, gr.HTML]:
    with gr.Row(elem_id="top"):
        gr.Markdown(f"# {TITLE}")
        model = gr.Dropdown(
            list(service.models), value=name, show_label=False, label="Model", elem_id="model",
            container=False, filterable=False,
        )  # fmt: skip
        share = component("share", space=os.environ.get("SPACE_ID"))
        headline_text = gr.Markdown(headline(service.model(name)), elem_id="headline")
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
        stop = gr.Button("Stop", interactive=False, elem_id="stop")
    settings = _settings(example)
    status = component("status", handlers.said("done", "A stored example, made by this model."))
    tokens = component("tokens", run)
    component("hypotheses")
    return {
        "text": text, "chips": chips, "start": start, "stop": stop, "settings": settings,
        "status": status, "tokens": tokens,
    }  # fmt: skip


def _settings(example: Example) -> list[Any]:
    """Method and its numbers, length, seed: in the order of `handlers.settings_of`.

    The page's scripts know each number by its class, setting-NAME with its name in a link.
    """
    with gr.Accordion("Settings", open=False, elem_id="settings"):
        method = gr.Radio(**_methods(example), label="Method", elem_id="method")
        with gr.Row():
            temperature = _number("temperature", 0.7, "Temperature", 90)
            top_k = _number("top_k", 40, "Top-k (0 = off)", 90, precision=0)
            top_p = _number("top_p", 1, "Top-p (1 = off)", 90)
        with gr.Row():
            beams = _number("beams", 4, f"Beams (to {MAX_BEAMS})", 120, precision=0)
            penalty = _number("penalty", 1, "Length penalty", 120)
        with gr.Row():
            length = _number(
                "length", 40, f"New tokens (to {MAX_NEW_TOKENS})", 120, precision=0,
                elem_id="length",
            )  # fmt: skip
            seed = _number("seed", 3, "Seed", 120, precision=0)
    return [method, temperature, top_k, top_p, beams, penalty, length, seed]


def _number(name: str, value: float, label: str, min_width: int, **more: Any) -> gr.Number:
    return gr.Number(
        value, label=label, min_width=min_width, elem_classes=[f"setting-{name}"], **more
    )


def _methods(example: Example) -> dict[str, Any]:
    choices = [(METHODS[name], name) for name in example.methods]
    return {"choices": choices, "value": example.methods[0]}


def _right(
    experiments: Experiments, name: str, batch: dict[str, Any], first: dict[str, Any]
) -> tuple[dict[str, Any], list[gr.Markdown]]:
    """The tabs. A picture is asked for only when its tab is first seen.

    first: the small pictures of all heads of the stored run, for the first glance.
    """
    service = experiments.service
    ask = views.functions(service.store)
    palette = [list(hex_to_rgb(colour)) for colour in sequential.Cividis]
    with gr.Tab("Attention", id="attention-tab"):
        functions = [ask["atlas"], ask["heatmap"], ask["alignment"], ask["flow"], ask["lines"]]
        component("attention", None, functions, palette=palette, first=first)
        component("ranking", None, [ask["metrics"], ask["metric_map"]])
        component("worked", None, [ask["worked"]])
    with gr.Tab("Masks", id="masks-tab"):
        lines = gr.Textbox(
            "\n".join(example_of(service.model(name)).batch), label="Sentences, one a line",
            lines=3, max_lines=8, elem_id="lines",
        )  # fmt: skip
        with gr.Row(elem_id="read-batch"):
            show = gr.Button("Show the masks", variant="primary", size="sm", elem_id="show-masks")
            bare = gr.Button(
                "What if there were no padding mask?", size="sm", elem_id="without-padding"
            )
        view = component(
            "masks", batch, [ask["padded"], ask["mask"], ask["heatmap"], ask["removal"]]
        )
    with gr.Tab("Positions", id="positions-tab"):
        component("positions", None, [ask["positions"], ask["inputs"], ask["shift"]])
    with gr.Tab("Prediction", id="prediction-tab"):
        functions = [ask["candidates"], ask["surprise"], ask["lens"], ask["tree"]]
        component("prediction", None, functions)
    whatif_tab(experiments, ask)
    with gr.Tab("Model", id="model-tab"):
        about = _model_tab(service, name, ask)
    return {"lines": lines, "show": show, "bare": bare, "view": view}, about


def _model_tab(service: Service, name: str, ask: dict[str, Any]) -> list[gr.Markdown]:
    """The drawing of the network, which follows the run; the card and all settings."""
    model = service.model(name)
    component("architecture", None, [ask["architecture"]])
    card = gr.Markdown(model_card(model), elem_id="card")
    with gr.Accordion("All settings", open=False, elem_id="all-settings"):
        table = gr.Markdown(settings_table(model), elem_id="settings-table")
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

    gr.on(
        [left["text"].submit, left["start"].click, left["altered"].submit],
        generate,
        [model, left["text"], left["altered"], *left["settings"]],
        [left["tokens"], left["status"], left["stop"]],
        concurrency_limit=AT_ONCE,
        concurrency_id="model",
        trigger_mode="once",
        api_name="page_generate",
        **PRIVATE,
    )
    left["stop"].click(stop, None, None, concurrency_limit=None, api_name="page_stop", **PRIVATE)


def _connect_batch(
    service: Service, model: gr.Dropdown, masks: dict[str, Any], status: gr.HTML
) -> None:
    def read(padding_hidden: bool) -> Callable[..., tuple[Any, Any]]:
        def answer(request: gr.Request, name: str, lines: str) -> tuple[Any, Any]:
            visitor = str(request.session_hash)
            facts, said = handlers.read_batch(
                service, visitor, name, lines, padding_hidden=padding_hidden
            )
            return _or_skip(facts), said

        return answer

    buttons = {"page_batch": ("show", True), "page_batch_unpadded": ("bare", False)}
    for api_name, (button, padding_hidden) in buttons.items():
        masks[button].click(
            read(padding_hidden),
            [model, masks["lines"]],
            [masks["view"], status],
            concurrency_limit=AT_ONCE,
            concurrency_id="model",
            api_name=api_name,
            **PRIVATE,
        )


def _or_skip(facts: dict[str, Any] | None) -> Any:
    return gr.skip() if facts is None else facts
