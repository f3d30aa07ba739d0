"""A run written to disk, as JSON or NPZ. The format is described in docs/run-format.md.

Neither needs more than a JSON reader or numpy to be opened, and nothing in them is executed: no
pickle. `SCHEMA` is the format's name and version; it changes when an old reader would be misled.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.model.trace import Trace
from transformer.runs.data import RunData
from transformer.runs.plain_values import values_of

IN_JSON = ("scores", "weights", "mask")  # of a site, in JSON
IN_NPZ = (*IN_JSON, "queries", "keys", "values")
TEXT = "run"  # the array of an NPZ that holds the rest as JSON
TYPES = {"float32": "<f4", "bool": "|u1", "int64": "<i8"}

Arrays = dict[str, NDArray[Any]]


def arrays_of(run: RunData, fields: Iterable[str] = IN_NPZ) -> Arrays:
    """The trace's arrays by name, without the batch axis: float32, bool masks, int64 ids.

    `SITE/FIELD` for each of `fields` (scores, weights, queries, ...: (H, T, ...), mask: (Tq, Tk));
    `embedded/STACK`, `positions/STACK` (what was added to each token), `residual/STACK` (L + 1, T,
    C), `position_matrix/STACK` (max_len, C); `lens/ids`, `lens/probabilities` if the run has them;
    `ids`, `source_ids`.
    """
    found: Arrays = {"ids": np.array(run.ids, dtype=np.int64)}
    found["source_ids"] = np.array(run.source_ids, dtype=np.int64)
    found |= trace_arrays(run.trace, fields, lambda x: x[0])
    for stack, matrix in run.position_matrices.items():
        found[f"position_matrix/{stack}"] = array_of(matrix)
    if run.lens is not None:
        found["lens/ids"] = array_of(run.lens.ids)
        found["lens/probabilities"] = array_of(run.lens.probabilities)
    return found


def trace_arrays(
    trace: Trace, fields: Iterable[str], part: Callable[[Tensor], Tensor] = lambda x: x
) -> Arrays:
    """A trace's arrays by name, as in `arrays_of`. part: what is written of each."""
    found: Arrays = {}
    for record in trace:
        for field in fields:
            value = record.allowed if field == "mask" else getattr(record, field)
            if value is not None:
                found[f"{record.site}/{field}"] = array_of(part(value))
    for stack, value in trace.embedded.items():
        found[f"embedded/{stack}"] = array_of(part(value))
        found[f"positions/{stack}"] = array_of(part(trace.positions[stack]))
    for stack, streams in trace.residuals.items():
        found[f"residual/{stack}"] = array_of(torch.stack([part(x) for x in streams]))
    return found


def to_json(run: RunData, *, attention: bool = True) -> str:
    """The run as one JSON text; its arrays are little-endian bytes in base64.

    attention=False leaves out the scores, weights and masks of all heads, nearly all of its size.
    The vectors behind them (queries, residual streams, ...) are in the NPZ form only.
    """
    inside = arrays_of(run, IN_JSON if attention else ())
    left_out = ("embedded/", "positions/", "residual/", "ids", "source_ids")
    shown = {name: _written(x) for name, x in inside.items() if not name.startswith(left_out)}
    return json.dumps(values_of(run) | {"arrays": shown}, allow_nan=False)


def write_npz(run: RunData, place: str | Path | IO[bytes]) -> None:
    """The run as a compressed NPZ; raises OSError if a path cannot be written.

    Besides `arrays_of`, `run` holds the rest: the same JSON without arrays, as ASCII bytes.
    """
    values = json.dumps(values_of(run), allow_nan=False)
    rest = np.frombuffer(values.encode("ascii"), dtype=np.uint8)
    with opened(place, "wb") as file:
        np.savez_compressed(file, **{TEXT: rest}, **arrays_of(run))  # type: ignore[arg-type]


def npz_bytes(run: RunData) -> int:
    """Bytes of the arrays before compression, without making them: to weigh before writing."""
    trace = run.trace
    n_heads, size = run.config.n_heads, run.config.d_head
    total = 0 if run.lens is None else run.lens.ids.nbytes + run.lens.probabilities.nbytes
    for stack, kind in trace.kinds():
        queries, keys = len(run.queries(stack)), len(run.keys(stack, kind))
        vectors = 4 * n_heads * size * (queries + 2 * keys)
        cells = queries * keys * (4 * 2 * n_heads + 1)
        total += run.config.n_layers * (vectors + cells)
    total += sum(matrix.nbytes for matrix in run.position_matrices.values())
    total += sum(2 * x.nbytes for x in trace.embedded.values())
    return total + sum(x.nbytes for streams in trace.residuals.values() for x in streams)


def opened(place: str | Path | IO[bytes], mode: str = "rb") -> AbstractContextManager[IO[bytes]]:
    """A file that is closed afterwards, but for one that the caller opened."""
    if isinstance(place, str | Path):
        return open(place, mode)
    return contextlib.nullcontext(place)


def array_of(value: Tensor) -> NDArray[Any]:
    """A tensor as an array of its own type."""
    return value.detach().cpu().contiguous().numpy()


def _written(array: NDArray[Any]) -> dict[str, Any]:
    raw = np.ascontiguousarray(array).astype(TYPES[str(array.dtype)]).tobytes()
    return {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "base64": base64.b64encode(raw).decode("ascii"),
    }
