"""Runs, batches and heads as the plain values that the endpoints give."""

from __future__ import annotations

import base64
import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer.checks import check_choice, check_flag
from transformer.inference.fill import Filled
from transformer.messages import invalid, numeral
from transformer.runs.head_data import head_view
from transformer.runs.run import Batch, Run
from transformer.runs.steps import GenerationStep
from transformer.ui.limits import MAX_LISTED
from transformer.ui.page_data import hypotheses_of, kinds_of


def run_values(run: Run, key: str) -> dict[str, Any]:
    """A run as plain values."""
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
        "steps": [_step_values(run, step) for step in run.steps],
        "hypotheses": hypotheses_of(run),
    }


def fill_values(found: Filled) -> dict[str, Any]:
    """A filled text as plain values."""
    return {
        "text": found.text,
        "ids": list(found.ids),
        "places": list(found.places),
        "guesses": [[dataclasses.asdict(one) for one in place] for place in found.guesses],
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


def attention_values(
    item: Run | Batch, site: str, head: int, row: int, *, packed: bool = False
) -> dict[str, Any]:
    """One head as nested lists, or packed. Raises ValueError for an unknown site, head or row."""
    view = head_view(item, site, head, row)
    return {
        "site": str(view.site),
        "head": view.head,
        "queries": list(view.query_labels),
        "keys": list(view.key_labels),
        "scores": numbers(view.scores, packed),
        "weights": numbers(view.weights, packed),
        "allowed": numbers(view.allowed, packed),
    }


def position_values(run: Run, stack: str, *, packed: bool = False) -> dict[str, Any]:
    """A stack's positional encoding as nested lists, or packed. ValueError for an unknown stack."""
    check_choice("stack", stack, tuple(run.position_matrices))
    matrix = numbers(run.position_matrices[stack].numpy(), packed)
    return {"stack": stack, "kind": run.config.positions, "matrix": matrix}


def numbers(matrix: NDArray[Any], packed: bool) -> Any:
    """Nested lists, which take twenty times the room of {"shape", "dtype", "base64"}: rows one
    after the other, numbers with the smallest byte first.

    Raises ValueError for more than MAX_LISTED numbers that are not to be packed.
    """
    check_flag("packed", packed)
    if not packed:
        if matrix.size > MAX_LISTED:
            raise invalid(
                "{size} numbers are too many for nested lists; allowed: at most "
                "{most}, or packed=True",
                size=numeral(matrix.size),
                most=numeral(MAX_LISTED),
            )
        return matrix.tolist()
    little = np.ascontiguousarray(matrix, matrix.dtype.newbyteorder("<"))
    sent = base64.b64encode(little.tobytes()).decode("ascii")
    return {"shape": list(matrix.shape), "dtype": matrix.dtype.name, "base64": sent}


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
