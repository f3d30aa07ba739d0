"""What a visitor types stays between the page and the server's memory, and not for long."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlparse

import httpx
import pytest
import serving
from visit import Visit

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
SECRET = "Xanthippe whispers quokka"
STORED = """async () => ({
    local: Object.keys(localStorage), session: Object.keys(sessionStorage), cookie: document.cookie,
    databases: (await indexedDB.databases()).map(({ name }) => name),
    caches: window.caches ? await caches.keys() : [],
})"""


def everywhere(page: Visit) -> None:
    """Type the secret into every text box, look at every tab, make mistakes with it."""
    page.set_length(3)
    page.generate(SECRET)
    page.enter(SECRET * 100)
    page.wait_for_alert()
    for tab in ("Masks", "Positions", "Prediction", "Model"):
        page.tab(tab)
    page.tab("Masks")
    page.page.locator("#lines textarea").fill(f"{SECRET}\n{SECRET} too")
    with page.drawn(".masks"):
        page.page.locator("#show-masks").click()


def test_what_is_typed_leaves_no_trace_elsewhere_in_the_browser_in_the_log_or_on_disk(
    visit: Open,
) -> None:
    page = visit(own={})
    server = serving.running()
    origins: set[str] = set()
    page.page.context.on("request", lambda request: origins.add(urlparse(request.url).netloc))
    page.page.on("websocket", lambda socket: origins.add(socket.url))
    everywhere(page)
    assert origins == {urlparse(server.url).netloc}
    assert page.page.context.cookies() == []
    kept = page.page.evaluate(STORED)
    assert kept == {"local": [], "session": [], "cookie": "", "databases": [], "caches": []}
    for arguments in ({"text": SECRET, "model": SECRET}, {"text": [SECRET]}, {SECRET: SECRET}):
        httpx.post(f"{server.url}gradio_api/call/v2/generate", json=arguments)
    words = SECRET.split()
    log = server.log.read_text(encoding="utf-8", errors="replace")
    assert not [word for word in words if word in log]
    for folder in kept_folders():
        for file in folder.rglob("*"):
            assert words[0] not in str(file)
            if file.is_file() and file.stat().st_size < 50_000_000:
                assert words[0].encode() not in file.read_bytes(), file


def kept_folders() -> list[Path]:
    """Where the framework could keep files."""
    given = os.environ.get("GRADIO_TEMP_DIR")
    named = [Path(given)] if given else []
    named += [Path(tempfile.gettempdir()) / "gradio", serving.ROOT / ".gradio"]
    return [folder for folder in named if folder.is_dir()]


def test_a_page_that_closes_tells_the_server_so(visit: Open) -> None:
    page = visit()
    page.set_length(2)
    page.generate("The dog")
    with page.page.expect_request("**/leave") as told:
        page.page.evaluate("window.dispatchEvent(new Event('pagehide'))")
    assert told.value.method == "POST"
    assert len(told.value.headers["x-session"]) == 32
