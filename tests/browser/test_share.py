"""The page on other people's devices: a QR code that leads to what is shown."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import chromium
import pytest
import zxingcpp
from PIL import Image
from playwright.sync_api import Browser, Locator, Playwright, expect
from serving import Server
from visit import PAGE_MODULES, WAIT_MS, Visit

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
PUBLIC = "class.example"  # the name at which a proxy would offer the page


@pytest.fixture(scope="module")
def elsewhere(playwright: Playwright) -> Iterator[Browser]:
    """A browser in which this machine has a public name."""
    rules = f"--host-resolver-rules=MAP {PUBLIC} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    others = [one for one in chromium.ARGUMENTS if not one.startswith("--host-resolver-rules")]
    browser = playwright.chromium.launch(executable_path=chromium.find(), args=[*others, rules])
    yield browser
    browser.close()


def read(part: Locator) -> str:
    """What a camera reads there."""
    (found,) = zxingcpp.read_barcodes(Image.open(io.BytesIO(part.screenshot())))
    return str(found.text)


def test_a_camera_reads_the_code_and_opens_what_is_shown(
    elsewhere: Browser, server: Server
) -> None:
    context = elsewhere.new_context(color_scheme="dark", viewport={"width": 1280, "height": 720})
    context.set_default_timeout(WAIT_MS)
    context.add_init_script(path=PAGE_MODULES)
    page = context.new_page()
    page.goto(server.url.replace("127.0.0.1", PUBLIC) + "#head=2&projector=1")
    shown = Visit(page)
    shown.wait_for_link()
    page.locator(".show-code").click()
    page.wait_for_selector(".code-window[data-rev]")
    address = read(page.locator(".code-window"))
    assert address.startswith(f"http://{PUBLIC}:")
    assert page.locator(".code-address").inner_text() == address.split("#")[0]
    box = page.locator(".code-picture").bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) > 600
    other = context.new_page()
    other.goto(address)
    Visit(other).wait_for_link()
    assert other.evaluate("[viz.run.run, viz.head.head]") == [page.evaluate("viz.run.run"), 2]
    assert not other.evaluate("viz.projector")  # the phone is none
    page.keyboard.press("Escape")
    expect(page.locator(".code-window")).to_be_hidden()
    context.close()


def test_a_page_of_this_machine_alone_says_how_to_start_it_for_others(visit: Open) -> None:
    page = visit()
    page.page.locator(".show-code").click()
    expect(page.page.locator(".code-says")).to_contain_text("python app.py --host 0.0.0.0")
    expect(page.page.locator(".code-picture")).to_be_hidden()
    page.page.locator(".code-close").click()
    expect(page.page.locator(".code-window")).to_be_hidden()
