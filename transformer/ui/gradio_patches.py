"""What of Gradio 6.31 is replaced: each part says why. Gradio has no documented way to be given any
of them.

For each of PATCHES tests/ui/test_gradio_patches.py has a test that fails once Gradio itself has
changed there, so that a new version tells which it no longer needs; `begin_page` changes the page's
template besides.
"""

from __future__ import annotations

import asyncio
import copy
import re
import socket
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import gradio.routes
import h11
import httpx
from gradio import blocks, http_server, processing_utils, queueing, state_holder
from gradio.block_function import BlockFunction
from gradio.blocks import Blocks
from gradio.data_classes import GradioModel, GradioRootModel
from gradio.exceptions import Error
from gradio.route_utils import CustomCORSMiddleware
from gradio.utils import error_payload
from jinja2 import ChoiceLoader, DictLoader
from markupsafe import Markup
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

from transformer.ui.errors import MISTAKE, place_of, public_error
from transformer.ui.language import page_of, tag
from transformer.ui.limits import (
    HEADERS_S,
    MAX_ADDRESS_CONNECTIONS,
    MAX_CHUNKS,
    MAX_CONNECTIONS,
    MAX_HEADER_BYTES,
    READER_S,
)
from transformer.ui.page_queue import Queue
from transformer.ui.sessions import address_of, current_session

VISITORS = (ValueError, RecursionError)  # the kinds of mistakes that visitors make
PAGE = "frontend/index.html"  # Gradio's template of a page
BLANK_LINE = re.compile(rb"\n\r?\n")  # the end of headers
BASE = re.compile(r"<base [^>]*/>")  # what relative addresses of the template start from
# The path below which the page is served, if it was told; else the page's own address.
OUR_BASE = """<base href="{{ (request.scope.root_path or '.') | urlencode }}/" />"""
# Gradio makes it from headers, which no proxy need send: the page is where the browser found it.
ROOT = "window.gradio_config.root = document.baseURI.slice(0, -1);"


# --- what comes in --------------------------------------------------------------------------------


async def unchanged(data: Any, *_: Any, **__: Any) -> Any:
    """Gradio fetches what any input names as a file, to memory and disk, before the page sees it:
    {"path": "http://HOST/x", "meta": {"_type": "gradio.FileData"}}; the page takes no files."""
    return data.model_dump() if isinstance(data, GradioModel | GradioRootModel) else data


def check_inputs(_: Blocks, block_fn: BlockFunction, inputs: list[Any]) -> None:
    """Gradio writes to the log what was sent, and answers with its components' addresses. Too many
    inputs are not refused there either."""
    wanted, got = len(block_fn.inputs), len(inputs)
    if wanted != got:
        sentence = f"{block_fn.api_name} needs {wanted} inputs; got {got}"
        raise Error(sentence, print_exception=False)


class Quiet:
    """In place of the module `traceback` in Gradio's queue, which writes the values of a mistake to
    the log, and a visitor's words with them."""

    @staticmethod
    def print_exc() -> None:
        """Where and what the error was; a visitor's mistake is not logged as the server's."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, VISITORS):
            print(f"a mistake: {place_of(error)}", file=sys.stderr, flush=True)


def public_payload(error: BaseException | None, show_error: bool) -> dict[str, Any]:
    """The error that a client of Gradio's queue gets: its sentence, and its code as the title, of
    which tool calls see nothing. Gradio would send the text of any exception."""
    if error is not None and not isinstance(error, Error):
        found = public_error(error if isinstance(error, VISITORS) else MISTAKE)
        is_tool = not current_session.get()
        text = f"{found['code']}: {found['detail']}" if is_tool else found["detail"]
        error = Error(text, title=found["code"])
    return error_payload(error, show_error)


class NoCredentials(CustomCORSMiddleware):
    """Gradio lets every site ask as the visitor, cookies and all, wherever the server's name is not
    this machine's. Any site may ask, but as nobody."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for headers in (self.simple_headers, self.preflight_headers):
            headers.pop("Access-Control-Allow-Credentials")


# --- connections ----------------------------------------------------------------------------------


class Requests(h11.Connection):
    """What h11 reads: it bounds neither headers that arrive at once, nor in how many chunks a body
    comes, each of which takes it some 15 µs."""

    _chunks = 0

    def next_event(self) -> Any:
        if self.their_state is h11.IDLE:
            data, _ = self.trailing_data
            if len(data) > MAX_HEADER_BYTES and not BLANK_LINE.search(data, 0, MAX_HEADER_BYTES):
                raise h11.RemoteProtocolError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE.phrase)
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = 0
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            if self._chunks > MAX_CHUNKS:
                raise h11.RemoteProtocolError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE.phrase)
        return event


class Connection(H11Protocol):
    """uvicorn bounds the time between two requests, and not that in which one must come, nor that
    in which an answer must be read; and one address may have all the connections that there are."""

    _due: asyncio.TimerHandle | None = None
    _address = ""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.conn = Requests(h11.SERVER)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        own: socket.socket | None = transport.get_extra_info("socket")
        if own is not None and hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, READER_S * 1000)
        if self._has_too_many():
            self.connections.discard(self)  # its requests get 503; others' are not kept out
            self.limit_concurrency = 0
        self._wait_for_headers()

    def _has_too_many(self) -> bool:
        """Whether this address has its share of connections; a trusted proxy has all."""
        host = self.client[0] if self.client else ""
        if host in getattr(self.app, "trusted_hosts", ()):
            return False
        self._address = address_of(host)
        same = sum(vars(one).get("_address") == self._address for one in self.connections)
        return same > MAX_ADDRESS_CONNECTIONS

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._cancel()

    def _wait_for_headers(self) -> None:
        """Close the connection in HEADERS_S, unless a request is being answered by then."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel()
        elif self._due is None:
            self._due = self.loop.call_later(HEADERS_S, self.timeout_keep_alive_handler)

    def _cancel(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


class Server(http_server.Server):
    """Gradio's, with such connections; none becomes a web socket, and none says what serves it."""

    def __init__(self, config: Config, *args: Any, **settings: Any) -> None:
        config.http, config.ws = Connection, "none"
        config.server_header = False
        config.limit_concurrency = MAX_CONNECTIONS
        super().__init__(config, *args, **settings)


