"""What the browser lets the page do, and what it says of a server that hangs."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest
import serving
from playwright.sync_api import Browser, expect
from visit import Visit

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
LOADED = """(address) => new Promise((done) => {
    const image = new Image();
    image.onload = image.onerror = () => done(true);
    image.src = address;
})"""
ASKED = "(address) => fetch(address, { mode: 'no-cors' }).then(() => 'asked', () => 'refused')"


def test_the_page_loads_and_asks_nothing_of_another_server(
    browser: Browser, server: serving.Server
) -> None:
    """As an image in a foreign model's card would have it. (Refusals stand in the console, where
    the other tests find none.)"""
    page = browser.new_page()
    page.goto(server.url)
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0.5)
        address = f"http://127.0.0.1:{other.getsockname()[1]}/x.png"
        assert page.evaluate(LOADED, address)
        assert page.evaluate(ASKED, address) == "refused"
        with pytest.raises(TimeoutError):
            other.accept()
    page.close()


def test_a_server_that_hangs_is_told_on_the_page(visit: Open) -> None:
    page = visit(own={})
    page.page.clock.install()
    page.page.route("**/queue/data*", lambda route: None)
    page.page.locator("#generate").click()
    page.page.wait_for_timeout(300)
    page.page.clock.fast_forward(20_000)
    status = page.page.locator("#status")
    expect(status).not_to_contain_text("has not answered")
    page.page.clock.fast_forward(6_000)
    expect(status).to_contain_text("has not answered for a while")
