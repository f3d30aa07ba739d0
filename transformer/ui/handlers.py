"""What happens on Enter, Generate, Stop, and so on: plain values in, plain values out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from transformer.inference.generation import GenerationStep
from transformer.inference.patience import Patience, until
from transformer.model.interventions import without_padding_mask
from transformer.ui.examples import BEAM, METHODS, SAMPLE
from transformer.ui.facts import batch_facts, outcome, run_facts, running_facts
from transformer.ui.limits import lines_of, sentence_of
from transformer.ui.service import Service

INTACT: dict[str, list[Any]] = {"interventions": [], "taken": []}
Progress = tuple[dict[str, Any] | None, dict[str, Any], bool]

SHOWN_EVERY_S = 0.05


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
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"the method must be one of {list(METHODS)}; got {method!r}")
    settings: dict[str, Any] = {"max_new_tokens": length, "seed": seed}
    if method == SAMPLE:
        settings["temperature"] = 1.0 if temperature is None else temperature
        settings["top_k"] = None if top_k == 0 else top_k
        settings["top_p"] = None if top_p == 1 else top_p
    if method == BEAM:
        settings |= {"beams": beams, "length_penalty": length_penalty}
    return settings


def altered_settings(settings: dict[str, Any], altered: Any) -> dict[str, Any]:
    """Settings with what the visitor altered: {"interventions": [...], "taken": [...]}.

    An altered network does not search: a beam search becomes greedy. Raises ValueError for anything
    else; what an intervention may be is checked by the request.
    """
    if not isinstance(altered, dict) or set(altered) - set(INTACT):
        raise ValueError(f"what is altered must be an object with {list(INTACT)}; got {altered!r}")
    given = {name: value for name, value in altered.items() if value}
    if given:
        settings = {k: v for k, v in settings.items() if k not in ("beams", "length_penalty")}
    return settings | given


def generate(
    service: Service, visitor: str, name: str, text: str, settings: dict[str, Any]
) -> Iterator[Progress]:
    """Yields (facts for the page, status, is it still running) as tokens come, then the run.

    Facts are None where the page keeps what it shows. A mistake is a status, not an exception.
    What this visitor had under way is stopped first.
    """
    service.visitors.stop(visitor)
    with service.visitors.request(visitor) as patience:
        try:
            if service.model(name).config.family == "encoder":
                yield _read(service, visitor, name, text)
            else:
                yield from _continue(service, visitor, patience, name, text, settings)
        except (ValueError, RecursionError) as error:
            yield None, problem(error), False


def _read(service: Service, visitor: str, name: str, text: str) -> Progress:
    run = service.read(name, text)
    return run_facts(run, service.store.put(run, visitor)), said("done", "Read."), False


def _continue(
    service: Service,
    visitor: str,
    patience: Patience,
    name: str,
    text: str,
    settings: dict[str, Any],
) -> Iterator[Progress]:
    """Tokens that come close together are shown together: each showing costs more than a token."""
    began = shown_at = time.monotonic()
    reader, stream = service.stream(name, text, **settings)
    tokenizer = service.model(name).tokenizer
    source = tokenizer.labels(reader.source_ids)
    shown, n_prompt = tokenizer.labels(reader.prompt_ids), reader.n_prompt
    steps: list[GenerationStep] = []

    def progress(busy: str) -> Progress:
        probabilities = [step.chosen.probability for step in steps]
        return running_facts(source, shown, n_prompt, probabilities), said("busy", busy), True

    yield progress("Searching …" if reader.request.beams > 1 else "Generating …")
    for step in stream:
        steps.append(step)
        shown.append(tokenizer.label(step.token))
        if patience.is_over():
            break
        if time.monotonic() >= shown_at + SHOWN_EVERY_S:
            yield progress(f"Generating … {len(steps)} of {settings['max_new_tokens']}")
            shown_at = time.monotonic()
    with until(patience):
        run = service.finish(name, text, steps, read=reader, **settings)
    done = said("done", outcome(run, time.monotonic() - began))
    yield run_facts(run, service.store.put(run, visitor)), done, False


def read_batch(
    service: Service, visitor: str, name: str, text: str, *, padding_hidden: bool = True
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """(facts, status) of the lines that a visitor typed; facts None on a mistake.

    padding_hidden False: read by the network without its padding masks.
    """
    try:
        with service.visitors.request(visitor) as patience, until(patience):
            open_to_padding = (
                () if padding_hidden else without_padding_mask(service.model(name).config)
            )
            batch = service.batch(name, lines_of(text), open_to_padding)
    except (ValueError, RecursionError) as error:
        return None, problem(error)
    facts = batch_facts(batch, service.store.put(batch, visitor))
    count, length = batch.ids.shape
    sentences = "1 sentence" if count == 1 else f"{count} sentences"
    done = f"{sentences}, padded to {length} tokens each"
    if batch.target_ids is not None:
        done += f"; their translations, to {batch.target_ids.shape[1]}"
    if not padding_hidden:
        done += "; read without the padding mask"
    return facts, said("done", f"{done}.")


def example(service: Service, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(facts of the stored run, facts of the stored batch) of a model.

    A link to them names the model alone.
    """
    service.model(name)
    run_key, batch_key = service.examples[name]
    store = service.store
    run = run_facts(store.run(run_key), run_key) | {"link": {"model": name}}
    return run, batch_facts(store.batch(batch_key), batch_key) | {"link": {}}


def problem(error: Exception) -> dict[str, Any]:
    """A status that says what was wrong."""
    return said("error", sentence_of(error))


def said(kind: str, text: str) -> dict[str, Any]:
    """A status: kind "busy", "done" or "error". Its time makes a repeated one news again."""
    return {"kind": kind, "text": text, "at": time.monotonic_ns()}
