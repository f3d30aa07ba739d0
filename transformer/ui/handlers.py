"""What happens on Enter, Generate, Stop, and so on: plain values in, plain values out."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

from transformer.inference.generation import GenerationStep
from transformer.ui.facts import batch_facts, outcome, run_facts, running_facts
from transformer.ui.limits import lines_of
from transformer.ui.service import Service

Progress = tuple[dict[str, Any] | None, dict[str, Any], bool]

GREEDY, SAMPLE = "greedy", "sample"
METHODS = (GREEDY, SAMPLE)


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
    method: Any, temperature: Any, top_k: Any, top_p: Any, length: Any, seed: Any
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
    return settings


def generate(
    service: Service, stop: threading.Event, name: str, text: str, settings: dict[str, Any]
) -> Iterator[Progress]:
    """Yields (facts for the page, status, is it still running) after every token, then the run.

    Facts are None where the page keeps what it shows. A mistake is a status, not an exception.
    """
    began = time.monotonic()
    try:
        labels, stream = service.stream(name, text, **settings)
    except ValueError as error:
        yield None, problem(error), False
        return
    shown, n_prompt = list(labels), len(labels)
    yield running_facts(shown, n_prompt, []), said("busy", "Generating …"), True
    steps: list[GenerationStep] = []
    tokenizer = service.model(name).tokenizer
    for step in stream:
        steps.append(step)
        shown.append(tokenizer.label(step.token))
        probabilities = [step.chosen.probability for step in steps]
        busy = said("busy", f"Generating … {len(steps)} of {settings['max_new_tokens']}")
        yield running_facts(shown, n_prompt, probabilities), busy, True
        if stop.is_set():
            break
    run = service.finish(name, text, steps, **settings)
    seconds = time.monotonic() - began
    facts = run_facts(run, service.store.put(run))
    yield facts, said("done", outcome(run, seconds)), False


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
    return facts, said("done", f"{count} sentences, padded to {length} tokens each.")


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
