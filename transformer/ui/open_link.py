"""Opening a share link: the page as the link says, its run made again, its batch read again.

So is a page that lost its server and is loaded anew, with what stood in its settings then; and
another model that was chosen, with the visitor's own texts.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gradio as gr

from transformer.messages import invalid, say, translated
from transformer.runs.request import request_of
from transformer.ui import handlers
from transformer.ui.connect import Changes, words_of
from transformer.ui.examples import Example, example_of, is_offered
from transformer.ui.limits import AT_ONCE
from transformer.ui.link import SETTINGS, PageState, read_link, read_typed
from transformer.ui.page_data import run_facts
from transformer.ui.page_request import settings_of
from transformer.ui.service import Service

# Controls that the page may not have drawn yet: they keep only the last part of an answer in parts.
OUT_OF_SIGHT = ("card", "table", "lines", *SETTINGS)


def connect_links(service: Service, controls: Mapping[str, Any]) -> None:
    """The page's script sends the link that the page was opened with, if it was; nothing else runs
    when a page opens. controls: by name, `connect.controls_of` and "share"."""

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
        list(controls.values()),
        concurrency_limit=AT_ONCE,
        concurrency_id="model",
        trigger_mode="multiple",  # gradio.js asks one question at a time
        api_name="page_open",
        api_visibility="private",
        show_progress="hidden",
        preprocess=False,
    )


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
        _check_standing(settings)
        link = read_link(query)
        if reads:
            link, typed = _reading(service, visitor, link, typed), {}
        name, problems = _model(service, visitor, link)
    except ValueError as error:
        yield {"share": _told({}, [translated(error)], query=query)}
        return
    example = example_of(service.model(name))
    values = {**settings, "method": example.methods[0]}
    if reads and settings.get("length") in _offered_lengths(service):  # another model was chosen
        values["length"] = example.settings["max_new_tokens"]
    values |= link.settings
    if values["method"] not in example.methods:
        problems.append(_no_method(values["method"], example))
        values["method"] = example.methods[0]
    furnished = _furnished(service, name, link, example, _standing(values, typed, example))
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
    shown = {"run": run["run"], "batch": batch["batch"], "lines": batch["link"]}
    told = _told(link.view, problems, query=query, **shown)
    boxes = {box: typed[box] for box in ("text", "lines") if box in typed}
    yield {n: furnished[n] for n in OUT_OF_SIGHT} | boxes | {"masks": batch, "share": told}


def _no_method(got: Any, example: Example) -> str:
    return say(
        "The link's method must be one of {allowed}; got {got}.",
        allowed=list(example.methods),
        got=repr(got),
    )


def _offered_lengths(service: Service) -> set[int]:
    """How long the examples go on: a visitor who left the control alone has one of these."""
    examples = (example_of(model) for model in service.models.values())
    return {example.settings["max_new_tokens"] for example in examples}


def _reading(
    service: Service, visitor: str, link: PageState, typed: Mapping[str, Any]
) -> PageState:
    """The state with the texts that were typed, where they are the visitor's own."""
    models = [*service.models.values(), *(own.model for own in service.own.of(visitor))]
    texts = {name: typed[name] for name in ("text", "lines") if name in typed}
    own = {name: text for name, text in texts.items() if not is_offered(text, models)}
    return dataclasses.replace(link, **own)


def _check_standing(settings: Mapping[str, Any]) -> None:
    """Raise ValueError for what cannot stand in the page's controls: a method, and numbers."""
    for name, got in settings.items():
        if name == "method":
            continue
        if got is not None and (isinstance(got, bool) or not isinstance(got, int | float)):
            raise invalid("{name} must be a number; got {got}", name=name, got=repr(got))


def _standing(
    values: Mapping[str, Any], typed: Mapping[str, Any], example: Example
) -> dict[str, Any]:
    """What the controls show; a method that another model had is left out."""
    of_another = typed.get("method") not in (None, *example.methods)
    own = {name: value for name, value in typed.items() if name in SETTINGS}
    return {**values, **own, **({"method": values["method"]} if of_another else {})}


def _model(service: Service, visitor: str, link: PageState) -> tuple[str, list[str]]:
    """Which of the models, and what was wrong so far."""
    problems = list(link.problems)
    try:
        return service.model(link.model or next(iter(service.models)), visitor).name, problems
    except ValueError as error:
        return next(iter(service.models)), [*problems, say("The link's {error}.", error=error)]


def _furnished(
    service: Service, name: str, link: PageState, example: Example, values: Mapping[str, Any]
) -> Changes:
    """The controls as the link says, and the words that belong to the model."""
    words = words_of(service.model(name))
    text = example.text if link.text is None else link.text
    return words | {
        **{setting: values[setting] for setting in SETTINGS if setting != "method"},
        "text": gr.Textbox(value=text, label=say(example.label)),
        "method": gr.Radio(choices=words["method"].choices, value=values["method"]),
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
        if _is_stored(service, name, text, chosen):
            return
        if _is_known(service, known, name, text, chosen):
            run = service.store.run(known)
            yield (
                {"status": handlers.said("done", say("Shown again."))},
                run_facts(run, known),
                None,
            )
            return
        for facts, status, running in handlers.generate(service, visitor, name, text, chosen):
            done = facts if facts and facts["run"] else None
            shown = {} if facts is None or done else {"tokens": facts}
            problem = status["text"] if status["kind"] == "error" else None
            yield {**shown, "status": status, "stop": gr.Button(interactive=running)}, done, problem
    except ValueError as error:
        told = handlers.problem(error)
        yield {"status": told}, None, told["text"]


def _is_stored(service: Service, name: str, text: str, settings: dict[str, Any]) -> bool:
    """Whether this is the request of the model's stored run."""
    stored = service.store.run(service.example(name)[0])
    if stored.config.family == "encoder":
        return stored.request.text == text
    return stored.request == request_of(text, settings)


def _is_known(service: Service, known: Any, name: str, text: str, settings: dict[str, Any]) -> bool:
    """Whether the store still has a run, and it is what this request makes."""
    if not service.store.has(known):
        return False
    run = service.store.run(known)
    return run.model == name and run.request == request_of(text, settings)


def _told(view: dict[str, str], problems: Sequence[str], **shown: Any) -> dict[str, Any]:
    """For the page's script: what was asked, what to show of which run and batch, and what was
    wrong."""
    sentences = [
        problem if problem.endswith((".", "。")) else say("{sentence}.", sentence=problem)
        for problem in problems
    ]
    return {"view": view, "problems": sentences, **shown, "at": time.monotonic_ns()}
