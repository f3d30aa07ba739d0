"""Attention: all heads small, one head large, alignment."""

from __future__ import annotations

from transformer import figures
from transformer.figures.data import head_view
from transformer.ui.store import RunStore
from transformer.ui.views.answers import Answer, as_json, binary


def atlas(store: RunStore, *, run: str, stack: str, kind: str) -> Answer:
    """Small pictures of all heads: uint8 (L, H, Sq, Sk) and which pixels are masked (Sq, Sk)."""
    small = figures.atlas(store.any(run), stack, kind)
    return {
        "shape": list(small.pixels.shape),
        "pixels": binary(small.pixels),
        "masked": binary(small.masked),
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
    answer = {"figure": as_json(figure)}
    if numbers:
        view = head_view(item, site, head, row)
        answer |= {
            "scores": binary(view.scores),
            "weights": binary(view.weights),
            "allowed": binary(view.allowed.astype("uint8")),
        }
    return answer


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
    return {"figure": as_json(figure)}
