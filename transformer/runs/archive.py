"""Values and arrays as JSON or NPZ, and back; docs/library/run-format.md describes the format.

Neither needs more than a JSON reader or numpy to be opened, and nothing in them is executed: no
pickle. `SCHEMA` is the format's name and version; it changes when an old reader would be misled.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, TypeVar
from zipfile import ZIP_DEFLATED, ZIP_STORED

import numpy as np
import torch
from numpy.lib import format as npy
from numpy.typing import NDArray
from torch import Tensor

from transformer.checks import shortened
from transformer.model.sites import STACKS, Site
from transformer.model.trace import AttentionRecord, Trace

SCHEMA, BATCH_SCHEMA = "transformer-run/4", "transformer-batch/3"
IN_JSON = ("scores", "pattern", "mask")  # of a site, in JSON
IN_NPZ = (*IN_JSON, "q", "k", "v")
TYPES = {"float32": "<f4", "bool": "|u1", "int64": "<i8"}

# Names of an NPZ's arrays besides those of sites: beginnings and endings.
OTHER_ARRAYS = {
    **dict.fromkeys(("embed/", "pos_embed/", "residual/", "position_matrix/"), STACKS),
    "lens/": ("ids", "probabilities"),
}
# An NPZ may take FREE_BYTES in memory, or MOST_TIMES its size: heads' scores hardly compress.
FREE_BYTES, MOST_TIMES = 100_000_000, 20
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
# Raised by zipfile, numpy and json for other or encrypted files.
_BROKEN = (
    ValueError, TypeError, LookupError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip

Values = dict[str, Any]  # plain JSON
Arrays = dict[str, NDArray[Any]]
PathOrFile = str | Path | IO[bytes]
T = TypeVar("T")


def to_json(values: Values, arrays: Arrays) -> str:
    """One JSON text; the arrays are little-endian bytes in base64."""
    written = {name: _written(array) for name, array in arrays.items()}
    return json.dumps(values | {"arrays": written}, allow_nan=False)


def from_json(text: str) -> tuple[Values, dict[str, Tensor]]:
    """The values and arrays of a run. Raises ValueError unless `to_json` wrote them."""
    if not isinstance(text, str | bytes):
        raise ValueError(f"the JSON of a run is text; got {type(text).__name__}")
    try:
        written = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"this is not JSON: {error}") from error
    check_schema(written)
    with whole():
        arrays = {name: _unwritten(value) for name, value in written["arrays"].items()}
        return written, _tensors(arrays)


def write_npz(place: PathOrFile, name: str, values: Values, arrays: Arrays) -> None:
    """A compressed NPZ; raises OSError if a path cannot be written.

    Besides the arrays, `name` holds the values: JSON as ASCII bytes.
    """
    rest = np.frombuffer(json.dumps(values, allow_nan=False).encode("ascii"), dtype=np.uint8)
    with _opened(place, "wb") as file:
        np.savez_compressed(file, **{name: rest}, **arrays)  # type: ignore[arg-type]


def read_npz(
    place: PathOrFile, name: str, schema: str = SCHEMA, others: Sequence[str] = ()
) -> tuple[Values, dict[str, Tensor]]:
    """The values and arrays of a run or batch. others: names of arrays besides a trace's and those
    of OTHER_ARRAYS.

    Raises OSError if the file cannot be read, ValueError if `write_npz` did not write it.
    """
    try:
        with _opened(place, "rb") as file, zipfile.ZipFile(file) as packed:
            values = json.loads(bytes(_unpacked(packed, [name])[name]))
            check_schema(values, schema)
            kinds = {f"{site}/": IN_NPZ for site in values["sites"]} | OTHER_ARRAYS
            expected = {start + field for start, fields in kinds.items() for field in fields}
            expected |= {*others}
            names = [name.removesuffix(".npy") for name in packed.namelist()]
            return values, _tensors(_unpacked(packed, [name for name in names if name in expected]))
    except _BROKEN as error:
        raise ValueError(f"this file holds no {name} of the format {schema}: {error}") from error


def _unpacked(packed: zipfile.ZipFile, names: Sequence[str]) -> Arrays:
    """Arrays of an NPZ, after a check of their sizes: a small file may claim any size."""
    members = {name: packed.getinfo(f"{name}.npy") for name in names}
    if not {member.compress_type for member in members.values()} <= {ZIP_STORED, ZIP_DEFLATED}:
        raise ValueError(names)
    size = sum(member.file_size for member in members.values())
    most = max(FREE_BYTES, MOST_TIMES * sum(m.compress_size for m in members.values()))
    if size > most:
        raise ValueError(
            f"this file would take {size / 1e6:,.0f} MB in memory; allowed for its "
            f"size: {most / 1e6:,.0f} MB"
        )
    arrays = {}
    for name, member in members.items():
        with packed.open(member) as file:
            read_header = HEADERS[npy.read_magic(file)]
            shape, _, dtype = read_header(file)
            n_bytes = math.prod(shape) * dtype.itemsize
            if str(dtype) not in (*TYPES, "uint8") or n_bytes != member.file_size - file.tell():
                raise ValueError(name)
        with packed.open(member) as file:
            arrays[name] = npy.read_array(file, allow_pickle=False)
    return arrays


def check_schema(values: Any, schema: str = SCHEMA) -> None:
    """Raise ValueError for values of another format."""
    got = values.get("schema") if isinstance(values, dict) else type(values).__name__
    if got != schema:
        raise ValueError(f"it is not of the format {schema}; got {shortened(got)}")


@contextlib.contextmanager
def whole() -> Any:
    """Turn a KeyError, TypeError … raised inside into a ValueError."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"this run is not whole: {type(error).__name__} at {error}") from error


