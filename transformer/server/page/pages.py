"""The page's HTML in each language: Gradio's frontend around what `page.build` lays out.

All visitors of a language share one page.
"""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

import gradio as gr
import numpy as np
import orjson
from anyio import to_thread
from fastapi import FastAPI, Request, Response
from starlette.datastructures import Headers
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transformer.analysis.atlas import atlas
from transformer.checks import shortened
from transformer.messages import ENGLISH, catalogue, language, languages, say, speaking
from transformer.messages.templates import glossary_element, json_in_script, translate_html
from transformer.server.fields import cards, fields_schema
from transformer.server.http.errors import CLOSED, Refused
from transformer.server.http.guard import API, GRADIO, GRADIO_FILE, TOOLS, path_of
from transformer.server.http.requests import caller
from transformer.server.http.slots import Slots
from transformer.server.kept.page_models import first_controls
from transformer.server.kept.page_runs import example_facts, first_head
from transformer.server.kept.service import Service
from transformer.server.learn.lessons import offered
from transformer.server.page import gradio_files
from transformer.server.page.first_answers import MAX_AT_START, first_answers
from transformer.server.page.in_browser import offered_names
from transformer.server.page.layout import TITLE, description
from transformer.server.page.modules import (
    ENGINE,
    FOREVER,
    LATER,
    MODULES,
    PAGE,
    STYLE,
    Asset,
    in_language,
)
from transformer.views.attention.grid import data_url, mosaic
from transformer.views.drawing.style import FONT

TEMPLATE = Path(__file__).parents[1] / "static" / "page.html"
HOLE = re.compile(r"/\*(\w+)\*/")
# The page's Content-Security-Policy. Gradio needs inline scripts and styles; a Space and a notebook
# on this machine may embed the page.
POLICY = "; ".join(
    (
        "default-src 'self'",
        # Gradio runs the scripts of components and events from texts.
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "connect-src 'self' data:",  # a picture that the page itself has drawn
        "img-src 'self' data: blob:",
        "media-src 'self' data: blob:",
        "object-src 'none'",
        "frame-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'self' https://huggingface.co https://*.huggingface.co "
        "https://*.hf.space http://localhost:* http://127.0.0.1:*",
    )
)

# scheme://host or scheme://host:port, as Content-Security-Policy has it; "*." for all below a name.
ORIGIN = re.compile(r"https?://(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:(\d{1,5}|\*))?")
ROOM_TEXT = "oooo"  # of what follows the stored example, as in web/tokens.js
FEW_COLOURS = 0xE0  # eight: the picture of all heads then takes a third of the bytes


class Pages:
    """The page in every language, English at the start and others when they are first asked for.

    app_id: that of the Blocks that are mounted. root: the path below which it is served, "/viz"; ""
    for none.
    """

    def __init__(self, service: Service, app_id: int, root: str = "") -> None:
        self._base = f"{quote(root) or '.'}/"
        self._schema = {
            "cards": cards(service.models),
            "lessons": offered(service.models),
            "in_browser": offered_names(service),
            "controls": first_controls(next(iter(service.models.values()))),
        }
        self._first_look = first_look(service)
        self._service, self._app_id = service, app_id
        self._assets: dict[str, Asset] = {}
        self._locks = {name: threading.Lock() for name in languages()}
        self.gradio_names: list[str] = []  # of the files of Gradio's that the page takes
        self.asset(ENGLISH)

    def asset(self, name: str) -> Asset:
        """The page in a language, made once, for all who ask meanwhile."""
        with self._locks[name]:
            if name not in self._assets:
                seen = {"current_page": "", "username": None, "deep_link_state": "none"}
                with speaking(name):
                    config = {**description(self._service), **seen, "app_id": self._app_id}
                    text = self._markup(config)
                self._assets[name] = Asset(plain=text.encode(), type="text/html")
            return self._assets[name]

    def answer(self, request: Request) -> Response:
        """The page in the language of a request."""
        return self.asset(language()).answer(request.headers, "no-cache")

    def _markup(self, config: Mapping[str, Any]) -> str:
        """The page. config: as Gradio's frontend reads it."""
        kinds = (component["type"] for component in config["components"])
        self.gradio_names = gradio_files.file_names(dict.fromkeys(kinds))
        bundles = {"page": PAGE, "later": LATER, "engine": ENGINE}
        scripts = {
            name: f"./{in_language(MODULES.address(file), language())}"
            for name, file in bundles.items()
        }
        parts = {
            **{name: html.escape(text) for name, text in self._first_look.items()},
            "tag": catalogue(language()).tag,
            "base": self._base,
            "title": html.escape(say(TITLE)),
            "config": json_in_script(config),
            "imports": json.dumps({"imports": scripts}),
            "schema": json_in_script(fields_schema() | self._schema),
            "glossary": glossary_element(language()),
            "style": MODULES.address(STYLE),
            "gradio": "\n    ".join(gradio_files.page_tags()),
            "parts": gradio_files.tags(self.gradio_names),
            "answers": self._answers(),
        }
        template = translate_html(TEMPLATE.read_text("utf-8"), language())
        return HOLE.sub(lambda hole: str(parts.get(hole[1], hole[0])), template)

    def _answers(self) -> str:
        """What the page asks first, as JSON that cannot close its <script> element."""
        facts, _ = example_facts(self._service, next(iter(self._service.models)))
        answers = first_answers(self._service, facts, most=MAX_AT_START)
        return orjson.dumps(answers).decode().replace("<", "\\u003c")


