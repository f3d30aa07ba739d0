"""Named, typed endpoints for programs: the same models, runs and sentences as the page.

Indices count from 0, as in Python. A visitor's mistake raises an error with the same sentence that
the Python call raises.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gradio as gr
from gradio.events import api

from transformer.figures.data import head_view
from transformer.inference.generation import GenerationStep
from transformer.inference.run import Batch, Run
from transformer.ui.facts import hypotheses_of, kinds_of, model_facts
from transformer.ui.limits import AT_ONCE
from transformer.ui.service import Service


def add_endpoints(service: Service) -> None:
    """Register the endpoints; call inside a `gr.Blocks` context."""
    default = next(iter(service.models))
    families = {name: model.config.family for name, model in service.models.items()}
    translator = next((n for n, family in families.items() if family == "encoder-decoder"), default)

    def models() -> list[dict[str, Any]]:
        """The models that can be used, with their configuration."""
        return [model_facts(model) for model in service.models.values()]

    def generate(
        text: str,
        model: str = default,
        max_new_tokens: int = 40,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        seed: int = 0,
        beams: int = 1,
        length_penalty: float = 1.0,
    ) -> dict[str, Any]:
        """Continue a text. Greedy unless temperature, top_k, top_p or min_p is given.

        Two beams or more, with a translator: a beam search. Returns text, tokens, how many of them
        were given, why it stopped, every step with its candidates, the hypotheses of a search, and
        the run's id for /attention.
        """
        run = service.generate(
            model,
            text,
            max_new_tokens=max_new_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            seed=seed,
            beams=beams,
            length_penalty=length_penalty,
        )
        return run_values(run, service.store.put(run))

    def translate(
        texts: list[str],
        model: str = translator,
        beams: int = 4,
        length_penalty: float = 1.0,
        max_new_tokens: int = 100,
    ) -> list[dict[str, Any]]:
        """Translate several texts in one padded batch; each gets the result that it gets alone.

        For each: what /generate returns, with the n-best list of hypotheses.
        """
        runs = service.translate(
            model,
            texts,
            beams=beams,
            length_penalty=length_penalty,
            max_new_tokens=max_new_tokens,
        )
        return [run_values(run, service.store.put(run)) for run in runs]

    def trace(text: str, model: str = default) -> dict[str, Any]:
        """Read a text without continuing it; the id is for /attention."""
        run = service.read(model, text)
        return run_values(run, service.store.put(run))

    def batch(texts: list[str], model: str = default) -> dict[str, Any]:
        """Read several texts as one padded batch; the id is for /attention.

        A translator translates them first (greedily) and reads sources and translations.
        """
        read = service.batch(model, texts)
        return batch_values(read, service.store.put(read))

    def attention(
        run: str, site: str = "decoder.0.self", head: int = 0, row: int = 0
    ) -> dict[str, Any]:
        """One head of a run or batch: scores before the mask, weights, and what is allowed.

        site is STACK.LAYER.KIND; row is the sentence of a batch. Rows are queries, columns keys.
        """
        return attention_values(service.store.any(run), site, head, row)

    running: tuple[Callable[..., Any], ...] = (generate, translate, trace, batch)
    looking: tuple[Callable[..., Any], ...] = (models, attention)
    for function in running:
        _add(function, concurrency_limit=AT_ONCE, concurrency_id="model")
    for function in looking:
        _add(function)


def run_values(run: Run, key: str) -> dict[str, Any]:
    """A run as plain values."""
    return {
        "run": key,
        "model": run.model,
        "text": run.text,
        "source_tokens": list(run.source_labels),
        "source_ids": list(run.source_ids),
        "tokens": list(run.labels),
        "ids": list(run.ids),
        "n_prompt": run.n_prompt,
        "stopped": run.stopped,
        "trace_start": run.trace_start,
        "attention": kinds_of(run),
        "n_heads": run.config.n_heads,
        "steps": [_step_values(run, step) for step in run.steps],
        "hypotheses": hypotheses_of(run),
    }


def batch_values(batch: Batch, key: str) -> dict[str, Any]:
    """A padded batch as plain values."""
    return {
        "run": key,
        "model": batch.model,
        "tokens": [list(row) for row in batch.labels],
        "ids": batch.ids.tolist(),
        "is_token": batch.padding.tolist(),
        **_target_values(batch),
        "attention": kinds_of(batch),
    }


def _target_values(batch: Batch) -> dict[str, Any]:
    """What the decoder of a translator read."""
    if batch.target_ids is None or batch.target_padding is None:
        return {}
    return {
        "translations": list(batch.outputs),
        "target_tokens": [list(row) for row in batch.target_labels],
        "target_ids": batch.target_ids.tolist(),
        "target_is_token": batch.target_padding.tolist(),
    }


def attention_values(item: Run | Batch, site: str, head: int, row: int) -> dict[str, Any]:
    """One head as nested lists. Raises ValueError for an unknown site, head or row."""
    view = head_view(item, site, head, row)
    return {
        "site": str(view.site),
        "head": view.head,
        "queries": list(view.query_labels),
        "keys": list(view.key_labels),
        "scores": view.scores.tolist(),
        "weights": view.weights.tolist(),
        "allowed": view.allowed.tolist(),
    }


def _step_values(run: Run, step: GenerationStep) -> dict[str, Any]:
    return {
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


def _add(function: Callable[..., Any], **settings: Any) -> None:
    endpoint = _with_sentences(function)
    api(endpoint, api_name=function.__name__, **settings)


def _with_sentences(function: Callable[..., Any]) -> Callable[..., Any]:
    """Pass a ValueError's sentence on to the client, which would else see no reason."""

    @functools.wraps(function)
    def endpoint(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ValueError as error:
            raise gr.Error(str(error), print_exception=False) from error

    return endpoint
