"""What is sent before any click: the page and its views' answers packed, in every language."""

from __future__ import annotations

import brotli
import httpx
import loops
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from transformer.messages import languages
from transformer.messages.markup import glossary_element, of_scripts
from transformer.ui.compressed import ANSWERS, LARGEST, QUALITY, CompressedPage

# English sends 0.948 MB before any click and another language 0.98: these sentences may grow so far
# before 1.0 MB are sent. Their own compressed size, in bytes.
A_LANGUAGE = 35_000


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """An app that answers with what it was sent."""
    body = await Request(scope, receive).body()
    await Response(body or b"a page", media_type="application/json")(scope, receive, send)


def posted(path: str, body: bytes, accepted: str = "gzip, br") -> tuple[httpx.Headers, bytes]:
    """Headers, and the body as it was sent."""

    async def asked() -> tuple[httpx.Headers, bytes]:
        transport = httpx.ASGITransport(CompressedPage(echo))
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://page") as client,
            client.stream(
                "POST", path, content=body, headers={"accept-encoding": accepted}
            ) as answer,
        ):
            return answer.headers, b"".join([part async for part in answer.aiter_raw()])

    return loops.run(asked())


def test_an_answer_of_a_view_is_packed():
    body = b'{"head": 3}' * 1000
    headers, sent = posted(ANSWERS, body)
    assert headers["content-encoding"] == "br"
    assert int(headers["content-length"]) == len(sent) < len(body) / 10
    assert brotli.decompress(sent) == body


@pytest.mark.parametrize(
    ("path", "body", "accepted"),
    [
        (ANSWERS, b"x" * (LARGEST + 1), "br"),
        (ANSWERS, b"x" * 1000, "gzip"),
        ("/gradio_api/queue/join", b"x" * 1000, "br"),
    ],
)
def test_others_are_sent_as_they_are(path: str, body: bytes, accepted: str):
    headers, sent = posted(path, body, accepted)
    assert "content-encoding" not in headers
    assert (sent, int(headers["content-length"])) == (body, len(body))


@pytest.mark.parametrize("language", languages())
def test_what_a_language_adds_to_the_page_stays_small(language: str):
    said = of_scripts(language) + glossary_element(language)
    assert len(brotli.compress(said.encode(), quality=QUALITY)) < A_LANGUAGE
