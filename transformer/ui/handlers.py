"""What happens on Enter, Generate, Stop, and so on: plain values in, plain values out."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

from transformer.inference.generation import GenerationStep
from transformer.ui.examples import BEAM, METHODS, SAMPLE
from transformer.ui.facts import batch_facts, outcome, run_facts, running_facts
from transformer.ui.limits import lines_of
from transformer.ui.service import Service

Progress = tuple[dict[str, Any] | None, dict[str, Any], bool]


class Stops:
    """Which visitors have pressed Stop: one flag for each generation under way."""

    def __init__(self) -> None:
        self._flags: dict[str, threading.Event] = {}

    def start(self, visitor: str) -> threading.Event:
        """A flag for a new generation; one that still runs for this visitor is stopped."""
        self.stop(visitor)
        flag = self._flags[visitor] = threading.Event()
        return flag

    def stop(self, visitor: str) -> None:
        """Raise the flag, if something runs."""
        flag = self._flags.pop(visitor, None)
        if flag is not None:
            flag.set()

    def end(self, visitor: str, flag: threading.Event) -> None:
        """Forget a flag whose generation is over."""
        if self._flags.get(visitor) is flag:
            del self._flags[visitor]


def settings_of(
    method: Any,
    temperature: Any,
    top_k: Any,
    top_p: Any,
    beams: Any,
    length_penalty: Any,
    length: Any,
    seed: Any,
) -> dict[str, Any]:
    """Request's settings from the page's controls, where top-k 0 and top-p 1 mean "off".

    Raises ValueError for an unknown method; the rest is checked by the request itself.
    """
    if method not in METHODS:
        raise ValueError(f"the method must be one of {list(METHODS)}; got {method!r}")
    settings: dict[str, Any] = {"max_new_tokens": length, "seed": seed}
    if method == SAMPLE:
        settings["temperature"] = 1.0 if temperature is None else temperature
        settings["top_k"] = None if top_k == 0 else top_k
        settings["top_p"] = None if top_p == 1 else top_p
    if method == BEAM:
        settings |= {"beams": beams, "length_penalty": length_penalty}
    return settings


def generate(
    service: Service, stop: threading.Event, name: str, text: str, settings: dict[str, Any]
) -> Iterator[Progress]:
    """Yields (facts for the page, status, is it still running) after every token, then the run.

    Facts are None where the page keeps what it shows. A mistake is a status, not an exception.
    """
    began = time.monotonic()
    try:
        if service.model(name).config.family == "encoder":
            run = service.read(name, text)
            yield run_facts(run, service.store.put(run)), said("done", "Read."), False
            return
        reader, stream = service.stream(name, text, **settings)
    except ValueError as error:
        yield None, problem(error), False
        return
    tokenizer = service.model(name).tokenizer
    source = tokenizer.labels(reader.source_ids)
    shown, n_prompt = tokenizer.labels(reader.prompt_ids), reader.n_prompt
    steps: list[GenerationStep] = []

    def facts() -> dict[str, Any]:
        probabilities = [step.chosen.probability for step in steps]
        return running_facts(source, shown, n_prompt, probabilities)

    busy = "Searching …" if reader.request.beams > 1 else "Generating …"
    yield facts(), said("busy", busy), True
    for step in stream:
        steps.append(step)
        shown.append(tokenizer.label(step.token))
        busy = f"Generating … {len(steps)} of {settings['max_new_tokens']}"
        yield facts(), said("busy", busy), True
        if stop.is_set():
            break
    run = service.finish(name, text, steps, **settings)
    seconds = time.monotonic() - began
    yield run_facts(run, service.store.put(run)), said("done", outcome(run, seconds)), False


def read_batch(
    service: Service, name: str, text: str
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """(facts, status) of the lines that a visitor typed; facts None on a mistake."""
    try:
        batch = service.batch(name, lines_of(text))
    except ValueError as error:
        return None, problem(error)
    facts = batch_facts(batch, service.store.put(batch))
    count, length = batch.ids.shape
    done = f"{count} sentences, padded to {length} tokens each"
    if batch.target_ids is not None:
        done += f"; their translations, to {batch.target_ids.shape[1]}"
    return facts, said("done", f"{done}.")


def example(service: Service, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(facts of the stored run, facts of the stored batch) of a model."""
    service.model(name)
    run_key, batch_key = service.examples[name]
    store = service.store
    return run_facts(store.run(run_key), run_key), batch_facts(store.batch(batch_key), batch_key)


def problem(error: Exception) -> dict[str, Any]:
    """A status that says what was wrong."""
    return said("error", str(error))


def said(kind: str, text: str) -> dict[str, Any]:
    """A status: kind "busy", "done" or "error". Its time makes a repeated one news again."""
    return {"kind": kind, "text": text, "at": time.monotonic_ns()}
