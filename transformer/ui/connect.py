"""What the page's buttons, boxes and list of models call, and the link that it was opened with.

The page is shown as a link says, its run made again, its batch read again. So is a page that lost
its server and is loaded anew, with what stood in its settings then; and another model that was
chosen, with the visitor's own texts.

controls: everything on the page that is read or changed, by name; a setting's is that of a link.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gradio as gr

from transformer.checks import is_number, shortened
from transformer.inference.model import Model
from transformer.messages import say
from transformer.runs.request import request_of
from transformer.ui import handlers
from transformer.ui.components import calling
from transformer.ui.errors import public_error
from transformer.ui.examples import METHODS, Example, example_of, is_offered, temperature_of
from transformer.ui.limits import AT_ONCE
from transformer.ui.link import SETTINGS, PageState, read_link, read_typed
from transformer.ui.page_data import (
    headline,
    model_card,
    run_facts,
    settings_table,
    whatif_introduction,
)
from transformer.ui.page_request import settings_of
from transformer.ui.service import Service

Changes = dict[str, Any]  # what changes on the page, by the control's name
# Controls that the page may not have drawn yet: they keep only the last part of an answer in parts.
OUT_OF_SIGHT = ("introduction", "card", "table", "lines", *SETTINGS)
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
        trigger_mode="multiple",  # link.js asks one question at a time
        api_name="page_open",
        **RUNS,
    )


def _or_skip(facts: dict[str, Any] | None) -> Any:
    return gr.skip() if facts is None else facts


def opened(
    service: Service,
    visitor: str,
    query: Any,
    settings: Mapping[str, Any],
    typed: Mapping[str, Any] | None = None,
    known: Any = None,
    *,
    reads: bool = False,
) -> Iterator[Changes]:
    """Yields what changes on the page, the last of it what the state says of the views.

    query: the state, as a link writes it. settings: what stands in the page's controls, for what
    the state does not say. typed: what is to stand in boxes and controls in the end, by name.
    known: the id of a run that may be the one that is wanted. reads: what was typed is read, unless
    it is a text of ours. What cannot be had becomes a sentence; the rest of the state is used.
    """
    typed = typed or {}
    service.sessions.stop(visitor)
    try:
        for setting, got in settings.items():  # what cannot stand in the page's controls
            if setting != "method" and not (got is None or is_number(got)):
                raise ValueError(f"{setting} must be a number; got {shortened(got)}")
        link = read_link(query)
        if reads:  # the texts that were typed, where they are the visitor's own
            models = [*service.models.values(), *(own.model for own in service.own.of(visitor))]
            texts = {name: typed[name] for name in ("text", "lines") if name in typed}
            own = {name: text for name, text in texts.items() if not is_offered(text, models)}
            link, typed = dataclasses.replace(link, **own), {}
    except ValueError as error:
        yield {"share": _told({}, [public_error(error)["detail"]], query=query)}
        return
    name, problems = next(iter(service.models)), list(link.problems)
    try:
        name = service.model(link.model or name, visitor).name
    except ValueError as error:
        problems.append(public_error(error)["detail"])
    example = example_of(service.model(name))
    values = {**settings, "method": example.methods[0]}
    lengths = {example_of(one).settings["max_new_tokens"] for one in service.models.values()}
    if reads and settings.get("length") in lengths:  # another model was chosen, this left alone
        values["length"] = example.settings["max_new_tokens"]
    values |= link.settings
    if values["method"] not in example.methods:
        allowed, got = list(example.methods), shortened(values["method"])
        problems.append(
            say(
                "The link's {name} must be one of {allowed}; got {text}.",
                name="method",
                allowed=allowed,
                text=got,
            )
        )
        values["method"] = example.methods[0]
    values["temperature"] = temperature_of(
        values["method"], link.settings.get("temperature", values["temperature"] or None)
    )
    shown = values | {name: value for name, value in typed.items() if name in SETTINGS}
    if shown["method"] not in example.methods:  # another model had it
        shown["method"] = values["method"]
    furnished = _furnished(service.model(name), link, example, shown)
    furnished["model"] = gr.Dropdown(choices=service.names(visitor), value=name)
    yield furnished
    run, batch = handlers.example(service, name)
    if link.asks_for_a_run:
        text = example.text if link.text is None else link.text
        for changes, facts, problem in _made(service, visitor, name, text, values, link, known):
            run = facts or run
            problems += [problem] if problem else []
            problems += [say("A stored example is shown.")] if problem and reads else []
            yield changes
    yield {"tokens": run}
    if link.lines is not None:
        facts, said = handlers.read_batch(service, visitor, name, link.lines)
        batch = facts or batch
        problems += [said["text"]] if facts is None else []
    pictured = {"run": run["run"], "batch": batch["batch"], "lines": batch["link"]}
    told = _told(link.view, problems, query=query, **pictured)
    boxes = {box: typed[box] for box in ("text", "lines") if box in typed}
    yield {n: furnished[n] for n in OUT_OF_SIGHT} | boxes | {"masks": batch, "share": told}


def _furnished(
    model: Model, link: PageState, example: Example, values: Mapping[str, Any]
) -> Changes:
    """The controls as the link says, and the words that belong to the model."""
    methods = [(say(METHODS[method]), method) for method in example.methods]
    chips = {f"chip {place}": gr.Button(text) for place, text in enumerate(example.suggestions)}
    text = example.text if link.text is None else link.text
    return chips | {
        **{setting: values[setting] for setting in SETTINGS},
        "method": gr.Radio(choices=methods, value=values["method"]),
        "headline": headline(model),
        "introduction": whatif_introduction(model),
        "card": model_card(model),
        "table": settings_table(model),
        "text": gr.Textbox(value=text, label=say(example.label)),
        "start": gr.Button(say(example.action)),
        "lines": "\n".join(example.batch) if link.lines is None else link.lines,
        "status": handlers.said("done", say("A stored example, read by this model.")),
    }


def _made(
    service: Service,
    visitor: str,
    name: str,
    text: str,
    values: Mapping[str, Any],
    link: PageState,
    known: Any,
) -> Iterator[tuple[Changes, dict[str, Any] | None, str | None]]:
    """Yields (changes, facts of the finished run or None, what was wrong or None)."""
    try:
        chosen = settings_of(values, link.altered)
        stored = service.store.run(service.example(name)[0])
        if stored.config.family == "encoder" and stored.request.text == text:
            return
        request = request_of(text, chosen)
        if stored.request == request:
            return
        run = service.store.run(known) if service.store.has(known) else None
        if run is not None and (run.model, run.request) == (name, request):
            status = handlers.said("done", say("Shown again."))
            yield {"status": status}, run_facts(run, known, service.model(name)), None
            return
        for facts, status, running in handlers.generate(service, visitor, name, text, chosen):
            done = facts if facts and facts["run"] else None
            shown = {} if facts is None or done else {"tokens": facts}
            problem = status["text"] if status["kind"] == "error" else None
            yield {**shown, "status": status, "stop": gr.Button(interactive=running)}, done, problem
    except ValueError as error:
        told = handlers.problem(error)
        yield {"status": told}, None, told["text"]


def _told(view: dict[str, str], problems: Sequence[str], **shown: Any) -> dict[str, Any]:
    """For the page's script: what was asked, what to show of which run and batch, and what was
    wrong."""
    sentences = [
        problem if problem.endswith((".", "。")) else say("{sentence}.", sentence=problem)
        for problem in problems
    ]
    return {"view": view, "problems": sentences, **shown, "at": time.monotonic_ns()}