def trace_arrays(
    trace: Trace, fields: Iterable[str], part: Callable[[Tensor], Tensor] = lambda x: x
) -> Arrays:
    """A trace's arrays by name. part: applied to each before writing.

    `SITE/FIELD` for each of `fields` (scores, pattern, q, ...: (B, H, T, ...), mask: (B, Tq, Tk));
    `embed/STACK`, `pos_embed/STACK` (what was added to each token: (B, T, C)),
    `residual/STACK` (L + 1, B, T, C).
    """
    arrays: Arrays = {}
    for record in trace:
        for field in fields:
            value = record.allowed if field == "mask" else getattr(record, field)
            if value is not None:
                arrays[f"{record.site}/{field}"] = array_of(part(value))
    for stack, value in trace.embed.items():
        arrays[f"embed/{stack}"] = array_of(part(value))
        arrays[f"pos_embed/{stack}"] = array_of(part(trace.pos_embed[stack]))
    for stack, streams in trace.residuals.items():
        arrays[f"residual/{stack}"] = array_of(torch.stack([part(x) for x in streams]))
    return arrays


def trace_of(
    sites: Iterable[str],
    tensors: Mapping[str, Tensor],
    part: Callable[[Tensor], Tensor] = lambda x: x[None],
) -> Trace:
    """The inverse of `trace_arrays`; sites without arrays are omitted. part: applied to each; it
    adds the batch axis, which a run's arrays lack."""
    records = {}
    for site in map(Site.parse, sites):
        fields = {name: part(value) for name, value in named(tensors, f"{site}/").items()}
        if "pattern" in fields:
            mask = fields.pop("mask")[:, None]
            records[site] = AttentionRecord(site=site, mask=mask, **fields)
    return Trace(
        records=records,
        embed={key: part(value) for key, value in named(tensors, "embed/").items()},
        pos_embed={key: part(value) for key, value in named(tensors, "pos_embed/").items()},
        residuals={
            key: [part(x) for x in value] for key, value in named(tensors, "residual/").items()
        },
    )


def named(arrays: Mapping[str, T], start: str) -> dict[str, T]:
    """Arrays whose names start with this, by the rest of their names."""
    return {
        name.removeprefix(start): value for name, value in arrays.items() if name.startswith(start)
    }


def array_of(value: Tensor) -> NDArray[Any]:
    """A tensor as an array of the same type."""
    return value.detach().cpu().contiguous().numpy()


def _tensors(arrays: Arrays) -> dict[str, Tensor]:
    return {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()}


def _opened(place: PathOrFile, mode: str) -> AbstractContextManager[IO[bytes]]:
    """An open file; one that the caller opened stays open."""
    if isinstance(place, str | Path):
        if Path(place).is_fifo():  # opening it would wait
            raise ValueError(f"{place} is not a regular file")
        return open(place, mode)
    return contextlib.nullcontext(place)


def _written(array: NDArray[Any]) -> Values:
    raw = np.ascontiguousarray(array).astype(TYPES[str(array.dtype)]).tobytes()
    return {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "base64": base64.b64encode(raw).decode("ascii"),
    }


def _unwritten(value: Values) -> NDArray[Any]:
    raw = np.frombuffer(base64.b64decode(value["base64"], validate=True), TYPES[value["dtype"]])
    return raw.reshape(value["shape"]).astype(value["dtype"])
