"""Named, typed endpoints for programs: the same models, runs and sentences as the page.

Indices count from 0, as in Python. A caller's mistake raises the error of the Python call, with its
code as the title. Parameters are described under Args, where Gradio looks for the page's own
description of the API and for tools of the Model Context Protocol (MCP), which it serves too.
"""

from __future__ import annotations

import functools
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import metadata
from typing import Any, NamedTuple

import gradio as gr
import numpy as np
from gradio import processing_utils
from gradio.data_classes import GradioModel, GradioRootModel
from gradio.events import api

from transformer.checks import check_choice, shortened
from transformer.inference.deadline import until
from transformer.runs.head_data import head_view
from transformer.server.http.errors import reported
from transformer.server.http.limits import MAX_LISTED, table
from transformer.server.http.requests import caller, in_thread
from transformer.server.kept.page_models import model_facts
from transformer.server.kept.service import Service
from transformer.server.page.resources import answer, numbers
from transformer.server.programs.api_runs import experiment_endpoints, run_endpoints
from transformer.views.declaration import is_figure
from transformer.views.registry import PICTURES, VIEWS

PACKAGE = "mcp>=1.28.1,<2"  # older ones have known vulnerabilities


class Endpoint(NamedTuple):
    """A function that programs may call, and the line in which its calls wait."""

    function: Callable[..., Any]
    line: str

    @property
    def name(self) -> str:
        return self.function.__name__

    async def call(self, service: Service, *args: Any, **kwargs: Any) -> Any:
        """The function's result, computed in a thread within a request's time. Raises Busy."""

        def work() -> Any:
            with service.requests.open(caller().session) as deadline, until(deadline):
                return service.budget.attempt(lambda: self.function(*args, **kwargs))

        return await in_thread(service.shares, self.line, work)


def endpoints_of(service: Service) -> dict[str, Endpoint]:
    """Every endpoint by its name."""
    *looking, view = look_endpoints(service)
    lines = {
        "model": run_endpoints(service),
        # /view may run the network for a picture, as an experiment does.
        "experiments": [*experiment_endpoints(service), view],
        "events": looking,
    }
    return {
        function.__name__: Endpoint(function, line)
        for line, functions in lines.items()
        for function in functions
    }


def endpoint_blocks(service: Service, endpoints: Mapping[str, Endpoint], title: str) -> gr.Blocks:
    """The endpoints alone, as Gradio describes them and calls them as tools.

    Calls of other programs are answered by `programs`. They are apart from the page, whose frontend
    would make something of each input and output.
    """

    def add(endpoint: Endpoint) -> None:
        @functools.wraps(endpoint.function)
        async def tool(*args: Any, **kwargs: Any) -> Any:
            try:
                return await endpoint.call(service, *args, **kwargs)
            except Exception as error:
                problem = reported(error)
            raise ValueError(f"{problem['code']}: {problem['detail']}")

        # Not in Gradio's queue, which is not started; see `application`.
        api(tool, api_name=endpoint.name, queue=False)

    with gr.Blocks(title=title, analytics_enabled=False) as blocks:
        for endpoint in endpoints.values():
            add(endpoint)
    return blocks


