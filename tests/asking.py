"""How tests ask what the page asks."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from transformer import Model
from transformer.ui.errors import RunExpired, public_error
from transformer.ui.questions import questions
from transformer.ui.service import Service
from transformer.ui.sessions import current_session
from transformer.ui.store import RunStore
from transformer.views.declaration import is_figure

ENDPOINTS = (
    "models", "limits", "views", "generate", "translate", "trace", "fill", "batch", "attention",
    "positions", "importance", "next_token", "patching", "breaks", "score", "view",
)  # fmt: skip


def asking(of: RunStore | Service, name: str) -> Callable[[Any], dict[str, Any]]:
    """Asks a question; a mistake gives {"error": sentence}, of a run that is not kept also "gone".

    A store is enough where the network is not asked.
    """
    service: Any = SimpleNamespace(store=of) if isinstance(of, RunStore) else of
    question = questions(service)[name]

    def ask(data: dict[str, Any]) -> dict[str, Any]:
        try:
            return {key: plain(value) for key, value in question.work(dict(data)).items()}
        except (ValueError, RecursionError) as error:
            gone = {"gone": True} if isinstance(error, RunExpired) else {}
            return {"error": public_error(error)["detail"], **gone}

    return ask


@contextmanager
def visiting(name: str) -> Iterator[None]:
    """What is asked inside is asked by this visitor."""
    token = current_session.set(name)
    try:
        yield
    finally:
        current_session.reset(token)


def queries(model: Model) -> Any:
    """What asks this one model."""
    return SimpleNamespace(
        model=lambda _: model,
        ask=lambda question, *of, **more: question(model, *of, **more),
    )


def plain(value: Any) -> Any:
    """A figure as Plotly's own JSON text, an array as its bytes in base64, the rest as it is."""
    if is_figure(value):
        return str(value.to_json(validate=False))
    if isinstance(value, np.ndarray):
        return b64encode(value.tobytes()).decode("ascii")
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value
