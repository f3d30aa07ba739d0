"""Of Gradio's own routes nothing is reached but a few exact paths, however a path is spelled."""

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest
from kit import aio
from kit.routes import filled, routes_of

from transformer import Model
from transformer.server import application
from transformer.server.http.errors import CLOSED, public_error
from transformer.server.http.guard import API, GRADIO, TOOLS
from transformer.server.kept.service import Service

ASSETS = "/assets/index.js", "/static/img/logo.svg"
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "slash at the end": lambda path: f"{path}/",
    "two slashes at the end": lambda path: f"{path}//",
    "slash before": lambda path: f"/{path}",
    "slashes doubled": lambda path: path.replace("/", "//"),
    "slash escaped": lambda path: "%2F".join(path.rsplit("/", 1)),
    "slash escaped at the end": lambda path: f"{path}%2f",
    "upper case": str.upper,
    "a letter escaped": lambda path: f"{path[:-1]}%{ord(path[-1]):x}",
    "dot": lambda path: f"/.{path}",
    "two dots": lambda path: f"/assets/..{path}",
    "two dots escaped": lambda path: f"/static/%2e%2e{path}",
    "slashes turned": lambda path: path.replace("/", "\\"),
    "zero": lambda path: f"{path}%00",
    "space": lambda path: f"{path}%20",
    "parameter": lambda path: f"{path};a=b",
}


@pytest.mark.slow
def test_no_spelling_of_a_path_reaches_gradios_own_routes(tiny_model: Model) -> None:
    reached = set[tuple[str, str]]()

    async def inside(scope: Any, _receive: Any, send: Any) -> None:
        reached.add((scope["method"], scope["path"]))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async def asked(app: Any, method: str, path: str) -> tuple[int, bytes]:
        sent = list[dict[str, Any]]()
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        scope = {
            "type": "http", "method": method, "path": unquote(path), "raw_path": path.encode(),
            "headers": headers, "query_string": b"", "client": ("127.0.0.1", 1),
            "scheme": "http", "server": ("localhost", 80),
        }  # fmt: skip
        body = [{"type": "http.request", "body": b'{"data": []}'}]

        async def receive() -> dict[str, Any]:
            return body.pop() if body else {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await app(scope, receive, send)
        return sent[0]["status"], sent[1].get("body", b"")

    async def walked() -> None:
        app = (await application(Service([tiny_model], trainings=0), mcp=True)).app
        mounted: Any = app.router.routes[-1]
        routes = {filled(path, {}) for path, _ in routes_of(mounted.app.gradio.routes)}
        assert len(routes) > 60
        mounted.app.gradio = inside
        for path in sorted({*routes, *ASSETS}):
            for spell in SPELLINGS.values():
                for method in ("GET", "HEAD", "POST"):
                    await asked(app, method, spell(path))
        status, body = await asked(app, "POST", f"{API}/call/limits/")
        assert (status, public_error(CLOSED)["detail"] in body.decode()) == (404, True)

    aio.run(walked())
    assert {path for method, path in reached if method == "GET"} >= {*GRADIO, *ASSETS}
    files = {path for _, path in reached} - {*GRADIO, *TOOLS}
    assert {path.split("/")[1] for path in files} == {"assets", "static"}
    assert not [path for path in files if "/." in path or "//" in path or path.endswith("/")]
    assert {path for method, path in reached if method == "POST"} == set(TOOLS)
