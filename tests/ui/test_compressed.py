"""The page as it is sent, packed."""

from __future__ import annotations

import brotli
import httpx
import loops
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from transformer.ui.request_guard import CompressedPage

PAGE = b"a page" * 1000


async def page(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(PAGE)(scope, receive, send)


def sent(path: str, accepted: str = "gzip, br") -> tuple[httpx.Headers, bytes]:
    """Headers, and the body as it was sent."""

    async def asked() -> tuple[httpx.Headers, bytes]:
        transport = httpx.ASGITransport(CompressedPage(page))
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://page") as client,
            client.stream("GET", path, headers={"accept-encoding": accepted}) as answer,
        ):
            return answer.headers, b"".join([part async for part in answer.aiter_raw()])

    return loops.run(asked())


def test_the_page_is_packed_and_others_are_sent_as_they_are() -> None:
    headers, body = sent("/")
    assert headers["content-encoding"] == "br"
    assert int(headers["content-length"]) == len(body) < len(PAGE) / 10
    assert brotli.decompress(body) == PAGE
    assert sent("/", "gzip")[0]["content-encoding"] == "gzip"
    for path, accepted in (("/", "identity"), ("/resources/heatmap", "br")):
        headers, body = sent(path, accepted)
        assert "content-encoding" not in headers
        assert body == PAGE
