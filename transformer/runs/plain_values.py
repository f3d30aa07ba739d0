"""A run as plain values: what `archive` writes beside its arrays."""

from __future__ import annotations

import dataclasses
from typing import Any

from transformer.model.interventions import to_dict
from transformer.runs.candidates import GenerationStep
from transformer.runs.data import RunData
from transformer.runs.request import Request
from transformer.runs.search import Search

SCHEMA = "transformer-run/2"


def values_of(run: RunData) -> dict[str, Any]:
    """Everything but the trace's arrays, as plain JSON values."""
    return {
        "schema": SCHEMA,
        "model": run.model,
        "config": run.config.to_dict(),
        "request": _request(run.request),
        "read_as": run.read_as,
        "doubts": list(run.doubts),
        "text": run.text,
        "stopped": run.stopped,
        "ids": list(run.ids),
        "labels": list(run.labels),
        "n_prompt": run.n_prompt,
        "source_ids": list(run.source_ids),
        "source_labels": list(run.source_labels),
        "trace_start": run.trace_start,
        "sites": [str(site) for site in run.trace.sites],
        "surprise": None if run.surprise is None else list(run.surprise),
        "steps": [_step(step) for step in run.steps],
        "candidate_labels": {str(key): label for key, label in run.candidate_labels.items()},
        "search": None if run.search is None else _search(run.search),
    }


def _request(request: Request) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(request)]
    return {name: getattr(request, name) for name in names} | {
        "forced_tokens": list(request.forced_tokens),
        "interventions": [to_dict(one) for one in request.interventions],
    }


def _step(step: GenerationStep) -> dict[str, Any]:
    return {
        "index": step.index,
        "token": step.token,
        "window": list(step.window),
        "n_kept": step.n_kept,
        "candidates": [dataclasses.asdict(candidate) for candidate in step.candidates],
    }


def _search(search: Search) -> dict[str, Any]:
    return {
        "hypotheses": [
            dataclasses.asdict(found) | {"text": text}
            for found, text in zip(search.hypotheses, search.texts, strict=True)
        ],
        "tree": [[dataclasses.asdict(node) for node in nodes] for nodes in search.tree],
    }
