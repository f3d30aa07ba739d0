"""Cross-attention with weights of our own, for the tests of the alignment figure."""

from __future__ import annotations

import dataclasses
from typing import Any

import plotly.graph_objects as go
import torch

from transformer import Run, Site, Trace

# Two layers x two heads, three queries, four source tokens; every number is exact in float32.
WORKED = torch.tensor(
    [
        [
            [[0.5, 0.25, 0.125, 0.125], [0.0, 0.0, 1.0, 0.0], [0.25, 0.25, 0.25, 0.25]],
            [[0.0, 0.75, 0.25, 0.0], [0.5, 0.0, 0.5, 0.0], [0.125, 0.125, 0.25, 0.5]],
        ],
        [
            [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]],
            [[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.0, 0.5], [0.5, 0.0, 0.0, 0.5]],
        ],
    ]
)


def with_cross(run: Run, weights: torch.Tensor, source: list[str], target: list[str]) -> Run:
    """A run whose cross-attention is `weights` (L, H, Tq, Tk)."""
    trace = Trace()
    for layer, heads in enumerate(weights):
        trace.record_attention(Site("decoder", layer, "cross"), heads[None], heads[None], None)
    return dataclasses.replace(
        run, trace=trace, source_labels=tuple(source), labels=tuple(target), trace_start=0
    )


def worked(run: Run) -> Run:
    """The hand-worked weights, with the tokens that they are of."""
    return with_cross(run, WORKED, ["the", "cat", "sleeps", "."], ["<s>", "le", "chat"])


def columns(figure: go.Figure) -> tuple[Any, Any]:
    """The traces that hold the source and the target tokens."""
    source, target = (trace for trace in figure.data if trace.mode == "markers+text")
    return source, target
