"""What the page's buttons, boxes and list of models call in its scripts, and the state that a link
or another model asks for.

The page is shown as a link says, its run made again, its batch read again. So is a page that is
loaded anew, with what stood in its settings then; and another model that was chosen, with the
visitor's own texts.

controls: everything on the page that is read or changed, by name; a setting's is that of a link.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gradio as gr

from transformer.checks import is_number, shortened
from transformer.inference.model import Model
from transformer.messages import mark, say
from transformer.runs.request import request_of
from transformer.ui import handlers
from transformer.ui.components import calling, giving
from transformer.ui.errors import public_error
from transformer.ui.examples import METHODS, Example, example_of, is_offered, temperature_of
from transformer.ui.link import SETTINGS, PageState, read_link
from transformer.ui.page_data import (
    headline,
    model_card,
    run_facts,
    settings_table,
    whatif_introduction,
)
from transformer.ui.page_request import settings_of
from transformer.ui.service import Service

Changes = dict[str, Any]  # values and updates of Gradio's controls, by the control's name
# Controls that the page may not have drawn yet: they keep only the last of several changes.
OUT_OF_SIGHT = ("introduction", "headline", "card", "table", "lines", *SETTINGS)
Controls = Mapping[str, Any]
CHOSEN = ("model", "text", "lines")
# What scripts set, the chips besides.
SHOWN = (
    "model", "headline", "introduction", "card", "table", "lines", *SETTINGS, "text", "start",
    "stop",
)  # fmt: skip
PRESSES = "ui/static/presses.js"
# Pressed again, the button brings the mask back.
IS_BARE = 'document.querySelector("#without-padding").ariaPressed !== "true"'
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
EACH: dict[str, Any] = PRIVATE | {"trigger_mode": "multiple"}


def connect_buttons(controls: Controls) -> None:
    """What generates: Enter, the button, an alteration and a new seed; what stops it; and what
    reads the batch, with its padding mask or without."""
    read = [controls[name] for name in ("model", "text", "altered", *SETTINGS)]
    generate = calling(PRESSES, "generate(...values)", "...values")
    triggers = [controls["text"].submit, controls["start"].click, controls["altered"].submit]
    gr.on(triggers, None, read, None, js=generate, **PRIVATE)
    draw, seed = controls["drawn"], controls["seed"]
    drawn = draw.submit(None, draw, seed, js="(seed) => seed", **PRIVATE)
    drawn.then(None, read, None, js=generate, **PRIVATE)
    controls["stop"].click(None, None, None, js=calling(PRESSES, "stop()"), **PRIVATE)
    lines = [controls["model"], controls["lines"]]
    show = calling(PRESSES, "readBatch(model, lines)", "model", "lines")
    controls["show"].click(None, lines, None, js=show, **PRIVATE)
    bare = calling(PRESSES, f"readBatch(model, lines, {IS_BARE})", "model", "lines")
    controls["bare"].click(None, lines, None, js=bare, **PRIVATE)


def connect_choice(controls: Controls) -> None:
    """A visitor's choice in the list of models: link.js asks for another model's page.

    Gradio 6.31 tells of a choice also where the list was left without one.
    """
    given = [controls[name] for name in CHOSEN]
    choose = calling("ui/static/link.js", "chooseModel(model, { text, lines })", *CHOSEN)
    controls["model"].input(None, given, None, js=choose, **PRIVATE)


def connect_link(controls: Controls) -> None:
    """A state that the page's script opens, with the values of the settings; and what the script
    sets: the header is the component whose events carry both."""
    header, settings = controls["share"], [controls[setting] for setting in SETTINGS]
    open_state = calling("ui/static/link.js", "openState(...values)", "...values")
    header.submit(None, [header, *settings], None, js=open_state, **EACH)
    names = [*SHOWN, *(name for name in controls if name.startswith("chip "))]
    outputs = [controls[name] for name in names]
    module = "ui/static/gradio.js"
    setting = header.input(
        None, header, outputs, js=giving(module, f"outputsOf(changes, {names})", "changes"), **EACH
    )
    setting.then(None, None, None, js=calling(module, "controlsSet()"), **EACH)


STORED = mark("A stored example, read by this model.")


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
    """Yields the lines of an answer (see `presses`), the last of it what the state says of the
    views.

    query: the state, as a link writes it. settings: what stands in the page's controls, for what
    the state does not say. typed: what is to stand in boxes and controls in the end, by name.
    known: the id of a run that may be the one that is wanted. reads: what was typed is read, unless
    it is a text of ours. What cannot be had becomes a sentence; the rest of the state is used.
    """
    typed = typed or {}
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
        yield {"told": _told({}, [public_error(error)["detail"]])}
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
    furnished["model"] = updated(choices=service.names(visitor), value=name)
    now = {box: value for box, value in furnished.items() if box not in OUT_OF_SIGHT}
    yield {"controls": now, "status": handlers.said("done", say(STORED))}
    run, batch = handlers.example(service, name)
    if link.asks_for_a_run:
        text = example.text if link.text is None else link.text
        for changes, facts, problem in _made(service, visitor, name, text, values, link, known):
            run = facts or run
            problems += [problem] if problem else []
            problems += [say("A stored example is shown.")] if problem and reads else []
            yield changes
    if link.lines is not None:
        facts, said = handlers.read_batch(service, visitor, name, link.lines)
        batch = facts or batch
        problems += [said["text"]] if facts is None else []
    boxes = {box: typed[box] for box in ("text", "lines") if box in typed}
    late = {name: furnished[name] for name in OUT_OF_SIGHT} | boxes
    told = _told(link.view, problems, run=run["run"])
    yield {"controls": late, "tokens": run, "batch": batch, "told": told}


def updated(**properties: Any) -> dict[str, Any]:
    """An update of a control, as Gradio's page reads it."""
    return {"__type__": "update", **properties}


def _furnished(
    model: Model, link: PageState, example: Example, values: Mapping[str, Any]
) -> Changes:
    """The controls as the link says, and the words that belong to the model."""
    methods = [(say(METHODS[method]), method) for method in example.methods]
    chips = {f"chip {place}": updated(value=text) for place, text in enumerate(example.suggestions)}
    text = example.text if link.text is None else link.text
    return chips | {
        **{setting: values[setting] for setting in SETTINGS},
        "method": updated(choices=methods, value=values["method"]),
        "headline": headline(model),
        "introduction": whatif_introduction(model),
        "card": model_card(model),
        "table": settings_table(model),
        "text": updated(value=text, label=say(example.label)),
        "start": updated(value=say(example.action)),
        "lines": "\n".join(example.batch) if link.lines is None else link.lines,
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
            yield {**shown, "status": status, "running": running}, done, problem
    except ValueError as error:
        told = handlers.problem(error)
        yield {"status": told}, None, told["text"]


def _told(view: dict[str, str], problems: Sequence[str], run: str | None = None) -> dict[str, Any]:
    """For the page's script: what the views show of the run, and what was wrong."""
    sentences = [
        problem if problem.endswith((".", "。")) else say("{sentence}.", sentence=problem)
        for problem in problems
    ]
    return {"view": view, "problems": sentences, "run": run}
