"""The page itself and the answers of its views, sent compressed; the framework does so for its
files only."""

from __future__ import annotations

import brotli
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LEVEL = 6
QUALITY = 5  # of brotli: as quick as gzip's 6, and a tenth smaller
ANSWERS = "/gradio_api/component_server/"
LARGEST = 2**18  # bytes of an answer: more is pictures' numbers, for which others would wait


class CompressedPage:
    """ASGI middleware that compresses the page and what its views are answered, for a browser that
    accepts it: brotli, or else gzip for the page."""

    def __init__(self, app: ASGIApp) -> None:
        self.plain, self.packed = app, GZipMiddleware(app, compresslevel=LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = str(scope.get("path", "")).removeprefix(scope.get("root_path", ""))
        is_page = scope["type"] == "http" and path in ("", "/")
        is_answer = scope["type"] == "http" and path == ANSWERS and scope["method"] == "POST"
        if (is_page or is_answer) and _takes_brotli(scope):
            await self.plain(scope, receive, _Packed(send, None if is_page else LARGEST))
        else:
            await (self.packed if is_page else self.plain)(scope, receive, send)


def _takes_brotli(scope: Scope) -> bool:
    if scope["method"] not in ("GET", "POST"):
        return False
    accepted = Headers(scope=scope).get("accept-encoding", "")
    return "br" in (one.partition(";")[0].strip() for one in accepted.split(","))


class _Packed:
    """Sends an answer once it is there as a whole; one of more bytes than largest as it is."""

    def __init__(self, send: Send, largest: int | None = None) -> None:
        self._send, self._body, self._largest = send, bytearray(), largest
        self._start: Message = {}

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        self._body += message.get("body", b"")
        if message.get("more_body"):
            return
        body = bytes(self._body)
        if self._largest is None or len(body) <= self._largest:
            body = brotli.compress(body, quality=QUALITY)
            headers = MutableHeaders(raw=self._start["headers"])
            headers["Content-Encoding"] = "br"
            headers["Content-Length"] = str(len(body))
            headers.add_vary_header("Accept-Encoding")
        await self._send(self._start)
        await self._send({"type": "http.response.body", "body": body})
