"""The page: what stands where, and which handler each control calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr
from plotly.colors import hex_to_rgb, sequential

from transformer.inference.beam import MAX_BEAMS
from transformer.ui import handlers, views
from transformer.ui.api import add_endpoints
from transformer.ui.components import PLOTLY_JS, component
from transformer.ui.examples import METHODS, Example, example_of, is_offered
from transformer.ui.facts import headline, model_card, settings_table
from transformer.ui.limits import AT_ONCE, MAX_NEW_TOKENS, MAX_WAITING
from transformer.ui.service import Service

TITLE = "Transformer, seen from inside"
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}


def build(service: Service) -> gr.Blocks:
    """The page and its API, ready to launch."""
    gr.set_static_paths([PLOTLY_JS])
    with gr.Blocks(title=TITLE, fill_width=True, analytics_enabled=False) as page:
        _lay_out(service)
        add_endpoints(service)
    page.queue(max_size=MAX_WAITING)
    return page


def _lay_out(service: Service) -> None:
    name = next(iter(service.models))
    model, headline_text = _top_line(service, name)
    run, batch = handlers.example(service, name)
    place = {"run": run["run"], "stack": run["kinds"][0]["stack"], "kind": run["kinds"][0]["kind"]}
    first = place | views.atlas(service.store, **place)
    site = f"{place['stack']}.0.{place['kind']}"
    views.heatmap(service.store, run=run["run"], site=site, head=0)  # Plotly's first figure is slow
    with gr.Row(elem_id="columns"):
        with gr.Column(elem_id="left"):
            left = _left(example_of(service.model(name)), run)
        with gr.Column(elem_id="right"), gr.Tabs():
            masks, about = _right(service, name, batch, first)
    _connect_generation(service, model, left)
    _connect_batch(service, model, masks, left["status"])
    _connect_choice(service, model, headline_text, left, masks, about)


def _top_line(service: Service, name: str) -> tuple[gr.Dropdown, gr.Markdown]:
    with gr.Row(elem_id="top"):
        gr.Markdown(f"# {TITLE}")
        model = gr.Dropdown(
            list(service.models), value=name, show_label=False, label="Model", elem_id="model",
            container=False, filterable=False,
        )  # fmt: skip
        headline_text = gr.Markdown(headline(service.model(name)), elem_id="headline")
    return model, headline_text


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
    """Method and its numbers, length, seed: in the order of `handlers.settings_of`."""
    with gr.Accordion("Settings", open=False, elem_id="settings"):
        method = gr.Radio(**_methods(example), label="Method", elem_id="method")
        with gr.Row():
            temperature = gr.Number(0.7, label="Temperature", min_width=90)
            top_k = gr.Number(40, label="Top-k (0 = off)", precision=0, min_width=90)
            top_p = gr.Number(1, label="Top-p (1 = off)", min_width=90)
        with gr.Row():
            beams = gr.Number(4, label=f"Beams (to {MAX_BEAMS})", precision=0, min_width=120)
            penalty = gr.Number(1, label="Length penalty", min_width=120)
        with gr.Row():
            length = gr.Number(
                40, label=f"New tokens (to {MAX_NEW_TOKENS})", precision=0, min_width=120,
                elem_id="length",
            )  # fmt: skip
            seed = gr.Number(3, label="Seed", precision=0, min_width=120)
    return [method, temperature, top_k, top_p, beams, penalty, length, seed]


def _methods(example: Example) -> dict[str, Any]:
    choices = [(METHODS[name], name) for name in example.methods]
    return {"choices": choices, "value": example.methods[0]}


def _right(
    service: Service, name: str, batch: dict[str, Any], first: dict[str, Any]
) -> tuple[dict[str, Any], list[gr.Markdown]]:
    """The tabs. A picture is asked for only when its tab is first seen.

    first: the small pictures of all heads of the stored run, for the first glance.
    """
    ask = {view.__name__: views.server_function(service.store, view) for view in views.VIEWS}
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
        show = gr.Button("Show the masks", variant="primary", size="sm", elem_id="show-masks")
        view = component(
            "masks", batch, [ask["padded"], ask["mask"], ask["heatmap"], ask["removal"]]
        )
    with gr.Tab("Positions", id="positions-tab"):
        component("positions", None, [ask["positions"], ask["inputs"], ask["shift"]])
    with gr.Tab("Prediction", id="prediction-tab"):
        functions = [ask["candidates"], ask["surprise"], ask["lens"], ask["tree"]]
        component("prediction", None, functions)
    with gr.Tab("Model", id="model-tab"):
        about = _model_tab(service, name, ask)
    return {"lines": lines, "show": show, "view": view}, about


def _model_tab(service: Service, name: str, ask: dict[str, Any]) -> list[gr.Markdown]:
    """The drawing of the network, which follows the run; the card and all settings."""
    model = service.model(name)
    component("architecture", None, [ask["architecture"]])
    card = gr.Markdown(model_card(model), elem_id="card")
    with gr.Accordion("All settings", open=False, elem_id="all-settings"):
        table = gr.Markdown(settings_table(model), elem_id="settings-table")
    return [card, table]


def _connect_generation(service: Service, model: gr.Dropdown, left: dict[str, Any]) -> None:
    stops = handlers.Stops()

    def generate(request: gr.Request, name: str, text: str, *settings: Any) -> Iterator[Any]:
        visitor = str(request.session_hash)
        flag = stops.start(visitor)
        try:
            chosen = handlers.settings_of(*settings)
            for facts, status, running in handlers.generate(service, flag, name, text, chosen):
                yield _or_skip(facts), status, gr.Button(interactive=running)
        except ValueError as error:
            yield gr.skip(), handlers.problem(error), gr.Button(interactive=False)
        finally:
            stops.end(visitor, flag)

    def stop(request: gr.Request) -> None:
        stops.stop(str(request.session_hash))

    gr.on(
        [left["text"].submit, left["start"].click],
        generate,
        [model, left["text"], *left["settings"]],
        [left["tokens"], left["status"], left["stop"]],
        concurrency_limit=AT_ONCE,
        concurrency_id="model",
        trigger_mode="once",
        api_name="page_generate",
        **PRIVATE,
    )
    left["stop"].click(stop, None, None, queue=False, api_name="page_stop", **PRIVATE)


def _connect_batch(
    service: Service, model: gr.Dropdown, masks: dict[str, Any], status: gr.HTML
) -> None:
    def read(name: str, lines: str) -> tuple[Any, Any]:
        facts, said = handlers.read_batch(service, name, lines)
        return _or_skip(facts), said

    masks["show"].click(
        read,
        [model, masks["lines"]],
        [masks["view"], status],
        concurrency_limit=AT_ONCE,
        concurrency_id="model",
        api_name="page_batch",
        **PRIVATE,
    )


def _connect_choice(
    service: Service,
    model: gr.Dropdown,
    headline_text: gr.Markdown,
    left: dict[str, Any],
    masks: dict[str, Any],
    about: list[gr.Markdown],
) -> None:
    """Another model: its stored example at once; a text of the visitor's own stays."""

    def pick(name: str, text: str, lines: str) -> tuple[Any, ...]:
        chosen = service.model(name)
        example = example_of(chosen)
        models = service.models.values()
        own = not is_offered(text, models)
        run, batch = handlers.example(service, name)
        kept = " Your text is kept." if own else ""
        return (
            headline(chosen),
            model_card(chosen),
            settings_table(chosen),
            run,
            batch,
            handlers.said("done", f"{name}: a stored example.{kept}"),
            gr.Textbox(value=text if own else example.text, label=example.label),
            *(gr.Button(suggestion) for suggestion in example.suggestions),
            gr.Button(example.action),
            gr.Radio(**_methods(example)),
            "\n".join(example.batch) if is_offered(lines, models) else lines,
        )

    outputs = [
        headline_text, *about, left["tokens"], masks["view"], left["status"], left["text"],
        *left["chips"], left["start"], left["settings"][0], masks["lines"],
    ]  # fmt: skip
    inputs = [model, left["text"], masks["lines"]]
    model.change(pick, inputs, outputs, api_name="page_model", **PRIVATE)


def _or_skip(facts: dict[str, Any] | None) -> Any:
    return gr.skip() if facts is None else facts
