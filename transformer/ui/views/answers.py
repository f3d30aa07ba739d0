"""How a view answers the page: one dict in, one dict out, figures as Plotly's JSON."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go
from numpy.typing import NDArray

from transformer.ui.limits import sentence_of
from transformer.ui.store import RunGone

Answer = dict[str, Any]
View = Callable[[dict[str, Any]], Answer]


def server_function(of: Any, view: Callable[..., Answer]) -> View:
    """A view as Gradio wants it for a component: one dict in, one dict out, never an exception
    for a visitor's mistake. of: what the view takes first, the RunStore or the Experiments.

    {"gone": True} says that the mistake is to ask for a run that is no longer kept.
    """

    def answer(data: dict[str, Any]) -> Answer:
        try:
            return view(of, **data)
        except RunGone as error:
            return {"error": sentence_of(error), "gone": True}
        except (ValueError, TypeError, RecursionError) as error:
            return {"error": sentence_of(error)}

    answer.__name__ = view.__name__
    return answer


def one_of(name: str, got: Any, table: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
    """table[got]. Raises ValueError listing its names for an unknown one."""
    if got not in table:
        raise ValueError(f"{name} must be one of {list(table)}; got {got!r}")
    return table[got]


def as_json(figure: go.Figure) -> str:
    """Plotly's own JSON (arrays as base64), as a string that the page parses itself."""
    return str(figure.to_json(validate=False))


def binary(values: NDArray[Any]) -> str:
    """An array's bytes for the page's `viz.bytes` and `viz.floats`."""
    return base64.b64encode(values.tobytes()).decode("ascii")
