"""One row of attention, computed step by step by the page from the network's numbers."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import plotly.graph_objects as go

from transformer.analysis.row_arithmetic import (
    TOLERANCE,
    Doubles,
    Floats,
    RowArithmetic,
    row_arithmetic,
)
from transformer.messages import mark, numeral, say, say_list
from transformer.network_words import attention_name
from transformer.runs.batch import Batch
from transformer.runs.head_data import SiteLike, head_view
from transformer.runs.run import Run
from transformer.views.attention.lines import named
from transformer.views.declaration import Answer, view
from transformer.views.drawing import style
from transformer.views.parameters import HEAD, QUERY, SITE

__all__ = ["attention_math", "row_arithmetic"]

_HEADING, _STRIP, _GAP, _TICKS = 30, 30, 12, 62  # px
_KEY_PX, _LEAST_PX, _MOST_PX = 19, 60, 560  # of a key's row, and of all keys
_ACROSS = {"matrix": [0, 0.5], "scores": [0.54, 0.75], "weights": [0.79, 1]}


def attention_math(
    run: Run | Batch,
    site: SiteLike,
    head: int,
    query: int | None = None,
    *,
    row: int = 0,
) -> go.Figure:
    """One query of one head: q, the keys, their scores and weights, and the output, in one figure.

    Traces, in this order: K (keys x D), q (1 x D), scores and weights as bars next to K's rows, and
    the output (1 x D). Each of the three matrices has its own colour scale, symmetric up to its
    largest number. Raises ValueError as `row_arithmetic` does.
    """
    return go.Figure(_figure_of(row_arithmetic(run, site, head, query, row=row)))


def _figure_of(arithmetic: RowArithmetic) -> dict[str, Any]:
    """The figure of `attention_math`, not checked by Plotly, which takes most of the time."""
    panels = _panels(len(arithmetic.key_labels))
    layout = style.layout(
        (
            f"One row, worked out: {attention_name(arithmetic.site.stack, arithmetic.site.kind)}, "
            f"layer {arithmetic.site.layer}, head {arithmetic.head}, query {arithmetic.query}"
        ),
        "q meets every key; the scores become weights; the weights mix the values",
        height=panels["height"],
        margin={"l": 110, "r": 16, "t": 72, "b": _TICKS},
        showlegend=False,
        meta={
            "site": str(arithmetic.site),
            "head": arithmetic.head,
            "query": arithmetic.query,
            "query_label": arithmetic.query_label,
            "row_labels": list(arithmetic.key_labels),
            "agrees": arithmetic.agrees,
        },
        annotations=_headings(arithmetic, panels),
        **_axes(arithmetic, panels),
    )
    return {"data": _traces(arithmetic), "layout": layout}


def _panels(n_keys: int) -> dict[str, Any]:
    """Positions of the strips and the keys: domains from 0 (bottom) to 1, and the height in px."""
    keys = min(_MOST_PX, max(_LEAST_PX, _KEY_PX * n_keys))
    inner = 3 * _HEADING + 2 * _STRIP + _GAP + keys + _TICKS

    def domain(top: int, size: int) -> list[float]:
        return [1 - (top + size) / inner, 1 - top / inner]

    keys_top = 2 * _HEADING + _STRIP + _GAP
    return {
        "q": domain(_HEADING, _STRIP),
        "keys": domain(keys_top, keys),
        "output": domain(inner - _STRIP, _STRIP),
        "height": inner + 72 + _TICKS,
    }


def _axes(arithmetic: RowArithmetic, panels: dict[str, Any]) -> dict[str, Any]:
    size, n_keys = len(arithmetic.q), len(arithmetic.key_labels)
    across = {"range": [-0.5, size - 0.5], "domain": _ACROSS["matrix"], "tickformat": "d"}
    strip: dict[str, Any] = {
        "range": [0.5, -0.5],
        "tickmode": "array",
        "tickvals": [0],
        "ticktext": [style.label(arithmetic.query_label)],
    }
    return {
        "xaxis": style.axis(say("dimension of q and k"), anchor="y", **across),
        "yaxis": style.token_axis(
            say("key (the token that is read)"), arithmetic.key_labels,
            range=[n_keys - 0.5, -0.5], domain=panels["keys"],
        ),
        "xaxis2": style.axis("", anchor="y2", showticklabels=False, **across),
        "yaxis2": style.axis("", anchor="x2", domain=panels["q"], **strip),
        "xaxis3": style.axis(say("score"), domain=_ACROSS["scores"], anchor="y", nticks=4),
        "xaxis4": style.axis(
            say("weight"), domain=_ACROSS["weights"], anchor="y", nticks=4,
            rangemode="tozero",
        ),
        "xaxis5": style.axis(say("dimension of v"), anchor="y5", **across),
        "yaxis5": style.axis("", anchor="x5", domain=panels["output"], **strip),
    }  # fmt: skip


def _headings(arithmetic: RowArithmetic, panels: dict[str, Any]) -> list[dict[str, Any]]:
    """A line of text over each panel. None of them holds a token."""

    def coloured(name: str, part: Any) -> str:
        bound = numeral(style.bound_of(part), ".3g")
        return say("{name} (colours: ±{bound})", name=name, bound=bound)

    root = (
        "D" if arithmetic.score_size == len(arithmetic.q) else numeral(arithmetic.score_size, "g")
    )
    formula = f"q·k / √{root}" + " + b" * (arithmetic.bias is not None)
    if arithmetic.cap is not None:
        formula = f"{arithmetic.cap:g} tanh({formula} / {arithmetic.cap:g})"
    texts = [
        (0, panels["q"], coloured("q", arithmetic.q)),
        (0, panels["keys"], coloured("K", arithmetic.keys)),
        (_ACROSS["scores"][0], panels["keys"], formula),
        (_ACROSS["weights"][0], panels["keys"], "softmax"),
        (0, panels["output"], coloured(f"{say('output')} Σ w·v", arithmetic.output)),
    ]
    return [style.heading(text, x, domain[1]) for x, domain, text in texts]


def _traces(arithmetic: RowArithmetic) -> list[dict[str, Any]]:
    places = np.arange(len(arithmetic.key_labels), dtype=np.int32)
    hidden = ["" if allowed else "/" for allowed in arithmetic.allowed]
    hover = [
        named("key", place, label) + ("" if allowed else f", {say('hidden by the mask')}")
        for place, (label, allowed) in enumerate(
            zip(arithmetic.key_labels, arithmetic.allowed, strict=True)
        )
    ]

    def bars(values: Doubles, name: str, axis: str, colour: str) -> dict[str, Any]:
        return {
            "type": "bar",
            "x": values,
            "y": places,
            "orientation": "h",
            "name": name,
            "xaxis": axis,
            "marker": {"color": colour, "pattern": {"shape": hidden, "fillmode": "replace"}},
            "customdata": hover,
            "hovertemplate": "%{customdata}<br>" + name + " %{x:.4f}<extra></extra>",
        }

    def cells(matrix: Floats, name: str, axes: str) -> dict[str, Any]:
        hover = say_list([name, f"{say('dimension')} %{{x}}"]) + "<br>%{z:.4f}<extra></extra>"
        colours = style.signed(style.bound_of(matrix)) | {"showscale": False}
        trace = {"type": "heatmap", "z": matrix, "hovertemplate": hover}
        return trace | colours | {"xaxis": f"x{axes}", "yaxis": f"y{axes}"}

    output = arithmetic.output[None].astype(np.float32)
    return [
        cells(arithmetic.keys, f"{say('key')} %{{y}}", ""),
        cells(arithmetic.q[None], "q", "2"),
        bars(arithmetic.scores, "score", "x3", style.LIGHT.key),
        bars(arithmetic.weights, "weight", "x4", style.LIGHT.accent),
        cells(output, say("output"), "5"),
    ]


@view(
    tab=mark("Attention"),
    order=130,
    folded=True,
    title=mark("One row, worked out"),
    help="From q and the keys to scores, weights and output, for one query of one head.",
    figure=attention_math,
)
def answer_attention_math(
    item: Run | Batch,
    *,
    site: Annotated[str, SITE],
    head: Annotated[Any, HEAD],
    query: Annotated[int | None, QUERY] = None,
) -> Answer:
    """The figure of one row, with its exact float32 q (D), K and V (Tk x D), mask and the network's
    own scores and weights. query None or beyond the trace: the last traced token."""
    n_queries = len(head_view(item, site, 0).query_labels)
    beyond = isinstance(query, int) and query >= n_queries  # of a long translation
    arithmetic = row_arithmetic(item, site, head, None if beyond else query)
    return {
        "figure": style.typed(_figure_of(arithmetic)),
        "query": arithmetic.query,
        "query_label": arithmetic.query_label,
        "key_labels": list(arithmetic.key_labels),
        "score_size": arithmetic.score_size,
        "historical": item.config.score_scale is None and item.config.score_divisor == "d_model",
        "bias": arithmetic.bias,
        "cap": arithmetic.cap,
        "q": arithmetic.q,
        "keys": arithmetic.keys,
        "values": arithmetic.values,
        "allowed": arithmetic.allowed.astype("uint8"),
        "scores": arithmetic.traced_scores,
        "weights": arithmetic.traced_weights,
        "tolerance": TOLERANCE,
    }
