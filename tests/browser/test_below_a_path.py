"""The page below a path of another server, nginx as docs/serving/path.md says: tabs have their
pictures, programs get answers."""

import re
from collections.abc import Iterator

import httpx
import pytest
from gradio_client import Client
from kit import aio, serving
from kit.browser import PARTS
from kit.client import ENDPOINTS
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from playwright.sync_api import expect

from benchmarks.replicas import NGINX, nginx

pytestmark = pytest.mark.skipif(NGINX is None, reason="needs nginx")

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
# (GRADIO_ROOT_PATH, whether the proxy removes the path); a browser opens the page in two of them:
# the server does, or does not, know the path.
WAYS = (("/viz", True), ("viz/", False), ("https://viz.example/viz/", True), ("", True))
OPENED = WAYS[2:]


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0] or 'untold'}-{way[1]}")
def way(request: pytest.FixtureRequest) -> tuple[str, bool]:
    root, strips = request.param
    return root, strips


@pytest.fixture
def below(
    way: tuple[str, bool],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[str]:
    """The page's address."""
    root, strips = way
    monkeypatch.setenv("GRADIO_ROOT_PATH", root)
    document = (serving.ROOT / "docs" / "serving" / "path.md").read_text("utf-8")
    (block,) = re.findall(r"```nginx\n(.*?)```", document, re.DOTALL)
    assert f"location {PATH} {{" in block
    offered, log = [serving.running().log.parent / "tiny"], tmp_path_factory.mktemp("below") / "log"
    with (
        serving.Server(log, offered, more=["--mcp"]) as server,
        nginx(serving.free_port(), FRAME.replace("BLOCK", passing(block, server, strips))) as url,
    ):
        yield url + PATH.strip("/") + "/"


def passing(block: str, server: serving.Server, strips: bool) -> str:
    """The document's block for this server."""
    return block.replace("127.0.0.1:7860/", f"127.0.0.1:{server.port}{'/' if strips else ''}")


def test_the_page_works_below_a_path(way, below, opening):
    if way in OPENED:
        opened(below, opening)
    with httpx.Client(base_url=below) as client:
        page = client.get("").text
        files = re.findall(r'(?:src|href)="([^":#]+)"', page)
        assert len(files) > 5
        for file in files:
            url = httpx.URL(below).join(file)
            assert str(url).startswith(below), file
            assert client.get(url).status_code == 200, file
        assert client.get("ready").json()["status"] == "ok"
        assert client.get(below.rstrip("/"), follow_redirects=True).url == below
        code = client.post("resources/class/open", json={}).json()["code"]
        phone = client.get(f"class/{code}")
        script = phone.url.join("../").join(re.findall(r'src="([^"]+)"', phone.text)[0])
        assert client.get(script).status_code == 200
    program = Client(below, verbose=False, analytics_enabled=False)
    made = program.predict("The dog", max_new_tokens=2, api_name="/generate")
    assert len(made["steps"]) == 2
    program.close()
    assert aio.run(_tools(below)) == len(ENDPOINTS)


def opened(below, opening):
    urls: list[str] = []
    with opening() as open_page:  # which fails at the end if a request was refused
        page = open_page(below, tab="Journey")
        page.page.on("request", lambda request: urls.append(request.url))
        for tab in ("Masks", "Attention"):  # the first has scripts of its own
            page.tab(tab)
            page.wait_drawn(next(iter(PARTS[tab])))
        page.generate("The dog")
        expect(page.page.locator("#status")).to_contain_text("tokens in")
        labels = page.page.evaluate("viz.run.labels")
        page.wait_for_address("text=The")
        page.reload()
        assert page.page.evaluate("viz.run.labels") == labels
        assert page.page.url.startswith(f"{below}#")
        assert urls
        assert [url for url in urls if not url.startswith((below, "data:", "blob:"))] == []


async def _tools(address: str) -> int:
    async with (
        streamable_http_client(f"{address}gradio_api/mcp/") as (incoming, outgoing, _),
        ClientSession(incoming, outgoing) as session,
    ):
        await session.initialize()
        return len((await session.list_tools()).tools)
