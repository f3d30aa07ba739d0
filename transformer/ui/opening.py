"""Opening a share link: the page as the link says, its run made again, its batch read again.

So is a page that lost its server and is loaded anew: with what stood in its settings then.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gradio as gr

from transformer.inference.request import request_of
from transformer.ui import handlers
from transformer.ui.choosing import Changes, words_of
from transformer.ui.examples import Example, example_of
from transformer.ui.limits import AT_ONCE
from transformer.ui.link import SETTINGS, Link, read_link, read_settings
from transformer.ui.service import Service

# Controls that the page may not have drawn yet: they keep only the last part of an answer in parts.
OUT_OF_SIGHT = ("card", "table", "lines", *SETTINGS)


def connect_links(service: Service, controls: Mapping[str, Any]) -> None:
    """The page's script sends the link that the page was opened with, if it was; nothing else runs
    when a page opens. controls: by name, `choosing.controls_of` and "share"."""

    def open_link(request: gr.Request, sent: Any, *values: Any) -> Iterator[Any]:
        asked = sent if isinstance(sent, dict) else {"query": sent}
        query, kept = asked.get("query"), read_settings(asked.get("kept"))
        for changes in opened(service, str(request.session_hash), query, values, kept):
            yield {controls[name]: value for name, value in changes.items()}

    controls["share"].submit(
        open_link,
        [controls["share"], *(controls[setting] for setting in SETTINGS)],
        list(controls.values()),
        concurrency_limit=AT_ONCE,
        concurrency_id="model",
        trigger_mode="once",
        api_name="page_open",
        api_visibility="private",
        show_progress="hidden",
        preprocess=False,
    )


def opened(
    service: Service,
    visitor: str,
    query: Any,
    settings: Sequence[Any],
    kept: Mapping[str, Any] | None = None,
) -> Iterator[Changes]:
    """Yields what changes on the page, the last of it what the link says of the views.

    settings: what stands in the page's controls, for what the link does not say. kept: what is to
    stand in them in the end, by name. What the link asks for and cannot be had becomes a sentence;
    the rest of it is used.
    """
    try:
        link = read_link(query)
        name, problems = _model(service, link)
    except ValueError as error:
        yield {"share": _told({}, [str(error)])}
        return
    example = example_of(service.model(name))
    values = dict(zip(SETTINGS, settings, strict=True)) | {"method": example.methods[0]}
    values |= link.settings
    if values["method"] not in example.methods:
        allowed = list(example.methods)
        problems.append(f"The link's method must be one of {allowed}; got {values['method']!r}.")
        values["method"] = example.methods[0]
    furnished = _furnished(service, name, link, example, _standing(values, kept or {}, example))
    yield furnished
    run, batch = handlers.example(service, name)
    if link.asks_for_a_run:
        text = example.text if link.text is None else link.text
        for changes, facts, problem in _made(service, visitor, name, text, values, link):
            run = facts or run
            problems += [problem] if problem else []
            yield changes
    yield {"tokens": run}
    if link.lines is not None:
        facts, said = handlers.read_batch(service, visitor, name, link.lines)
        batch = facts or batch
        problems += [said["text"]] if facts is None else []
    told = _told(link.view, problems, run=run["run"], batch=batch["batch"], lines=batch["link"])
    yield {name: furnished[name] for name in OUT_OF_SIGHT} | {"masks": batch, "share": told}


def _standing(
    values: Mapping[str, Any], kept: Mapping[str, Any], example: Example
) -> dict[str, Any]:
    """What the controls show; a method that was kept of another model's is left out."""
    of_another = kept.get("method") not in (None, *example.methods)
    return {**values, **kept, **({"method": values["method"]} if of_another else {})}


def _model(service: Service, link: Link) -> tuple[str, list[str]]:
    """Which of the models, and what was wrong so far."""
    problems = list(link.problems)
    try:
        return service.model(link.model or next(iter(service.models))).name, problems
    except ValueError as error:
        return next(iter(service.models)), [*problems, f"The link's {error}."]


def _furnished(
    service: Service, name: str, link: Link, example: Example, values: Mapping[str, Any]
) -> Changes:
    """The controls as the link says, and the words that belong to the model."""
    words = words_of(service.model(name))
    text = example.text if link.text is None else link.text
    return words | {
        **{setting: values[setting] for setting in SETTINGS if setting != "method"},
        "model": name,
        "text": gr.Textbox(value=text, label=example.label),
        "method": gr.Radio(choices=words["method"].choices, value=values["method"]),
        "lines": "\n".join(example.batch) if link.lines is None else link.lines,
        "status": handlers.said("done", f"{name}: a stored example."),
    }


def _made(
    service: Service, visitor: str, name: str, text: str, values: Mapping[str, Any], link: Link
) -> Iterator[tuple[Changes, dict[str, Any] | None, str | None]]:
    """Yields (changes, facts of the finished run or None, what was wrong or None)."""
    try:
        settings = handlers.settings_of(*(values[setting] for setting in SETTINGS))
        altered = {"interventions": link.interventions, "taken": link.taken}
        chosen = handlers.altered_settings(settings, altered)
        if _is_stored(service, name, text, chosen):
            return
        for facts, status, running in handlers.generate(service, visitor, name, text, chosen):
            done = facts if facts and facts["run"] else None
            shown = {} if facts is None or done else {"tokens": facts}
            problem = status["text"] if status["kind"] == "error" else None
            yield {**shown, "status": status, "stop": gr.Button(interactive=running)}, done, problem
    except ValueError as error:
        yield {"status": handlers.problem(error)}, None, str(error)


def _is_stored(service: Service, name: str, text: str, settings: dict[str, Any]) -> bool:
    """Whether this is the request of the model's stored run."""
    stored = service.store.run(service.examples[name][0])
    if stored.config.family == "encoder":
        return stored.request.text == text
    return stored.request == request_of(text, settings)


def _told(view: dict[str, str], problems: Sequence[str], **shown: Any) -> dict[str, Any]:
    """For the page's script: what to show of which run and batch, and what was wrong."""
    sentences = [problem if problem.endswith(".") else f"{problem}." for problem in problems]
    return {"view": view, "problems": sentences, **shown, "at": time.monotonic_ns()}