class NoSelfCall:
    """Gradio's launch() asks the server over HTTP to begin, and ends where that fails: through a
    proxy, or where others have taken all connections. `api.running` has begun by then."""

    URL = httpx.URL

    @staticmethod
    def get(*_: Any, **__: Any) -> httpx.Response:
        return httpx.Response(200)


# --- sessions -------------------------------------------------------------------------------------


class NoSession(state_holder.SessionState):
    """What Gradio knows of a session while it answers one request of it: the page as it is made.

    The page's own controls say what stands in them, with each request.
    """

    def __init__(self, blocks: Blocks) -> None:
        self.blocks_config = copy.copy(blocks.default_config)
        self.config_values: dict[int, Any] = {}
        self.state_data: dict[int, Any] = {}
        self._state_ttl: dict[int, Any] = {}
        self.is_closed = False

    def __setitem__(self, key: int, value: Any) -> None:
        self.blocks_config.blocks[key] = value

    def _update_config(self, key: int) -> None:
        pass

    def _update_value_in_config(self, key: int, value: Any) -> None:
        pass


class NoSessions(state_holder.StateHolder):
    """Gradio keeps the last inputs and outputs of every session, results of any size among them,
    until 10,000 others have come. Nothing here is of a kind that needs it (`gr.State`)."""

    def __getitem__(self, session_id: str) -> state_holder.SessionState:
        return NoSession(self.blocks)


# --- the page -------------------------------------------------------------------------------------


def begin_page(first: str, head: Callable[[], str], look: Callable[[], str], last: str) -> None:
    """Put a script first of all, what `head` makes for each visitor as soon as relative addresses
    work, what `look` makes at the begin of what is seen, and markup behind all. What stands there
    keeps nothing from being seen before it has come, and no script of the page runs before."""
    pages = gradio.routes.templates.env
    assert pages.loader is not None
    source = pages.loader.get_source(pages, PAGE)[0]
    source = source.replace("<head>", f"<head>\n<script>\n{first}</script>", 1)
    source = source.replace('<html\n\tlang="en"', '<html\n\tlang="{{ tag() }}"', 1)
    config = "{{ config | without_api | page_of | toorjson }};"
    source = source.replace("{{ config | toorjson }};", f"{config} {ROOT}", 1)
    source = source.replace("{{ config.get('root', '') | toorjson }}", "window.gradio_config.root")
    source = source.replace('href="/manifest.json"', 'href="./manifest.json"', 1)
    source = source.replace("<gradio-app", "{{ first_look() }}<gradio-app", 1)
    source = source.replace("</body>", f"{last}</body>", 1)
    pages.filters.update(page_of=page_of, without_api=without_api)
    pages.globals.update(
        tag=tag, our_head=lambda: Markup(head()), first_look=lambda: Markup(look())
    )
    begun = BASE.sub(lambda _: f"{OUR_BASE}\n{{{{ our_head() }}}}", source, count=1)
    changed = DictLoader({PAGE: begun})
    pages.loader = ChoiceLoader([changed, pages.loader])


def without_api(config: dict[str, Any]) -> dict[str, Any]:
    """Gradio's description of the page without the inputs and outputs of `gr.api`: nothing of them
    is seen, and its scripts would make something of each, which is near half of all that there is.
    Programs ask for the whole description elsewhere."""
    unseen = {one["id"] for one in config["components"] if one["type"] == "api"}

    def seen(node: dict[str, Any]) -> dict[str, Any]:
        children = [seen(one) for one in node.get("children", ()) if one["id"] not in unseen]
        return node | {"children": children} if "children" in node else node

    components = [one for one in config["components"] if one["id"] not in unseen]
    pages = {
        name: one
        | {
            "components": [number for number in one["components"] if number not in unseen],
            "layout": seen(one["layout"]),
        }
        for name, one in config["page"].items()
    }
    return config | {"components": components, "layout": seen(config["layout"]), "page": pages}


# --- all of them ----------------------------------------------------------------------------------

# (where Gradio has it, its name there, ours): ours says why.
PATCHES: tuple[tuple[Any, str, Any], ...] = (
    (queueing, "Queue", Queue),
    (queueing, "traceback", Quiet),
    (queueing, "error_payload", public_payload),
    (http_server, "Server", Server),
    (
        http_server,
        "LOCALHOST_NAME",
        "127.0.0.1",
    ),  # it tries ports there; GRADIO_SERVER_NAME may be ::1
    (blocks, "httpx", NoSelfCall),
    (gradio.routes, "StateHolder", NoSessions),
    (gradio.routes, "CustomCORSMiddleware", NoCredentials),
    (processing_utils, "async_move_files_to_cache", unchanged),
    (Blocks, "validate_inputs", check_inputs),
)


def install() -> None:
    """Whatever Gradio makes from now on is made of ours."""
    for where, name, ours in PATCHES:
        setattr(where, name, ours)
