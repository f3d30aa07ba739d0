"""Plain values about a run, a batch or a model, for the page's components and the API."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from transformer.checks import is_whole
from transformer.inference.engines.compiled import NETWORK
from transformer.inference.model import Model
from transformer.interventions.descriptions import to_dict
from transformer.learning.exercises import EXERCISES
from transformer.messages import language, mark, numeral, say, say_n
from transformer.model.positions import POSITIONS
from transformer.runs.batch import Batch
from transformer.runs.run import Run
from transformer.server.errors import public_error
from transformer.server.examples import Example, example_of, first_controls, is_offered, shown_first
from transformer.server.fields import LANGUAGES, METHODS, NUMBERS
from transformer.server.limits import MAX_SECONDS
from transformer.server.page_request import request_of_run
from transformer.server.service import Service
from transformer.server.trainings import SIGN
from transformer.tokenizer import Tokenizer
from transformer.views.prediction.prediction import how_briefly

_STOPPED = {
    "end": mark("The model ended its text."),
    "stop": mark("It reached a stop text."),
    "cancelled": mark("You stopped it."),
    "time": mark("It reached the {seconds} s that one request may take."),
    "read": mark("It was read; nothing was generated."),
}


def run_facts(run: Run, key: str, model: Model) -> dict[str, Any]:
    """The facts of a run for the page's scripts; `key` is its id in the store, `model` made it.
    task: the exercise that a visit's own model learned."""
    name, is_own, _ = run.model.partition(SIGN)
    exercise = EXERCISES.get(name.rpartition("-")[0]) if is_own else None
    return {
        "run": key,
        "model": run.model,
        "state": "done",
        "stack": "encoder" if run.config.family == "encoder" else "decoder",
        "head": run.config.head,
        "source_labels": list(run.source_labels),
        "labels": list(run.labels),
        "ids": list(run.ids),
        **run.special_positions(),
        "hidden": [at for at, one in enumerate(run.ids) if one == model.tokenizer.mask_id],
        "last_read": model.last_read(run),
        "n_prompt": run.n_prompt,
        "probabilities": [step.chosen.probability for step in run.steps],
        "trace_start": run.trace_start,
        "kinds": kinds_of(run),
        "n_heads": run.config.n_heads,
        "heads_per_key": run.config.heads_per_key,
        "stacks": list(run.position_matrices),
        "d_model": run.config.d_model,
        "is_rotary": POSITIONS[run.config.positions].is_rotary,
        "biases_scores": run.config.biases_scores,
        "adds_positions": POSITIONS[run.config.positions].adds,
        "stopped": run.stopped,
        "hypotheses": hypotheses_of(run),
        "text": run.request.text,
        "task": exercise.title if exercise is not None else "",
        "forced_tokens": list(run.request.forced_tokens),
        "how": how_chosen(run),
        "seed": None if run.request.sampling is None else run.request.seed,
        "interventions": [{"is": to_dict(i), "says": str(i)} for i in run.request.interventions],
        "request": request_of_run(run),
        "opening": shown_first(run.model, run.config),
    }


def run_values(run: Run, key: str) -> dict[str, Any]:
    """A run as the API returns it."""
    return {
        "run": key,
        "model": run.model,
        "text": run.text,
        "read_as": run.read_as,
        "doubts": list(run.warnings),
        "source_tokens": list(run.source_labels),
        "source_ids": list(run.source_ids),
        "tokens": list(run.labels),
        "ids": list(run.ids),
        "n_prompt": run.n_prompt,
        "stopped": run.stopped,
        "trace_start": run.trace_start,
        "attention": kinds_of(run),
        "n_heads": run.config.n_heads,
        "steps": [
            {
                "index": step.index,
                "id": step.token,
                "token": run.candidate_labels[step.token],
                "probability": step.chosen.probability,
                "window": list(step.window),
                "n_kept": step.n_kept,
                "candidates": [
                    {
                        "id": candidate.id,
                        "token": run.candidate_labels[candidate.id],
                        "logit": candidate.logit,
                        "probability": candidate.probability,
                        "sampling_probability": candidate.sampling_probability,
                    }
                    for candidate in step.candidates
                ],
            }
            for step in run.steps
        ],
        "hypotheses": hypotheses_of(run),
    }


