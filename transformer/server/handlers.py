"""Handlers of Enter, Generate, Stop, and so on: plain values in, plain values out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from transformer.inference.deadline import Deadline, until
from transformer.interventions.descriptions import without_padding_mask
from transformer.messages import say, say_n
from transformer.server.errors import public_error
from transformer.server.examples import shown_first
from transformer.server.limits import lines_of
from transformer.server.page_data import batch_facts, outcome, run_facts, running_facts
from transformer.server.page_request import WORDS
from transformer.server.service import Service

Progress = tuple[dict[str, Any] | None, dict[str, Any], bool]

SHOWN_EVERY_S = 0.05


def generate(
    service: Service, visitor: str, name: str, text: str, settings: dict[str, Any]
) -> Iterator[Progress]:
    """Yields (facts for the page, status, is it still running) as tokens come, then the run.

    Facts are None if the page does not change. An invalid request is a status, not an exception.
    """
    with service.sessions.request(visitor) as deadline:

        def begin() -> Iterator[Progress]:
            if service.model(name, visitor).config.family == "encoder":
                yield _read(service, visitor, name, text)
            else:
                yield from _continue(service, visitor, deadline, name, text, settings)

        try:
            yield from service.budget.attempt_steps(begin)
        except (ValueError, RecursionError) as error:
            yield None, problem(error), False


def _read(service: Service, visitor: str, name: str, text: str) -> Progress:
    run = service.read(name, text)
    done = " ".join((say("It was read; nothing was generated."), *run.warnings))
    facts = run_facts(run, service.store.put(run, visitor), service.model(name))
    return facts, said("done", done), False


def _continue(
    service: Service,
    visitor: str,
    deadline: Deadline,
    name: str,
    text: str,
    settings: dict[str, Any],
) -> Iterator[Progress]:
    """Show tokens that arrive close together at once: an update costs more than a token."""
    began = shown_at = time.monotonic()
    stream = service.stream(name, text, **settings)
    tokenizer = service.model(name).tokenizer
    ids, n_prompt = list(stream.prompt_ids), stream.n_prompt

    def progress(busy: str) -> Progress:
        probabilities = [step.chosen.probability for step in stream.steps]
        facts = running_facts(tokenizer, stream.source_ids, ids, n_prompt, probabilities)
        return facts, said("busy", busy), True

    is_search = stream.request.beams > 1  # which has no steps before it is finished
    yield progress(say("Searching …") if is_search else say("Generating …"))
    for step in () if is_search else stream:
        ids.append(step.token)
        if deadline.is_over():
            break
        if time.monotonic() >= shown_at + SHOWN_EVERY_S:
            most, n = settings["max_new_tokens"], len(stream.steps)
            yield progress(say("Generating … {n} of {most}", n=n, most=most))
            shown_at = time.monotonic()
    deadline.is_over()  # a cancelled request may have ended the steps itself
    with until(deadline):
        if is_search:
            list(stream)
        run = service.finish(stream)
        done = outcome(run, time.monotonic() - began)
        if (joined := service.one_by_one(name, text, **settings)) is not None:
            alone = say("Translated one sentence at a time, as in training: {text}", text=joined)
            done = f"{done} {alone}"
    facts = run_facts(run, service.store.put(run, visitor), service.model(name))
    yield facts, said("done", done), False


def read_batch(
    service: Service, visitor: str, name: str, text: str, *, padding_hidden: bool = True
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """(facts, status) for the lines that a visitor typed; facts are None on an error.

    padding_hidden False: read by the network without its padding masks.
    """
    try:
        service.model(name, visitor)
        with service.sessions.request(visitor) as deadline, until(deadline):
            config = service.model(name).config
            open_to_padding = () if padding_hidden else without_padding_mask(config)
            lines = lines_of(text)
            batch = service.budget.attempt(lambda: service.batch(name, lines, open_to_padding))
    except (ValueError, RecursionError) as error:
        return None, problem(error)
    facts = batch_facts(batch, service.store.put(batch, visitor), padding_hidden=padding_hidden)
    count, length = batch.ids.shape
    done = say_n(
        "{n} sentence, padded to {length} tokens each.",
        "{n} sentences, padded to {length} tokens each.",
        count,
        length=length,
    )
    if batch.target_ids is not None:
        done += " " + say(
            "Their translations are padded to {length} tokens.", length=batch.target_ids.shape[1]
        )
    if not padding_hidden:
        done += " " + say("The batch was read without the padding mask.")
    return facts, said("done", done)


def example(service: Service, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(facts of the stored run, facts of the stored batch) of a model.

    A link to them names the model alone; how the page first shows the run is among its facts.
    """
    opening = shown_first(name, service.model(name).config, example=True)
    run_key, batch_key = service.example(name)
    store = service.store
    run = run_facts(store.run(run_key), run_key, service.model(name))
    run |= {"example": True, "opening": opening}
    return run, batch_facts(store.batch(batch_key), batch_key) | {"example": True}


def problem(error: Exception) -> dict[str, Any]:
    """A status with an error's sentence in the page's language."""
    return said("error", public_error(error, WORDS)["detail"])


def said(kind: str, text: str) -> dict[str, Any]:
    """A status: kind "busy", "done" or "error"."""
    return {"kind": kind, "text": text}
