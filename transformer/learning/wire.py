"""What the server and the process that trains tell each other: JSON, with arrays as NPZ behind it.

    in   (key, "begin", Job), then (key, "pause" | "go" | "step" | "stop", None)
         and (key, "ask", a question)
    out  (key, "report", Report), (key, "state", "running" | "paused"), (key, "end", why)
         and ("", "alive", None) every second

Nothing is pickled.
"""

from __future__ import annotations

import dataclasses
import io
import json
import struct
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from transformer.learning.plan import Plan
from transformer.learning.record import Moment
from transformer.learning.watch import Report
from transformer.views.attention.grid import Atlas

Message = tuple[str, str, Any]
Arrays = dict[str, NDArray[Any]]
SIZES = struct.Struct(">QQ")  # bytes of the JSON and of the NPZ


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """plan: what to train. seconds: of training, pauses left out. language: of its sentences."""

    plan: Plan
    question: str
    seconds: float
    language: str


def send(file: IO[bytes], message: Message) -> None:
    """Write a message, all of it at once."""
    key, what, value = message
    arrays: Arrays = {}
    if isinstance(value, Job):
        value = dataclasses.asdict(value)
    elif isinstance(value, Report):
        arrays, value = _arrays(value), _fields(value)
    text, packed = json.dumps([key, what, value]).encode(), io.BytesIO()
    if arrays:
        np.savez(packed, **arrays)  # type: ignore[arg-type]
    file.write(SIZES.pack(len(text), len(packed.getvalue())) + text + packed.getvalue())
    file.flush()


def receive(file: IO[bytes]) -> Message:
    """The next message. Raises EOFError where there is none, or only a part of one."""
    n_text, n_packed = SIZES.unpack(_read(file, SIZES.size))
    key, what, value = json.loads(_read(file, n_text))
    packed = _read(file, n_packed)
    if what == "begin":
        value = Job(**value | {"plan": Plan(**value["plan"])})
    elif what == "report":
        with np.load(io.BytesIO(packed), allow_pickle=False) as found:
            value = _report(value, {name: found[name] for name in found.files})
    return key, what, value


def _read(file: IO[bytes], size: int) -> bytes:
    found = file.read(size)
    if len(found) < size:
        raise EOFError
    return found


def _fields(report: Report) -> dict[str, Any]:
    return {
        "step": report.step, "losses": report.losses, "answer": report.answer,
        "moment": dataclasses.asdict(report.moment),
    }  # fmt: skip


def _arrays(report: Report) -> Arrays:
    found: Arrays = {}
    for kind, small in report.pictures.items():
        found |= {f"pixels/{kind}": small.pixels, f"masked/{kind}": small.masked}
    return found | {f"weights/{name}": array for name, array in (report.weights or {}).items()}


def _report(value: dict[str, Any], arrays: Arrays) -> Report:
    def below(start: str) -> Arrays:
        found = [name for name in arrays if name.startswith(start)]
        return {name.removeprefix(start): arrays[name] for name in found}

    masked = below("masked/")
    pictures = {kind: Atlas(pixels, masked[kind]) for kind, pixels in below("pixels/").items()}
    moment = Moment(**value["moment"])
    return Report(
        **value | {"moment": moment}, pictures=pictures, weights=below("weights/") or None
    )
