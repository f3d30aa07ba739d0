"""Plain values and arrays as one compressed text, for a page that carries its own data.

Unpacked by `static/pack.js`. The bytes are the JSON's length (uint32, little endian), the JSON,
then all arrays. An array's bytes lie plane by plane (all first bytes, all second bytes, ...),
because the first bytes of neighbouring numbers are alike and so pack well.
"""

from __future__ import annotations

import base64
import gzip
import json
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVEL = 5  # of gzip: at 9 it takes seven times as long for one percent
DROPPED_BITS = 7  # of the 23 in a float's fraction
DIGITS = 12  # of a number among plain values
_PLOTLY_TYPES = {"f4", "f8", "i1", "i2", "i4", "u1", "u2", "u4"}


def rounded(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Right to within 2 ** -17 of each number (8 millionths), and a fifth smaller when packed.

    The last bits of a measured number do not compress; without DROPPED_BITS of them it does.
    """
    step = 1 << DROPPED_BITS
    words = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((words + np.uint32(step // 2)) & np.uint32(0x100000000 - step)).view(np.float32)


def packed(raw: bytes, level: int = LEVEL) -> str:
    """base64 of gzip: ASCII that is safe in any HTML."""
    return base64.b64encode(gzip.compress(raw, compresslevel=level, mtime=0)).decode("ascii")


def _shorter(value: Any) -> Any:
    """Plain values, their numbers with DIGITS digits."""
    if isinstance(value, dict):
        return {key: _shorter(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_shorter(part) for part in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


class Pack:
    """Collects arrays; the JSON has {"array": number, "shape": [...]} instead of each.

    An array that is a prefix of a stored one is not stored again.
    """

    def __init__(self) -> None:
        self._arrays: list[tuple[str, bytes]] = []

    def array(self, values: NDArray[Any]) -> dict[str, Any]:
        """Keep an array of float32, float64 or small integers; returns its placeholder."""
        kind = values.dtype.str[1:]
        raw = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
        prefixed = (
            place
            for place, (stored_kind, content) in enumerate(self._arrays)
            if kind == stored_kind and content.startswith(raw)
        )
        place = next(prefixed, len(self._arrays))
        if place == len(self._arrays):
            self._arrays.append((kind, raw))
        return {"array": place, "shape": list(values.shape)}

    def plain(self, value: Any) -> Any:
        """The same value with Plotly's binary arrays kept here, those of float32 rounded."""
        if isinstance(value, dict):
            if value.keys() <= {"dtype", "bdata", "shape"} and "bdata" in value:
                assert value["dtype"] in _PLOTLY_TYPES
                flat = np.frombuffer(base64.b64decode(value["bdata"]), f"<{value['dtype']}")
                shape = [int(size) for size in str(value.get("shape", flat.size)).split(",")]
                return self.array(
                    (rounded(flat) if value["dtype"] == "f4" else flat).reshape(shape)
                )
            return {key: self.plain(part) for key, part in value.items()}
        return [self.plain(part) for part in value] if isinstance(value, list) else value

    def whole(self, content: dict[str, Any]) -> bytes:
        """`content`, which holds the placeholders of `array` and `plain`, and all arrays.

        Its numbers are written without the last digits, in which two computations of one run may
        differ: the same run gives the same file.
        """
        table = [[kind, len(raw) // int(kind[1:])] for kind, raw in self._arrays]
        whole = {"arrays": table, "content": _shorter(content)}
        header = json.dumps(whole, allow_nan=False, separators=(",", ":")).encode("ascii")
        planes = (
            np.frombuffer(raw, dtype=np.uint8).reshape(-1, int(kind[1:])).T.tobytes()
            for kind, raw in self._arrays
        )
        return b"".join([struct.pack("<I", len(header)), header, *planes])

    def text(self, content: dict[str, Any]) -> str:
        """`whole`, as base64 of gzip."""
        return packed(self.whole(content))
