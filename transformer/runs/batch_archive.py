"""A batch on disk as NPZ, in the same names as a run's; see docs/run-format.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from transformer.runs.archive import IN_NPZ, Arrays, array_of, trace_arrays
from transformer.runs.data import BatchData

SCHEMA = "transformer-batch/1"
TEXT = "batch"  # the array that holds the rest as JSON
_TENSORS = ("ids", "padding", "target_ids", "target_padding")


def arrays_of(batch: BatchData) -> Arrays:
    """The batch's arrays by name, as in `archive.arrays_of` with one more axis, B.

    `SITE/FIELD` (B, H, T, ...), masks (B, Tq, Tk); `embedded/STACK`, `positions/STACK` (B, T, C);
    `residual/STACK` (L + 1, B, T, C); `ids`, `padding` (B, T), and the same of a decoder's text.
    """
    found = {
        name: array_of(value) for name in _TENSORS if (value := getattr(batch, name)) is not None
    }
    return found | trace_arrays(batch.trace, IN_NPZ)


def write_npz(batch: BatchData, path: str | Path) -> None:
    """The batch as a compressed NPZ; raises OSError if it cannot be written.

    Besides `arrays_of`, `batch` holds texts, labels and configuration: JSON as ASCII bytes.
    """
    rest: dict[str, Any] = {
        "schema": SCHEMA,
        "model": batch.model,
        "config": batch.config.to_dict(),
        "texts": batch.texts,
        "labels": batch.labels,
        "target_labels": batch.target_labels,
        "outputs": batch.outputs,
        "sites": [str(site) for site in batch.trace.sites],
    }
    written = np.frombuffer(json.dumps(rest).encode("ascii"), dtype=np.uint8)
    with open(path, "wb") as file:
        np.savez_compressed(file, **{TEXT: written}, **arrays_of(batch))  # type: ignore[arg-type]
