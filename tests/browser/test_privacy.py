"""What a visitor types stays between the page and the server's memory, and not for long; what the
page loads comes from its own server alone."""

import os
import socket
import tempfile
from pathlib import Path
from urllib.parse import urldefrag, urlencode

import httpx
import pytest
from kit import serving

SECRET = "Xanthippe whispers quokka"
KEPT = """async () => [localStorage.length, sessionStorage.length,
    (await indexedDB.databases()).length, window.caches ? (await caches.keys()).length : 0]"""
LOADED = """(address) => new Promise((done) => {
    const image = new Image();
    image.onload = image.onerror = () => done(true);
    image.src = address;
})"""
ASKED = "(address) => fetch(address, { mode: 'no-cors' }).then(() => 'asked', () => 'refused')"


def test_typed_or_linked_text_is_neither_logged_nor_stored(visit, server):
    logged = len(server.log.read_bytes())  # others wrote before
    state = urlencode({"model": "tiny", "text": SECRET, "max_new_tokens": "3"})
    page = visit(f"{server.url}?__theme=dark#{state}", own={})
    asked: list[str] = []
    page.page.on("request", lambda one: asked.append(urldefrag(one.url)[0] + str(one.headers)))
    page.page.on("websocket", lambda socket: asked.append(socket.url))
    page.wait_for_link()
    page.reload()
    assert page.page.evaluate("document.body.classList.contains('dark')")
    assert httpx.get(server.url).headers["referrer-policy"] == "no-referrer"
    page.set_length(3)
    page.generate(f"{SECRET}!")
    page.enter(SECRET * 100)
    page.wait_for_alert()
    page.tab("Masks")
    page.show_masks(SECRET, f"{SECRET} too")
    word = SECRET.split()[0]
    assert not [one for one in asked if word in one or not one.startswith(server.url)]
    assert page.page.context.cookies() == []
    assert page.page.evaluate(KEPT) == [0, 0, 0, 0]
    for arguments in ({"text": SECRET, "model": SECRET}, {"text": [SECRET]}, {SECRET: SECRET}):
        httpx.post(f"{server.url}gradio_api/call/v2/generate", json=arguments)
    log = server.log.read_bytes()[logged:].decode(errors="replace")
    assert not [one for one in (*SECRET.split(), "Exception ignored") if one in log]
    usual = Path(tempfile.gettempdir()) / "gradio"  # where Gradio could keep files
    folders = (Path(os.environ.get("GRADIO_TEMP_DIR", usual)), usual, serving.ROOT / ".gradio")
    for file in (file for folder in folders for file in folder.rglob("*")):
        assert word not in str(file)
        if file.is_file() and file.stat().st_size < 50_000_000:
            assert word.encode() not in file.read_bytes(), file


def test_the_page_loads_and_asks_nothing_of_another_server(browser, server):
    """As an image in a foreign model's card would. (Refusals appear in the console, where
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
