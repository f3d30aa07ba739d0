"""All heads at once: small pictures, layers across and heads down."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import plotly.graph_objects as go
from plotly.colors import hex_to_rgb

from transformer.analysis.atlas import Atlas, Pixels, atlas
from transformer.messages import say
from transformer.network_words import attention_name
from transformer.runs.batch import Batch
from transformer.runs.run import Run
from transformer.views.declaration import Answer
from transformer.views.drawing import style
from transformer.views.parameters import KIND, STACK


def head_grid(run: Run | Batch, stack: str, kind: str, *, row: int = 0) -> go.Figure:
    """Every head's weights side by side in one picture, coloured by the square root.

    One indexed PNG holds all the cells (a trace for each head would take seconds to draw); a
    see-through cell over each small picture answers the pointer with its layer and head.
    Raises ValueError, listing what there is, for an unknown stack, kind or row.
    """
    small = atlas(run, stack, kind, row)
    n_layers, n_heads, height, width = small.pixels.shape
    gap = _gap(small)
    colours = style.LIGHT.weights
    picture = go.Image(source=data_url(mosaic(small), colours), hoverinfo="skip")
    rows = [head * (height + gap) + (height - 1) / 2 for head in range(n_heads)]
    columns = [layer * (width + gap) + (width - 1) / 2 for layer in range(n_layers)]
    # one path around all the small pictures, so that a head with small weights has an edge too
    frames = "".join(
        f"M{x - width / 2},{y - height / 2}L{x + width / 2},{y - height / 2}"
        f"L{x + width / 2},{y + height / 2}L{x - width / 2},{y + height / 2}Z"
        for y in rows
        for x in columns
    )
    return style.figure(
        [picture, _pointer_cells(rows, columns), _scale()],
        f"Every head, {attention_name(stack, kind)}",
        "rows of cells: query; columns: key; colours follow the square root of the weight",
        xaxis=style.axis(say("layer"), **_places(columns), constrain="domain"),
        yaxis=style.axis(
            say("head"), **_places(rows), constrain="domain", constraintoward="top",
            scaleanchor="x", range=[n_heads * (height + gap) - gap - 0.5, -0.5],
        ),
        shapes=[{"type": "path", "path": frames, "line": {"color": style.LIGHT.line, "width": 1}}],
        showlegend=False,
    )  # fmt: skip


def _places(centres: list[float]) -> dict[str, Any]:
    return {
        "tickmode": "array",
        "tickvals": centres,
        "ticktext": [str(number) for number in range(len(centres))],
        "tickangle": 0,
    }


def _pointer_cells(rows: list[float], columns: list[float]) -> go.Heatmap:
    clear = [[0, style.TRANSPARENT], [1, style.TRANSPARENT]]
    numbers = [[[layer, head] for layer in range(len(columns))] for head in range(len(rows))]
    return go.Heatmap(
        x=columns,
        y=rows,
        z=np.zeros((len(rows), len(columns)), dtype=np.uint8),
        customdata=np.asarray(numbers, dtype=np.uint8),
        colorscale=clear,
        showscale=False,
        hovertemplate="layer %{customdata[0]}, head %{customdata[1]}<extra></extra>",
    )


def _scale() -> go.Scatter:
    """A trace without points, which draws the colour bar."""
    weights = (0, 0.01, 0.05, 0.2, 0.5, 1)
    places, texts = [v**0.5 for v in weights], [f"{v:g}" for v in weights]
    bar = style.colorbar(say("weight"), tickmode="array", tickvals=places, ticktext=texts)
    scale = {"colorscale": style.WEIGHTS, "colorbar": bar}
    marker = {"color": [0], "cmin": 0, "cmax": 1, **scale}
    return go.Scatter(x=[None], y=[None], mode="markers", marker=marker | {"showscale": True})


def answer_atlas(
    item: Run | Batch,
    *,
    stack: Annotated[str, STACK],
    kind: Annotated[str, KIND],
) -> Answer:
    """Small pictures of all heads: uint8 (L, H, Sq, Sk) and which pixels are masked (L, Sq, Sk)."""
    return atlas(item, stack, kind).answer()


def _gap(small: Atlas) -> int:
    """Pixels between two small pictures: a twelfth of their width, 1 at least."""
    return max(1, small.pixels.shape[-1] // 12)


def tiles(small: Atlas) -> Pixels:
    """(L, H, Sq, Sk) palette indices: 0 = transparent, 1 to 255 = colours of the weights."""
    return np.where(small.masked[:, None] == 1, 0, np.maximum(small.pixels, 1)).astype(np.uint8)


def mosaic(small: Atlas) -> Pixels:
    """All tiles in one picture, layers across and heads down."""
    _, n_heads, height, _ = small.pixels.shape
    gap = _gap(small)
    padded = np.pad(tiles(small), ((0, 0), (0, 0), (0, gap), (0, gap)))
    joined = padded.transpose(1, 2, 0, 3).reshape(n_heads * (height + gap), -1)
    return joined[:-gap, :-gap]


def data_url(pixels: Pixels, colours: Sequence[str] = style.LIGHT.weights) -> str:
    """An indexed PNG as the address of an image."""
    return "data:image/png;base64," + base64.b64encode(indexed_png(pixels, colours)).decode("ascii")


def indexed_png(pixels: Pixels, colours: Sequence[str]) -> bytes:
    """A PNG with evenly spaced palette colours; index 0 is transparent. pixels: (height, width)
    uint8."""
    height, width = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)  # 8 bits, indexed
    lines = np.pad(pixels, ((0, 0), (1, 0))).tobytes()  # each line starts with filter 0
    chunks = [
        (b"IHDR", header),
        (b"PLTE", palette(colours).tobytes()),
        (b"tRNS", b"\x00"),
        (b"IDAT", zlib.compress(lines, 6)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )


def palette(colours: Sequence[str] = style.LIGHT.weights) -> Pixels:
    """(256, 3) colours from the first to the last."""
    stops = np.array([hex_to_rgb(colour) for colour in colours], dtype=np.float64)
    places = np.linspace(0, len(stops) - 1, 256)
    channels = [np.interp(places, np.arange(len(stops)), stops[:, c]) for c in range(3)]
    return np.rint(np.stack(channels, axis=-1)).astype(np.uint8)
