"""Plain values and arrays as one compressed text, for a page that carries its own data.

Unpacked by `export/pack.js`. The text is base64 of gzip of: the JSON's length (uint32, little
endian), the JSON, then all arrays. An array's bytes lie plane by plane (all first bytes, all
second bytes, ...), because the first bytes of neighbouring numbers are alike and so pack well.
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
_PLOTLY_TYPES = {"f4", "f8", "i1", "i2", "i4", "u1", "u2", "u4"}


class Pack:
    """Collects arrays; in the JSON stands {"array": number, "shape": [...]} in their place.

    An array that is the beginning of one that is there already is not stored again.
    """

    def __init__(self) -> None:
        self._arrays: list[tuple[str, bytes]] = []

    def array(self, values: NDArray[Any]) -> dict[str, Any]:
        """Keep an array of float32, float64 or small integers; returns what stands for it."""
        kind = values.dtype.str[1:]
        raw = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
        return {"array": self._place(kind, raw), "shape": list(values.shape)}

    def plain(self, value: Any) -> Any:
        """The same value with Plotly's binary arrays kept here."""
        if isinstance(value, dict):
            if value.keys() <= {"dtype", "bdata", "shape"} and "bdata" in value:
                return self._plotlys(value)
            return {key: self.plain(part) for key, part in value.items()}
        return [self.plain(part) for part in value] if isinstance(value, list) else value

    def text(self, content: dict[str, Any]) -> str:
        """Everything; content must hold what `array` and `plain` returned. ASCII."""
        table = []
        for kind, raw in self._arrays:
            table.append([kind, len(raw) // int(kind[1:])])
        whole = {"arrays": table, "content": content}
        said = json.dumps(whole, allow_nan=False, separators=(",", ":")).encode("ascii")
        parts = [struct.pack("<I", len(said)), said, *map(_planes, self._arrays)]
        packed = gzip.compress(b"".join(parts), compresslevel=LEVEL, mtime=0)
        return base64.b64encode(packed).decode("ascii")

    def _plotlys(self, value: dict[str, Any]) -> dict[str, Any]:
        assert value["dtype"] in _PLOTLY_TYPES
        flat = np.frombuffer(base64.b64decode(value["bdata"]), f"<{value['dtype']}")
        shape = [int(size) for size in str(value.get("shape", flat.size)).split(",")]
        return self.array(flat.reshape(shape))

    def _place(self, kind: str, raw: bytes) -> int:
        for place, (known_kind, known) in enumerate(self._arrays):
            if kind == known_kind and known.startswith(raw):
                return place
        self._arrays.append((kind, raw))
        return len(self._arrays) - 1


def _planes(array: tuple[str, bytes]) -> bytes:
    kind, raw = array
    return np.frombuffer(raw, dtype=np.uint8).reshape(-1, int(kind[1:])).T.tobytes()
