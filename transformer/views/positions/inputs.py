"""What enters the first layer: each token's own vector, its position's vector, and their sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.checks import check_choice, check_whole
from transformer.messages import invalid, mark, numeral, say
from transformer.network_words import of_stack
from transformer.runs.head_data import array
from transformer.runs.run import Run
from transformer.views.drawing import style

PARTS = ("token", "position", "sum")
_NAMES = {"token": mark("token"), "position": mark("position"), "sum": mark("sum")}
_TITLES = {"token": mark("tokens"), "position": mark("+ positions"), "sum": mark("= sums")}
_COLOURED = 0.995  # of the numbers; those beyond, a few far out, share the colours at the ends
_DASHES = {"token": "solid", "position": "dot", "sum": "dash"}
_WIDTHS = {"token": 2, "position": 2, "sum": 1.5}
_PANELS = {"token": [0, 0.3], "position": [0.35, 0.65], "sum": [0.7, 1]}
_ROW_PX, _LEAST_PX, _MOST_PX = 19, 90, 520  # of one token, and of all of them

Matrix = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class InputParts:
    """What a stack's input is made of, for the traced tokens: token + position = sum.

    token, position, sum, first: (T, C) float32. first is what entered the first layer as recorded;
    it differs from the sum where the model norms its embeddings (`normed`).
    """

    stack: str
    labels: tuple[str, ...]
    token: Matrix
    position: Matrix
    sum: Matrix
    first: Matrix
    normed: bool

    def mean_length(self, part: str) -> float:
        """The length of a row's vector, on average over the tokens. part: one of PARTS."""
        return float(np.linalg.norm(self.part(part).astype(np.float64), axis=1).mean())

    def part(self, name: str) -> Matrix:
        """One of PARTS by its name."""
        return {"token": self.token, "position": self.position, "sum": self.sum}[name]

    @property
    def difference(self) -> float:
        """Largest difference between the sum and what entered the first layer."""
        return float(np.abs(self.sum - self.first).max())


def input_parts(run: Run, stack: str | None = None) -> InputParts:
    """The parts of a stack's input; stack None: the model's only stack, or the decoder.

    Raises ValueError for a stack that was not recorded.
    """
    known = tuple(run.trace.embed)
    if not known:
        raise invalid("this run's trace holds no embeddings; needed: a network's own trace")
    chosen = known[-1] if stack is None else stack
    check_choice("stack", chosen, known)
    token = array(run.trace.embed[chosen][0])
    position = array(run.trace.pos_embed[chosen][0])
    return InputParts(
        stack=chosen,
        labels=run.queries(chosen),
        token=token,
        position=position,
        sum=token + position,
        first=array(run.trace.residuals[chosen][0][0]),
        normed=run.config.norm_embeddings,
    )


def input_strips(run: Run, stack: str | None = None, *, dark: bool = False) -> go.Figure:
    """Token vectors, position vectors and their sum, each tokens x dimensions, side by side.

    One scale of colours for all three, which ends where 0.5 % of the numbers are still larger.
    Raises ValueError for a stack that was not recorded.
    """
    found = input_parts(run, stack)
    count, size = found.sum.shape
    every = np.abs(np.stack([found.part(name) for name in PARTS]))
    bound = float(np.quantile(every, _COLOURED)) or 1.0
    cells = [
        go.Heatmap(
            z=found.part(name),
            **style.signed(bound, dark),
            colorbar=style.colorbar(say("value")),
            showscale=name == "sum",
            xaxis=f"x{place or ''}",
            hovertemplate=say(
                "{name}: token %{y}, dimension %{x}<br>value %{z:.4f}<extra></extra>", name=name
            ),
        )
        for name, place in zip(PARTS, (0, 2, 3), strict=True)
    ]
    layout = style.layout(
        say("What enters the first layer {of_stack}", of_stack=of_stack(found.stack)),
        _subtitle(found),
        dark=dark,
        height=min(_MOST_PX, max(_LEAST_PX, _ROW_PX * count)) + 72 + 90,
        margin={"l": 110, "r": 90, "t": 100, "b": 62},
        meta=_meta(found)
        | {"row_labels": list(found.labels), "headings": [say(_TITLES[name]) for name in PARTS]},
        annotations=[_heading(found, name) for name in PARTS],
        yaxis=style.token_axis(say("token"), found.labels, dark=dark, range=[count - 0.5, -0.5]),
        **_dimension_axes(size, dark),
    )
    return go.Figure(data=cells, layout=layout)


def _dimension_axes(size: int, dark: bool) -> dict[str, Any]:
    """One axis of dimensions a panel; the rows' axis is shared."""
    names = dict(zip(PARTS, ("xaxis", "xaxis2", "xaxis3"), strict=True))
    return {
        names[part]: style.axis(
            say("dimension"), dark=dark, domain=_PANELS[part], range=[-0.5, size - 0.5], anchor="y",
            nticks=5, tickformat="d",
        )
        for part in PARTS
    }  # fmt: skip


def _heading(found: InputParts, name: str) -> dict[str, Any]:
    return {
        "text": say(
            "{titles}, mean length {name}",
            titles=say(_TITLES[name]),
            name=numeral(found.mean_length(name), ".2f"),
        ),
        "xref": "paper",
        "yref": "paper",
        "x": _PANELS[name][0],
        "y": 1,
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
    }


def _subtitle(found: InputParts) -> str:
    if found.normed:
        return say("token vector + position vector; the model then norms the sum of each token")
    return say("token vector + position vector; the sum is what the layer reads")


def _meta(found: InputParts) -> dict[str, Any]:
    return {"stack": found.stack, "normed": found.normed}


def input_token(
    run: Run, place: int | None = None, stack: str | None = None, *, dark: bool = False
) -> go.Figure:
    """One token's vector, its position's, and their sum, as three lines over the dimensions.

    place: which traced token, by default the last. Raises ValueError for one that is not there.
    """
    found = input_parts(run, stack)
    last = len(found.sum) - 1
    chosen = last if place is None else place
    check_whole("place", chosen, 0, last)
    theme = style.theme(dark)
    colours = {"token": theme.accent, "position": theme.key, "sum": theme.text}
    dimensions = np.arange(found.sum.shape[1], dtype=np.int32)
    lines = [
        go.Scatter(
            x=dimensions,
            y=np.ascontiguousarray(found.part(name)[chosen]),
            mode="lines",
            name=say(_NAMES[name]),
            line={"color": colours[name], "dash": _DASHES[name], "width": _WIDTHS[name]},
            hovertemplate="%{y:.4f}",
        )
        for name in PARTS
    ]
    layout = style.layout(
        say(
            "Token {chosen} {of_stack}: its vector, its position's, and their sum",
            chosen=chosen,
            of_stack=of_stack(found.stack),
        ),
        say("one place a dimension"),
        dark=dark,
        xaxis=style.axis(say("dimension"), dark=dark, tickformat="d"),
        yaxis=style.axis(say("value"), dark=dark, showgrid=True),
        hovermode="x unified",
        showlegend=True,
        legend={"orientation": "h", "y": -0.2},
        meta=_meta(found) | {"place": chosen, "token": found.labels[chosen]},
    )
    return go.Figure(data=lines, layout=layout)
