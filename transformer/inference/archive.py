"""A run on disk: JSON or NPZ, and back. The format is described in docs/run-format.md.

Neither needs more than a JSON reader or numpy to be opened, and nothing in them is executed: no
pickle. `SCHEMA` is the format's name and version; it changes when an old reader would be misled.
"""

from __future__ import annotations

import base64
import contextlib
import json
import zipfile
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.inference.plain import SCHEMA, facts_of, run_from
from transformer.inference.run import Run

IN_JSON = ("scores", "weights", "mask")  # of a site, in JSON
IN_NPZ = (*IN_JSON, "queries", "keys", "values")
_TEXT = "run"  # the array of an NPZ that holds the rest as JSON
_TYPES = {"float32": "<f4", "bool": "|u1", "int64": "<i8"}

Arrays = dict[str, NDArray[Any]]


def arrays_of(run: Run, fields: Iterable[str] = IN_NPZ) -> Arrays:
    """The trace's arrays by name, without the batch axis: float32, bool masks, int64 ids.

    `SITE/FIELD` for each of `fields` (scores, weights, queries, ...: (H, T, ...), mask: (Tq, Tk));
    `embedded/STACK`, `positions/STACK` (what was added to each token), `residual/STACK` (L + 1, T,
    C), `position_matrix/STACK` (max_len, C); `lens/ids`, `lens/probabilities`; `ids`, `source_ids`.
    """
    found: Arrays = {"ids": np.array(run.ids, dtype=np.int64)}
    found["source_ids"] = np.array(run.source_ids, dtype=np.int64)
    for site, record in run.trace.records.items():
        for field in fields:
            value = record.allowed if field == "mask" else getattr(record, field)
            if value is not None:
                found[f"{site}/{field}"] = _array(value[0])
    for stack, matrix in run.position_matrices.items():
        found[f"position_matrix/{stack}"] = _array(matrix)
    for stack, value in run.trace.embedded.items():
        found[f"embedded/{stack}"] = _array(value[0])
        found[f"positions/{stack}"] = _array(run.trace.positions[stack][0])
    for stack, streams in run.trace.residuals.items():
        found[f"residual/{stack}"] = _array(torch.stack([x[0] for x in streams]))
    found["lens/ids"] = _array(run.lens.ids)
    found["lens/probabilities"] = _array(run.lens.probabilities)
    return found


def to_json(run: Run, *, attention: bool = True) -> str:
    """The run as one JSON text; its arrays are little-endian bytes in base64.

    attention=False leaves out the scores, weights and masks of all heads, nearly all of its size.
    The vectors behind them (queries, residual streams, ...) are in the NPZ form only.
    """
    inside = arrays_of(run, IN_JSON if attention else ())
    left_out = ("embedded/", "positions/", "residual/", "ids", "source_ids")
    shown = {name: _written(x) for name, x in inside.items() if not name.startswith(left_out)}
    return json.dumps(facts_of(run) | {"arrays": shown}, allow_nan=False)


def from_json(text: str) -> Run:
    """The run of a JSON text. Raises ValueError for one of another format or without its parts."""
    try:
        facts = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"this is not JSON: {error}") from error
    return _read(
        facts, lambda: {name: _unwritten(value) for name, value in facts["arrays"].items()}
    )


def write_npz(run: Run, place: str | Path | IO[bytes]) -> None:
    """The run as a compressed NPZ; raises OSError if a path cannot be written.

    Besides `arrays_of`, `run` holds the rest: the same JSON without arrays, as ASCII bytes.
    """
    facts = json.dumps(facts_of(run), allow_nan=False)
    rest = np.frombuffer(facts.encode("ascii"), dtype=np.uint8)
    with _opened(place, "wb") as file:
        np.savez_compressed(file, **{_TEXT: rest}, **arrays_of(run))  # type: ignore[arg-type]


def read_npz(place: str | Path | IO[bytes]) -> Run:
    """The run of an NPZ. Raises OSError if it cannot be read, ValueError if it holds no run."""
    try:
        with _opened(place) as file, np.load(file, allow_pickle=False) as loaded:
            arrays = {name: loaded[name] for name in loaded.files}
        facts = json.loads(bytes(arrays.pop(_TEXT)))
    except (ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"this file holds no run of the format {SCHEMA}") from error
    return _read(facts, lambda: arrays)


def npz_bytes(run: Run) -> int:
    """Bytes of the arrays before compression, without making them: to weigh before writing."""
    trace = run.trace
    n_heads, size = run.config.n_heads, run.config.d_head
    total = run.lens.ids.nbytes + run.lens.probabilities.nbytes
    for stack, kind in trace.kinds():
        queries, keys = len(run.queries(stack)), len(run.keys(stack, kind))
        vectors = 4 * n_heads * size * (queries + 2 * keys)
        cells = queries * keys * (4 * 2 * n_heads + 1)
        total += run.config.n_layers * (vectors + cells)
    total += sum(matrix.nbytes for matrix in run.position_matrices.values())
    total += sum(2 * x.nbytes for x in trace.embedded.values())
    return total + sum(x.nbytes for streams in trace.residuals.values() for x in streams)


def _opened(place: str | Path | IO[bytes], mode: str = "rb") -> AbstractContextManager[IO[bytes]]:
    """A file that is closed afterwards, but for one that the caller opened."""
    if isinstance(place, str | Path):
        return open(place, mode)
    return contextlib.nullcontext(place)


def _array(value: Tensor) -> NDArray[Any]:
    return value.detach().cpu().contiguous().numpy()


def _written(array: NDArray[Any]) -> dict[str, Any]:
    raw = np.ascontiguousarray(array).astype(_TYPES[str(array.dtype)]).tobytes()
    return {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "base64": base64.b64encode(raw).decode("ascii"),
    }


def _unwritten(value: dict[str, Any]) -> NDArray[Any]:
    raw = np.frombuffer(base64.b64decode(value["base64"], validate=True), _TYPES[value["dtype"]])
    return raw.reshape(value["shape"]).astype(value["dtype"])


def _read(facts: Any, arrays: Callable[[], Arrays]) -> Run:
    if not isinstance(facts, dict) or facts.get("schema") != SCHEMA:
        got = facts.get("schema") if isinstance(facts, dict) else type(facts).__name__
        raise ValueError(f"this is not a run of the format {SCHEMA}; got {got!r}")
    try:
        tensors = {name: torch.from_numpy(np.array(value)) for name, value in arrays().items()}
        return run_from(facts, tensors)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"this run is not whole: {type(error).__name__} at {error}") from error