def look_endpoints(service: Service) -> list[Callable[..., Any]]:
    """Endpoints that only read stored results; the last one, /view, may run the network."""

    def models() -> list[dict[str, Any]]:
        """The models that can be used, with their configuration."""
        return [model_facts(model) for model in service.models.values()]

    def attention(
        run: str, site: str = "decoder.0.self", head: int = 0, row: int = 0, packed: bool = False
    ) -> dict[str, Any]:
        """One head of a run or batch: scores before the mask, weights, and what is allowed.

        Rows are queries, columns keys. The weights are the trace's, also of an ablated head, which
        the page's pictures draw as reading nothing.

        Args:
            run: the id that /generate, /translate, /trace or /batch gave
            site: STACK.LAYER.KIND, with a kind of self or cross, counted from 0
            head: counted from 0
            row: the sentence of a batch, counted from 0
            packed: each matrix as shape, dtype and base64 instead of nested lists, as one of more
                than 16,384 numbers must be
        """
        view = replace(head_view(service.store.any(run), site, head, row), off=())
        return {
            "site": str(view.site),
            "head": view.head,
            "queries": list(view.query_labels),
            "keys": list(view.key_labels),
            "scores": numbers(view.scores, packed),
            "weights": numbers(view.weights, packed),
            "allowed": numbers(view.allowed, packed),
        }

    def positions(run: str, stack: str = "decoder", packed: bool = False) -> dict[str, Any]:
        """The positional encoding that a stack adds to its tokens, one row per position.

        Args:
            run: the id that /generate, /translate or /trace gave
            stack: encoder or decoder
            packed: as in /attention
        """
        item = service.store.run(run)
        check_choice("stack", stack, tuple(item.position_matrices))
        matrix = numbers(item.position_matrices[stack].numpy(), packed)
        return {"stack": stack, "kind": item.config.positions, "matrix": matrix}

    def views() -> list[dict[str, Any]]:
        """Every view of the page as it declares itself: its pictures and their parameters."""
        return [each.schema() for each in VIEWS.values()]

    def view(picture: str, run: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        """A picture of a run, batch or model: its figure as Plotly's JSON, and its numbers.

        Args:
            picture: the name of one of a view's pictures, see /views
            run: the id that /generate, /translate, /trace or /batch gave, or a model's name
            parameters: the picture's parameters by name, as /views lists them
        """
        check_choice("picture", picture, PICTURES)
        if not isinstance(parameters, dict | None):
            raise ValueError(f"parameters must be an object; got {shortened(parameters)}")
        kind = PICTURES[picture].subject
        subject = kind if kind in ("batch", "model") else "run"
        answered = answer(service, PICTURES[picture], {**(parameters or {}), subject: run})
        return {name: _listed(value) for name, value in answered.items()}

    def limits() -> dict[str, dict[str, Any]]:
        """How much may be asked at once: each limit with its unit, and what happens beyond it."""
        return table()

    return [models, attention, positions, limits, views, view]


def _listed(value: Any) -> Any:
    """A figure as plain values, an array as lists or, a large one, packed; the rest as it is."""
    if isinstance(value, np.ndarray):
        return numbers(value, packed=value.size > MAX_LISTED)
    if is_figure(value):
        return json.loads(str(value.to_json(validate=False)))
    if isinstance(value, dict):
        return {name: _listed(item) for name, item in value.items()}
    return value


async def unchanged(data: Any, *_: Any, **__: Any) -> Any:
    """The inputs of a tool as they are. Gradio 6.31 would fetch a file that one names:
    {"path": "http://HOST/x", "meta": {"_type": "gradio.FileData"}}; no endpoint takes files."""
    return data.model_dump() if isinstance(data, GradioModel | GradioRootModel) else data


def check_tools() -> None:
    """Raise ValueError unless the package that speaks the protocol is installed."""
    try:
        version = metadata.version("mcp")
    except metadata.PackageNotFoundError:
        version = "none"
    if not (1, 28, 1) <= tuple(map(int, re.findall(r"\d+", version)[:3])) < (2,):
        raise ValueError(
            f"serving tools over MCP needs the package {PACKAGE}; installed: {version}; "
            f'allowed: pip install "{PACKAGE}", or no --mcp'
        )


@asynccontextmanager
async def tools(page: gr.Blocks) -> AsyncIterator[None]:
    """While it runs, tools are answered: in JSON instead of Python's repr, and nothing that was
    sent gets into the log (nor into the root logger's, see `process.ShortLog`)."""

    def written(outputs: list[Any], _root: str) -> list[Any]:
        from mcp.types import TextContent

        texts = (
            json.dumps(output, ensure_ascii=False, separators=(",", ":")) for output in outputs
        )
        return [TextContent(type="text", text=text) for text in texts]

    server: Any = page.mcp_server_obj
    if server is None:
        yield
        return
    processing_utils.async_move_files_to_cache = unchanged
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    server.postprocess_output_data = written
    async with server.lifespan(None):
        yield