def how_chosen(run: Run) -> str:
    """How its tokens were chosen, in a few words, with the seed where one was used."""
    return say("only read") if run.stopped == "read" else how_briefly(run.request)


def hypotheses_of(run: Run) -> list[dict[str, Any]]:
    """The hypotheses of a beam search, best first; none for another run."""
    found = run.search
    return [] if found is None else [
        {
            "text": text, "score": one.score, "normalised": one.normalised,
            "n_tokens": len(one.ids), "ended": one.ended,
        }
        for one, text in zip(found.hypotheses, found.texts, strict=True)
    ]  # fmt: skip


def running_facts(
    tokenizer: Tokenizer,
    source_ids: Sequence[int],
    ids: Sequence[int],
    n_prompt: int,
    probabilities: list[float],
) -> dict[str, Any]:
    """`run_facts` while tokens are still generated: nothing can be drawn yet."""
    return {
        "run": None,
        "state": "running",
        "source_labels": tokenizer.labels(source_ids),
        "labels": tokenizer.labels(ids),
        "special": [at for at, one in enumerate(ids) if tokenizer.is_special(one)],
        "source_special": [at for at, one in enumerate(source_ids) if tokenizer.is_special(one)],
        "n_prompt": n_prompt,
        "probabilities": list(probabilities),
    }


def batch_facts(batch: Batch, key: str, *, padding_hidden: bool = True) -> dict[str, Any]:
    """A padded batch for the page's scripts. padding_hidden: see `presses.read_batch`."""
    config = batch.config
    return {
        "batch": key,
        "padding_hidden": padding_hidden,
        "model": batch.model,
        "texts": list(batch.texts),
        "outputs": list(batch.outputs),
        "stacks": list(dict.fromkeys(stack for stack, _ in batch.trace.kinds())),
        "lengths": batch.padding.sum(dim=1).tolist(),
        "kinds": kinds_of(batch),
        "n_heads": next(iter(batch.trace.records.values())).pattern.shape[1],
        "windows": [config.window_of(layer) for layer in range(config.n_layers)],
    }


