"""Maps of one number a head: layers down, heads across."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformer.messages import say
from transformer.views.drawing import style


def head_axes(shape: Sequence[int]) -> dict[str, Any]:
    """Both axes of layers x heads, layer 0 on top."""
    n_layers, n_heads = shape
    return {
        f"{name}axis": style.axis(
            title, range=span, constrain="domain",
            tickmode="linear", tick0=0, dtick=max(1, -(-count // style.MAX_TICKS)),
        )
        for name, title, count, span in (
            ("x", say("head"), n_heads, [-0.5, n_heads - 0.5]),
            ("y", say("layer"), n_layers, [n_layers - 0.5, -0.5]),
        )
    }  # fmt: skip


def head_labels(shape: Sequence[int]) -> dict[str, Any]:
    """Names of the rows and of the columns, for `layout.meta`."""
    n_layers, n_heads = shape
    return {
        "row_labels": [say("layer {place}", place=place) for place in range(n_layers)],
        "column_labels": [say("head {place}", place=place) for place in range(n_heads)],
    }
