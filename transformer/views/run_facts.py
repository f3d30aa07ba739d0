"""What the page's scripts know of a run, as plain values: see `Run` of web/store.js."""

from __future__ import annotations

from collections import Counter
from typing import Any

from transformer.interventions.descriptions import to_dict
from transformer.messages import say
from transformer.model.config import ModelConfig
from transformer.model.positions import POSITIONS
from transformer.runs.batch import Batch
from transformer.runs.request import method_words
from transformer.runs.run import Run


def facts_of(run: Run) -> dict[str, Any]:
    """What the run alone says; the server adds what its model and its store know."""
    config = run.config
    return {
        "model": run.model,
        "state": "done",
        "stack": "encoder" if config.family == "encoder" else "decoder",
        "head": config.head,
        "source_labels": list(run.source_labels),
        "labels": list(run.labels),
        "ids": list(run.ids),
        **run.special_positions(),
        "n_prompt": run.n_prompt,
        "probabilities": [step.chosen.probability for step in run.steps],
        "trace_start": run.trace_start,
        "kinds": kinds_of(run),
        "windows": windows_of(config),
        "n_heads": config.n_heads,
        "heads_per_key": config.heads_per_key,
        "stacks": list(dict.fromkeys(stack for stack, _ in run.trace.kinds())),
        "d_model": config.d_model,
        "is_rotary": POSITIONS[config.positions].is_rotary,
        "biases_scores": config.biases_scores,
        "adds_positions": POSITIONS[config.positions].adds,
        "stopped": run.stopped,
        "hypotheses": hypotheses_of(run),
        "text": run.request.text,
        "forced_tokens": list(run.request.forced_tokens),
        "how": say("only read") if run.stopped == "read" else method_words(run.request, brief=True),
        "seed": None if run.request.sampling is None else run.request.seed,
        "interventions": [{"is": to_dict(i), "says": str(i)} for i in run.request.interventions],
    }


def hypotheses_of(run: Run) -> list[dict[str, Any]]:
    """The hypotheses of a beam search, best first; none for another run."""
    search = run.search
    return [] if search is None else [
        {
            "text": text, "score": hypothesis.score, "normalised": hypothesis.normalised,
            "n_tokens": len(hypothesis.ids), "ended": hypothesis.ended,
        }
        for hypothesis, text in zip(search.hypotheses, search.texts, strict=True)
    ]  # fmt: skip


def windows_of(config: ModelConfig) -> list[int | None]:
    """The window of each layer's self-attention; None = it reads all."""
    most = max(config.n_layers, config.output_n_layers)
    return [config.window_of(layer) for layer in range(most)]


def kinds_of(item: Run | Batch) -> list[dict[str, Any]]:
    """The kinds of attention recorded, each with its number of layers."""
    count = Counter((site.stack, site.kind) for site in item.trace.sites)
    return [
        {"stack": stack, "kind": kind, "n_layers": count[stack, kind]}
        for stack, kind in item.trace.kinds()
    ]