class Reached:
    """Gradio's app, of which GRADIO and its files are reached by GET, and tools by POST.

    The list is checked where Gradio's router would match the path, so that no other spelling of one
    reaches it. Raises Refused. files: those of Gradio's that are served from memory, by path.
    """

    def __init__(self, gradio: ASGIApp, tools: bool, files: Mapping[str, Asset]) -> None:
        self.gradio, self.tools, self.files = gradio, TOOLS if tools else (), files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = path_of(scope), scope.get("method")
        is_read = path in GRADIO or GRADIO_FILE.fullmatch(path)
        if path not in self.tools and not (is_read and method in ("GET", "HEAD")):
            raise Refused(404, CLOSED)
        if method == "HEAD":  # whose answer the server sends without its body
            scope = {**scope, "method": "GET"}
        if asset := self.files.get(path):
            response = await to_thread.run_sync(asset.answer, Headers(scope=scope), FOREVER)
            return await response(scope, receive, send)
        await self.gradio(scope, receive, send)


class Descriptions:
    """Gradio's descriptions of the API, each of which takes it up to 15 ms: made one at a time, in
    turn by address. gradio: its app. slots: where they are made."""

    paths = ("/config", f"{API}/info", f"{API}/openapi.json")

    def __init__(self, gradio: ASGIApp, slots: Slots) -> None:
        self._gradio, self._slots = gradio, slots

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parameters = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        # Only these are passed on: `deep_link` would read a state that anybody on the machine may
        # have written, and Gradio keeps the API of no named page with its first caller's Host.
        is_info = path_of(scope).startswith(f"{API}/info")
        query = {"page": ""} if "page" in parameters or is_info else {}
        query |= {"all_endpoints": "true"} if "all_endpoints" in parameters else {}
        messages: list[Message] = []

        async def keep(message: Message) -> None:
            messages.append(message)

        async with self._slots.placed(caller()):
            await self._gradio({**scope, "query_string": urlencode(query).encode()}, receive, keep)
        for message in messages:  # in no place, since some clients read slowly
            await send(message)


def policy_for(embed_on: Sequence[str]) -> str:
    """POLICY, with these origins allowed to embed the page. Raises ValueError for anything but an
    origin."""
    for origin in embed_on:
        if not ORIGIN.fullmatch(origin):
            raise ValueError(
                "a page that may embed this one is named by its origin, https://HOST or "
                f"https://HOST:PORT; got {shortened(origin)}"
            )
    return " ".join((POLICY, *embed_on))  # it ends with those that may


def mount(
    app: FastAPI,
    blocks: gr.Blocks,
    slots: Slots,
    files: Mapping[str, Asset],
    root: str = "",
    mcp: bool = False,
) -> None:
    """Mount Gradio's frontend and what describes the API, with how the page looks and without what
    Gradio might keep. slots: see `Descriptions`; files: see `Reached`."""
    gr.mount_gradio_app(
        app,
        blocks,
        path="/",
        root_path=root,  # else Gradio takes a whole address from GRADIO_ROOT_PATH
        mcp_server=mcp,
        max_file_size=0,
        ssr_mode=False,
        run_history=False,
        enable_monitoring=False,
        theme=gr.themes.Base(
            primary_hue="blue", neutral_hue="slate",
            font=[name.strip(' "') for name in FONT.split(",")],  # the system's: none is fetched
            font_mono=["ui-monospace", "Consolas", "monospace"],
            text_size="lg", spacing_size="sm", radius_size="sm",
        ),
    )  # fmt: skip
    gradio = app.router.routes.pop()
    assert isinstance(gradio, Mount)
    gradio.app = Reached(gradio.app, mcp, files)
    descriptions = Descriptions(gradio.app, slots)
    app.router.routes += [*(Route(path, descriptions) for path in Descriptions.paths), gradio]


def first_look(service: Service) -> dict[str, str]:
    """The page before its scripts have come, which takes seconds on a phone: the stored example
    and its heads, as a picture."""
    name = next(iter(service.models))
    run = service.store.run(service.example(name)[0])
    facts, _ = example_facts(service, name)
    site, _ = first_head(facts)
    goes_on = facts["stack"] == "decoder" and facts["last_read"] == len(run.ids) - 1
    small = atlas(run, site.stack, site.kind)
    few = np.bitwise_and(small.pixels, FEW_COLOURS, dtype=np.uint8)
    heads = data_url(mosaic(small._replace(pixels=few)))
    return {"text": run.text, "room": ROOM_TEXT if goes_on else "", "heads": heads}
