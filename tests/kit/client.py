"""How tests ask what the page asks."""

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np

from transformer import Model
from transformer.server.fields import SETTINGS
from transformer.server.http.errors import RunExpired, public_error
from transformer.server.http.requests import answering, caller
from transformer.server.kept.service import Service
from transformer.server.kept.store import RunStore
from transformer.server.page import presses
from transformer.server.page.resources import questions
from transformer.views.declaration import is_figure

ENDPOINTS = (
    "models", "limits", "views", "generate", "translate", "trace", "fill", "batch", "attention",
    "positions", "importance", "next_token", "patching", "breaks", "score", "view",
)  # fmt: skip


def asking(of: RunStore | Service, name: str) -> Callable[[Any], dict[str, Any]]:
    """Asks a question; a mistake gives {"error": sentence}, of a run that is not kept also "gone".

    A store is enough where the network is not asked.
    """
    service: Any = SimpleNamespace(store=of, debug=False) if isinstance(of, RunStore) else of
    question = questions(service)[name]

    def ask(data: dict[str, Any]) -> dict[str, Any]:
        try:
            return {key: plain(value) for key, value in question(dict(data)).items()}
        except (ValueError, RecursionError) as error:
            gone = {"gone": True} if isinstance(error, RunExpired) else {}
            return {"error": public_error(error)["detail"], **gone}

    return ask


@contextmanager
def visiting(name: str) -> Iterator[None]:
    """Make requests in this block as this visitor."""
    with answering(caller()._replace(session=name)):
        yield


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
        return base64.b64encode(value.tobytes()).decode("ascii")
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value


def called(client: httpx.Client, name: str, *data: Any) -> str:
    """The events that a named endpoint of the API answers with."""
    event = client.post(f"gradio_api/call/{name}", json={"data": data}).json()["event_id"]
    return client.get(f"gradio_api/call/{name}/{event}").text


# The page's controls when it opens.
CONTROLS = dict(zip(SETTINGS, ("sample", 0.7, 40, 1, 4, 1, 40, 3, None, None, None), strict=True))
SILENCED = {"type": "ablate", "stack": "decoder", "layer": 1, "heads": [0]}
FORBIDDEN = {"type": "mask", "stack": "decoder", "forbid": [[2, 1], [3, None]]}


def opened(service: Service, model: str) -> dict[str, Any]:
    """The data that the page receives when a visitor opens a model."""
    return presses.example_page(service, "visitor", model, {})
