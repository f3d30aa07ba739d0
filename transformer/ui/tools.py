"""The API's named endpoints as tools of the Model Context Protocol (MCP), where that is asked for.

Gradio serves them: a tool's name and description are an endpoint's, a call goes through the page's
queue, and each refusal is the endpoint's own sentence.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import metadata
from typing import Any

import gradio as gr

from transformer.messages import invalid

PACKAGE = "mcp>=1.21,<2"  # as Gradio asks for it
CALLER = ("x-gradio-user", "mcp")  # the header by which Gradio marks a tool's call


def check_tools() -> None:
    """Raise ValueError unless the package that speaks the protocol is installed."""
    try:
        version = metadata.version("mcp")
    except metadata.PackageNotFoundError:
        version = "none"
    major, minor = ([*version.split("."), ""])[:2]
    if major != "1" or not minor.isdecimal() or int(minor) < 21:
        raise invalid(
            "serving tools over MCP needs the package {package}; installed: "
            '{version}; allowed: pip install "{package}", or no --mcp',
            package=PACKAGE,
            version=version,
        )


def in_json(page: gr.Blocks) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """While the server of `page` runs, a tool answers in JSON, not as Python writes values; and
    what a caller sent stays out of the log (of the root logger's too: `process.ShortLog`)."""

    def written(outputs: list[Any], _root: str) -> list[Any]:
        from mcp.types import TextContent

        texts = (json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in outputs)
        return [TextContent(type="text", text=text) for text in texts]

    @asynccontextmanager
    async def running(_app: Any) -> AsyncIterator[None]:
        if page.mcp_server_obj is not None:
            logging.getLogger("mcp").setLevel(logging.CRITICAL)
            vars(page.mcp_server_obj)["postprocess_output_data"] = written
        yield

    return running
