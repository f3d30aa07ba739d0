"""What a visitor types stays between the page and the server's memory, and not for long; what the
page loads comes from its own server alone."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlparse

import httpx
import pytest
import serving
from playwright.sync_api import Browser
from visit import Visit

SECRET = "Xanthippe whispers quokka"
KEPT = """async () => [localStorage.length, sessionStorage.length,
    (await indexedDB.databases()).length, window.caches ? (await caches.keys()).length : 0]"""
LOADED = """(address) => new Promise((done) => {
    const image = new Image();
    image.onload = image.onerror = () => done(true);
    image.src = address;
})"""
ASKED = "(address) => fetch(address, { mode: 'no-cors' }).then(() => 'asked', () => 'refused')"


def test_what_is_typed_leaves_no_trace_elsewhere_in_the_browser_in_the_log_or_on_disk(
    visit: Callable[..., Visit],
) -> None:
    page, server = visit(own={}), serving.running()
    origins: set[str] = set()
    page.page.on("request", lambda request: origins.add(urlparse(request.url).netloc))
    page.page.on("websocket", lambda socket: origins.add(socket.url))
    page.set_length(3)
    page.generate(SECRET)
    page.enter(SECRET * 100)
    page.wait_for_alert()
    page.tab("Masks")
    page.show_masks(SECRET, f"{SECRET} too")
    assert origins == {urlparse(server.url).netloc}
    assert page.page.context.cookies() == []
    assert page.page.evaluate(KEPT) == [0, 0, 0, 0]
    for arguments in ({"text": SECRET, "model": SECRET}, {"text": [SECRET]}, {SECRET: SECRET}):
        httpx.post(f"{server.url}gradio_api/call/v2/generate", json=arguments)
    log = server.log.read_text(encoding="utf-8", errors="replace")
    word, *others = SECRET.split()
    assert not [one for one in (word, *others) if one in log]
    usual = Path(tempfile.gettempdir()) / "gradio"  # where Gradio could keep files
    folders = (Path(os.environ.get("GRADIO_TEMP_DIR", usual)), usual, serving.ROOT / ".gradio")
    for file in (file for folder in folders for file in folder.rglob("*")):
        assert word not in str(file)
        if file.is_file() and file.stat().st_size < 50_000_000:
            assert word.encode() not in file.read_bytes(), file


def test_the_page_loads_and_asks_nothing_of_another_server(
    browser: Browser, server: serving.Server
) -> None:
    """As an image in a foreign model's card would have it. (Refusals stand in the console, where
    the other tests find none.)"""
    page = browser.new_page()
    page.goto(server.url, wait_until="commit")
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.setblocking(False)
        address = f"http://127.0.0.1:{other.getsockname()[1]}/x.png"
        assert page.evaluate(LOADED, address)
        assert page.evaluate(ASKED, address) == "refused"
        with pytest.raises(BlockingIOError):
            other.accept()
    page.close()
