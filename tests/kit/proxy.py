"""A proxy that offers a server below a path, as docs/serve.md says: nginx, or, without one, a few
lines that do the same."""

import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import httpx
import uvicorn
from kit import serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from benchmarks.replicas import NGINX, nginx

PATH = "/viz/"
FRAME = """error_log stderr error;
pid nginx.pid;
events {}
http {
access_log off;
server {
listen 7860;
BLOCK
}
}
"""


@contextmanager
def below_a_path(upstream: int, *, strips: bool) -> Iterator[str]:
    """The proxy before this port; yields the page's address. strips: whether it removes PATH."""
    port, passed = serving.free_port(), "/" if strips else PATH
    if NGINX is None:
        with _simple(port, f"http://127.0.0.1:{upstream}{passed}"):
            yield f"http://127.0.0.1:{port}{PATH}"
        return
    document = (serving.ROOT / "docs" / "serve.md").read_text("utf-8")
    (block,) = re.findall(r"```nginx\n(.*?)```", document, re.DOTALL)
    assert f"location {PATH} {{" in block
    block = block.replace("127.0.0.1:7860/", f"127.0.0.1:{upstream}{'/' if strips else ''}")
    with nginx(port, FRAME.replace("BLOCK", block)) as url:
        yield url + PATH.strip("/") + "/"


@contextmanager
def _simple(port: int, upstream: str) -> Iterator[None]:
    async def passed(request: Request) -> StreamingResponse:
        headers = [(name, value) for name, value in request.headers.raw if name != b"connection"]
        client = httpx.AsyncClient(timeout=60)
        url = f"{upstream}{request.path_params['rest']}?{request.url.query}"
        body = await request.body()
        request_sent = client.build_request(request.method, url, headers=headers, content=body)
        answer = await client.send(request_sent, stream=True)

        async def parts() -> AsyncIterator[bytes]:
            async for part in answer.aiter_raw():
                yield part
            await client.aclose()

        response = StreamingResponse(parts(), answer.status_code)
        response.raw_headers = answer.headers.raw
        return response

    app = Starlette(routes=[Route(f"{PATH}{{rest:path}}", passed, methods=["GET", "POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        thread.join(0.05)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()
