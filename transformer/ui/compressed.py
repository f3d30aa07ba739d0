"""The page itself, sent compressed; the framework does so for its files only."""

from __future__ import annotations

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

LEVEL = 6


class CompressedPage:
    """ASGI middleware that compresses the answer to "/" for a browser that accepts gzip."""

    def __init__(self, app: ASGIApp) -> None:
        self.plain, self.packed = app, GZipMiddleware(app, compresslevel=LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        root = scope.get("root_path", "")
        is_page = scope["type"] == "http" and scope["path"].removeprefix(root) in ("", "/")
        await (self.packed if is_page else self.plain)(scope, receive, send)
