"""Endpoints that look at what there is: models, limits, views, and what was kept of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from transformer.checks import check_choice, shortened
from transformer.messages import invalid
from transformer.ui.api_values import attention_values, numbers, position_values
from transformer.ui.experiments import Experiments
from transformer.ui.limits import MAX_LISTED, table
from transformer.ui.page_data import model_facts
from transformer.ui.service import Service
from transformer.ui.view_functions import answer
from transformer.views import PICTURES, VIEWS
from transformer.views.declaration import is_figure


def endpoints(
    service: Service, experiments: Experiments
) -> tuple[list[Callable[..., Any]], Callable[..., Any]]:
    """The functions behind them, and /view, which may run the network."""

    def models() -> list[dict[str, Any]]:
        """The models that can be used, with their configuration."""
        return [model_facts(model) for model in service.models.values()]

    def attention(
        run: str,
        site: str = "decoder.0.self",
        head: int = 0,
        row: int = 0,
        packed: bool = False,
    ) -> dict[str, Any]:
        """One head of a run or batch: scores before the mask, weights, and what is allowed.

        Rows are queries, columns keys.

        Args:
            run: the id that /generate, /translate, /trace or /batch gave
            site: STACK.LAYER.KIND, with a kind of self or cross, counted from 0
            head: counted from 0
            row: the sentence of a batch, counted from 0
            packed: each matrix as shape, dtype and base64 instead of nested lists, as one of more
                than 16,384 numbers must be
        """
        return attention_values(service.store.any(run), site, head, row, packed=packed)

    def positions(run: str, stack: str = "decoder", packed: bool = False) -> dict[str, Any]:
        """What a stack adds to its tokens to say where they stand: a row a position.

        Args:
            run: the id that /generate, /translate or /trace gave
            stack: encoder or decoder
            packed: as in /attention
        """
        return position_values(service.store.run(run), stack, packed=packed)

    def views() -> list[dict[str, Any]]:
        """Every view of the page as it declares itself: its pictures, and what each may be told."""
        return [one.schema() for one in VIEWS.values()]

    def view(picture: str, run: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        """A picture of a run, batch or model: its figure as Plotly's JSON, and its numbers.

        Args:
            picture: the name of one of a view's pictures, see /views
            run: the id that /generate, /translate, /trace or /batch gave, or a model's name
            parameters: what the picture is told, by name, as /views lists it
        """
        check_choice("picture", picture, PICTURES)
        if not isinstance(parameters, dict | None):
            raise invalid(
                "{name} must be an object; got {got}", name="parameters", got=shortened(parameters)
            )
        asked = PICTURES[picture]
        subject = asked.takes if asked.takes in ("batch", "model") else "run"
        found = answer(experiments, asked, {**(parameters or {}), subject: run})
        return {name: _listed(value) for name, value in found.items()}

    def limits() -> dict[str, dict[str, Any]]:
        """How much may be asked at once: each limit with its unit, and what happens beyond it."""
        return table()

    return [models, attention, positions, limits, views], view


def _listed(value: Any) -> Any:
    """A figure as plain values, an array as lists or, a large one, packed; the rest as it is."""
    if isinstance(value, np.ndarray):
        return numbers(value, packed=value.size > MAX_LISTED)
    if is_figure(value):
        return json.loads(str(value.to_json(validate=False)))
    if isinstance(value, dict):
        return {name: _listed(one) for name, one in value.items()}
    return value
