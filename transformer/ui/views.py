"""What the page's scripts ask the server for: pictures of a kept run, as JSON.

Each takes one dict from the browser and gives one back; a mistake gives {"error": sentence}.
None of them runs the network.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer import figures
from transformer.figures.data import head_view
from transformer.figures.prediction import drawable, how, step_of
from transformer.ui.store import RunStore

Answer = dict[str, Any]
View = Callable[[dict[str, Any]], Answer]


def atlas(store: RunStore, *, run: str, stack: str, kind: str) -> Answer:
    """Small pictures of all heads: uint8 (L, H, Sq, Sk) and which pixels are masked (Sq, Sk)."""
    small = figures.atlas(store.any(run), stack, kind)
    return {
        "shape": list(small.pixels.shape),
        "pixels": _binary(small.pixels),
        "masked": _binary(small.masked),
    }


def heatmap(
    store: RunStore,
    *,
    run: str,
    site: str,
    head: int,
    stage: str = "weights",
    scale: str = "linear",
    row: int = 0,
    dark: bool = False,
    numbers: bool = False,
) -> Answer:
    """One head large; with `numbers` also its exact scores, weights and mask for the read-out."""
    item = store.any(run)
    figure = figures.attention_heatmap(
        item, site, head, stage=stage, scale=scale, row=row, dark=dark, hover=False
    )
    answer = {"figure": _json(figure)}
    if numbers:
        view = head_view(item, site, head, row)
        answer |= {
            "scores": _binary(view.scores),
            "weights": _binary(view.weights),
            "allowed": _binary(view.allowed.astype("uint8")),
        }
    return answer


def mask(
    store: RunStore,
    *,
    batch: str,
    row: int,
    which: str,
    stack: str,
    kind: str,
    dark: bool = False,
) -> Answer:
    """One mask of one sentence of a batch, in one kind of attention."""
    figure = figures.mask_figure(store.batch(batch), row, which, dark, stack=stack, kind=kind)
    return {"figure": _json(figure)}


def padded(store: RunStore, *, batch: str, stack: str, dark: bool = False) -> Answer:
    """The picture of the padded batch that a stack read."""
    return {"figure": _json(figures.padded_batch(store.batch(batch), dark, stack=stack))}


def alignment(
    store: RunStore,
    *,
    run: str,
    layer: int | str,
    head: int | str,
    by: str = "written",
    dark: bool = False,
) -> Answer:
    """Cross-attention as lines from each target token to the source token that it read most."""
    figure = figures.alignment(store.any(run), layer, head, by=by, dark=dark)
    return {"figure": _json(figure)}


def tree(store: RunStore, *, run: str, dark: bool = False) -> Answer:
    """Which hypotheses of a beam search lived and died at each step."""
    return {"figure": _json(figures.beam_tree(store.run(run), dark=dark))}


def positions(
    store: RunStore,
    *,
    run: str,
    which: str,
    stack: str | None = None,
    dimensions: list[int] | None = None,
    dark: bool = False,
) -> Answer:
    """The positional matrix, curves of chosen dimensions, or the similarity of positions."""
    item = store.run(run)
    if which == "curves":
        return {"figure": _json(figures.position_curves(item, dimensions or [], stack, dark))}
    draw = _one_of(
        "which",
        which,
        {"matrix": figures.position_matrix, "similarity": figures.position_similarity},
    )
    return {"figure": _json(draw(item, stack=stack, dark=dark))}


def candidates(store: RunStore, *, run: str, step: int, dark: bool = False) -> Answer:
    """What one step chose from, and the window of tokens that it saw."""
    item = store.run(run)
    found = step_of(item, step)
    start, stop = found.window
    return {
        "figure": _json(figures.candidates(item, step, dark=dark)),
        "chosen": item.labels[stop],
        "probability": found.chosen.probability,
        "how": how(item.request) + drawable(item, found),
        "window": [start, stop],
        "seen": list(item.labels[start:stop]),
        "slid": start > 0,
    }


VIEWS = (atlas, heatmap, mask, padded, alignment, positions, candidates, tree)


def server_function(store: RunStore, view: Callable[..., Answer]) -> View:
    """A view as Gradio wants it for a component: one dict in, one dict out, never an exception
    for a visitor's mistake."""

    def answer(data: dict[str, Any]) -> Answer:
        try:
            return view(store, **data)
        except (ValueError, TypeError) as error:
            return {"error": str(error)}

    answer.__name__ = view.__name__
    return answer


def _one_of(name: str, got: Any, table: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
    if got not in table:
        raise ValueError(f"{name} must be one of {list(table)}; got {got!r}")
    return table[got]


def _json(figure: go.Figure) -> str:
    """Plotly's own JSON (arrays as base64), as a string that the page parses itself."""
    return str(figure.to_json(validate=False))


def _binary(values: NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode("ascii")


__all__ = ["VIEWS", "server_function"]