def example_facts(service: Service, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(facts of the stored run, facts of the stored batch) of a model.

    A link to them names the model alone; how the page first shows the run is among its facts.
    """
    opening = shown_first(name, service.model(name).config, example=True)
    run_key, batch_key = service.example(name)
    store = service.store
    run = run_facts(store.run(run_key), run_key, service.model(name))
    run |= {"example": True, "opening": opening}
    return run, batch_facts(store.batch(batch_key), batch_key) | {"example": True}


def example_page(
    service: Service, visitor: str, asked: Any, typed: Mapping[str, Any]
) -> dict[str, Any]:
    """A model's stored run and batch, with what the page's controls say of the model; the first
    model's where the one asked for cannot be had, which is among its problems.

    typed: what is in the page's boxes; "own": those of them that are the visitor's own texts.
    """
    name, problems = next(iter(service.models)), []
    try:
        name = service.model(name if asked is None else asked, visitor).name
    except ValueError as error:
        problems.append(public_error(error)["detail"])
    models = [*service.models.values(), *(own.model for own in service.own.of(visitor))]
    example, (run, batch) = example_of(service.model(name)), example_facts(service, name)
    return {
        "run": run,
        "batch": batch,
        "first": first_controls(service.model(name)),
        "temperature": NUMBERS["temperature"].first,  # of a method that samples
        "lengths": [example_of(one).settings["max_new_tokens"] for one in service.models.values()],
        "own": {box: text for box, text in typed.items() if not is_offered(text, models)},
        "controls": _furnished(service, visitor, name, example),
        "problems": problems,
    }


def _furnished(service: Service, visitor: str, name: str, example: Example) -> dict[str, Any]:
    """The words of Gradio's controls that belong to a model, by the control's name."""
    model = service.model(name)
    chips = {f"chip {place}": updated(value=text) for place, text in enumerate(example.suggestions)}
    methods = [(say(METHODS[method]), method) for method in example.methods]
    languages = [(name, name) for name in example.languages]
    return chips | {
        "model": updated(choices=service.names(visitor), value=name),
        "method": updated(choices=methods),
        **dict.fromkeys(LANGUAGES, updated(choices=languages)),
        "headline": updated(value=headline(model)),
        "card": updated(value=model_card(model)),
        "table": updated(value=settings_table(model)),
        "text": updated(label=say(example.label)),
        "start": updated(value=say(example.action)),
    }


def updated(**properties: Any) -> dict[str, Any]:
    """An update of a control, as Gradio's page reads it."""
    return {"__type__": "update", **properties}


def kinds_of(item: Run | Batch) -> list[dict[str, Any]]:
    """The kinds of attention recorded, each with its number of layers."""
    count = Counter((site.stack, site.kind) for site in item.trace.sites)
    return [
        {"stack": stack, "kind": kind, "n_layers": count[stack, kind]}
        for stack, kind in item.trace.kinds()
    ]


_BYTE = re.compile("‹[0-9A-F]{2}›")  # the label of a token that is one byte of a sign


def outcome(run: Run, seconds: float) -> str:
    """How a generation went, and where it matters how its text was read, in sentences."""
    milliseconds = say("{seconds} ms", seconds=numeral(1000 * seconds, ".0f"))
    told = {
        "tokens": say_n("{n} token", "{n} tokens", len(run.steps)),
        "took": milliseconds if seconds < 1 else f"{numeral(seconds, '.1f')} s",
    }
    went = say("{tokens} in {took}.", **told)
    why = _STOPPED.get(run.stopped)  # nothing is said of a text with the length that was asked for
    end = [] if why is None else [say(why, seconds=numeral(MAX_SECONDS, ".0f"))]
    read = [] if run.read_as is None else [say("Read as: {text}", text=run.read_as)]
    if single := next(filter(_BYTE.fullmatch, run.labels[: run.n_prompt]), None):
        read.append(say("No token has this sign: it is read byte by byte, {byte} …", byte=single))
    return " ".join((went, *end, *run.warnings, *read))


def headline(model: Model) -> str:
    """Where the model runs, its size and, if it learned an exercise, how well it did."""
    config, count = model.config, model.n_parameters
    device = "CPU" if model.device.type == "cpu" else model.device.type.upper()
    layers = say_n("{n} layer", "{n} layers", config.n_layers)
    heads = say_n("{n} head", "{n} heads", config.n_heads)
    millions = say("{n} M parameters", n=numeral(count / 1e6, ".1f"))
    size = millions if count >= 1e6 else say_n("{n} parameter", "{n} parameters", count)
    parts = [device, size, f"{layers} × {heads}"]
    right = (model.metadata or {}).get("accuracy")
    if isinstance(right, float):
        parts.append(say("{percent} of unseen questions right", percent=numeral(right, ".0%")))
    return " · ".join(parts)


def model_facts(model: Model) -> dict[str, Any]:
    """A model as plain values."""
    return {
        "name": model.name,
        "device": str(model.device),
        "engine": model.engine.name if model.engine else NETWORK,
        "n_parameters": model.n_parameters,
        "languages": list(model.tokenizer.languages),
        **model.config.to_dict(),
    }


def model_card(model: Model) -> str:
    """The model card as Markdown, in the visitor's language if it has been written in it, without
    the metadata that may precede it between two lines of three dashes; a sentence for a model
    without a card."""
    card = model.cards.get(language(), model.card)
    if card.startswith("---\n"):
        card = card[4:].partition("\n---\n")[2].lstrip("\n")
    return card or say("{name} has no model card.", name=model.name)


def settings_table(model: Model) -> str:
    """Markdown: every configuration value."""

    def cell(value: Any) -> str:
        return numeral(value) if is_whole(value) else "–" if value is None else str(value)

    rows = "\n".join(f"| `{name}` | {cell(one)} |" for name, one in model_facts(model).items())
    return f"| {say('setting')} | {say('value')} |\n| --- | --- |\n{rows}"
