"""A run as plain values beside named arrays, and back: what `archive` writes and reads."""

from __future__ import annotations

import dataclasses
from typing import Any

from torch import Tensor

from transformer.inference.beam import BeamNode, Hypothesis
from transformer.inference.candidates import Candidate
from transformer.inference.generation import GenerationStep
from transformer.inference.request import Request
from transformer.inference.run import Lens, Run, Search
from transformer.model.config import ModelConfig
from transformer.model.interventions import to_dict
from transformer.model.trace import AttentionRecord, Site, Trace

SCHEMA = "transformer-run/1"


def facts_of(run: Run) -> dict[str, Any]:
    """Everything but the trace's arrays, as plain JSON values."""
    return {
        "schema": SCHEMA,
        "model": run.model,
        "config": run.config.to_dict(),
        "request": _request(run.request),
        "text": run.text,
        "stopped": run.stopped,
        "ids": list(run.ids),
        "labels": list(run.labels),
        "n_prompt": run.n_prompt,
        "source_ids": list(run.source_ids),
        "source_labels": list(run.source_labels),
        "trace_start": run.trace_start,
        "sites": [str(site) for site in run.trace.sites],
        "surprise": list(run.surprise),
        "steps": [_step(step) for step in run.steps],
        "candidate_labels": {str(key): label for key, label in run.candidate_labels.items()},
        "search": None if run.search is None else _search(run.search),
    }


def _request(request: Request) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(request)]
    return {name: getattr(request, name) for name in names} | {
        "taken": list(request.taken),
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


def run_from(facts: dict[str, Any], tensors: dict[str, Tensor]) -> Run:
    """The inverse of `facts_of`, with the arrays of `archive.arrays_of` as tensors.

    Raises KeyError, TypeError and the like for missing or odd parts, ValueError for wrong values.
    """
    return Run(
        model=facts["model"],
        config=ModelConfig.from_dict(facts["config"]),
        request=Request(**facts["request"]),
        ids=tuple(facts["ids"]),
        labels=tuple(facts["labels"]),
        n_prompt=facts["n_prompt"],
        source_ids=tuple(facts["source_ids"]),
        source_labels=tuple(facts["source_labels"]),
        text=facts["text"],
        steps=tuple(_step_of(step) for step in facts["steps"]),
        stopped=facts["stopped"],
        trace=_trace(facts["sites"], tensors),
        trace_start=facts["trace_start"],
        position_matrices=_named(tensors, "position_matrix/"),
        candidate_labels={int(key): label for key, label in facts["candidate_labels"].items()},
        surprise=tuple(facts["surprise"]),
        lens=Lens(ids=tensors["lens/ids"], probabilities=tensors["lens/probabilities"]),
        search=None if facts["search"] is None else _search_of(facts["search"]),
    )


def _trace(sites: list[str], tensors: dict[str, Tensor]) -> Trace:
    """Records of the sites whose arrays are there, with the batch axis of one text again."""
    records = {}
    for site in map(Site.parse, sites):
        fields = {name: value[None] for name, value in _named(tensors, f"{site}/").items()}
        if "weights" in fields:
            mask = fields.pop("mask")[:, None]
            records[site] = AttentionRecord(site=site, mask=mask, **fields)
    return Trace(
        records=records,
        embedded={key: value[None] for key, value in _named(tensors, "embedded/").items()},
        positions={key: value[None] for key, value in _named(tensors, "positions/").items()},
        residuals={
            key: [x[None] for x in value] for key, value in _named(tensors, "residual/").items()
        },
    )


def _named(tensors: dict[str, Tensor], start: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)
    }


def _step_of(step: dict[str, Any]) -> GenerationStep:
    candidates = tuple(Candidate(**candidate) for candidate in step["candidates"])
    return GenerationStep(**step | {"window": tuple(step["window"]), "candidates": candidates})


def _search_of(search: dict[str, Any]) -> Search:
    found = [dict(one) for one in search["hypotheses"]]
    texts = tuple(one.pop("text") for one in found)
    return Search(
        hypotheses=tuple(Hypothesis(**one | {"ids": tuple(one["ids"])}) for one in found),
        texts=texts,
        tree=tuple(tuple(BeamNode(**node) for node in nodes) for nodes in search["tree"]),
    )
