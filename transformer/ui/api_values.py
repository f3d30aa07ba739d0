"""Runs, batches and heads as the plain values that the endpoints give."""

from __future__ import annotations

from typing import Any

from transformer.figures.data import head_view
from transformer.inference.generation import GenerationStep
from transformer.inference.run import Batch, Run
from transformer.ui.facts import hypotheses_of, kinds_of


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


def position_values(run: Run, stack: str) -> dict[str, Any]:
    """A stack's positional encoding as nested lists. Raises ValueError for an unknown stack."""
    if stack not in run.position_matrices:
        raise ValueError(f"stack must be one of {list(run.position_matrices)}; got {stack!r}")
    kind = run.config.positions
    return {"stack": stack, "kind": kind, "matrix": run.position_matrices[stack].tolist()}


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
