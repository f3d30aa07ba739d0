"""The page in real Chromium: one browser, a page of its own a test, nothing leaves the machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import chromium
import pytest
import serving
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect
from visit import PAGE_MODULES, WAIT_MS, Visit
from whatif import WhatIf

ELSEWHERE = re.compile(r"^(?!http://127\.0\.0\.1[:/]|data:|blob:)")

Open = Callable[..., Visit]
expect.set_options(timeout=WAIT_MS)

Scheme = Literal["light", "dark"]
Motion = Literal["reduce", "no-preference"]


@pytest.fixture(scope="session")
def server() -> serving.Server:
    return serving.running()


@pytest.fixture(scope="session")
def slowdown(request: pytest.FixtureRequest) -> float:
    """How many times slower pages run than the machine could."""
    return float(request.config.getoption("--slowdown"))


@pytest.fixture(scope="session")
def windows(
    playwright: Playwright, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrowserContext]:
    """One profile for most pages. It lies on the disk, where the browser keeps the page's scripts
    compiled: opening the page takes a third less processor time than in a profile in memory."""
    context = playwright.chromium.launch_persistent_context(
        tmp_path_factory.mktemp("profile"),
        executable_path=chromium.find(),
        args=chromium.ARGUMENTS,
    )
    context.add_init_script(path=PAGE_MODULES)
    yield context
    context.close()


@pytest.fixture
def visit(
    browser: Browser, windows: BrowserContext, server: serving.Server, slowdown: float
) -> Iterator[Open]:
    """Opens the page; afterwards there is no error, no request to elsewhere, nothing stored."""
    with _opening(browser, windows, server, slowdown) as open_page:
        yield open_page


@pytest.fixture(scope="module")
def still(
    browser: Browser, windows: BrowserContext, server: serving.Server, slowdown: float
) -> Iterator[Visit]:
    """One page for the tests of a file that leave it as they found it: the stored run, no token
    chosen, the first head."""
    with _opening(browser, windows, server, slowdown) as open_page:
        yield open_page(own={})  # in the profile of the others it would be a hidden tab


@pytest.fixture
def whatif(visit: Open, server: serving.Server) -> WhatIf:
    """The tab What if?, with a short run of the first model."""
    return WhatIf(visit(), server.model)


@contextmanager
def _opening(
    browser: Browser, windows: BrowserContext, server: serving.Server, slowdown: float
) -> Iterator[Open]:
    opened: list[Page | BrowserContext] = []
    complaints: list[str] = []

    def open_page(
        address: str = server.url,
        *,
        width: int = 1440,
        height: int = 900,
        color_scheme: Scheme = "light",
        reduced_motion: Motion = "no-preference",
        own: dict[str, Any] | None = None,
    ) -> Visit:
        """own: settings of a profile of its own; a second page has one anyway, so that neither is
        a hidden tab, which the browser hardly draws."""
        shares = own is None and not _shown(windows)
        context = windows if shares else browser.new_context(**own or {})
        if not shares:
            context.add_init_script(path=PAGE_MODULES)
        page = context.new_page()
        opened.append(page if shares else context)
        page.set_default_timeout(WAIT_MS)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=color_scheme, reduced_motion=reduced_motion)
        _listen(page, complaints)
        if slowdown != 1:
            tools = context.new_cdp_session(page)
            tools.send("Emulation.setCPUThrottlingRate", {"rate": slowdown})
        page.goto(address)
        return Visit(page)

    yield open_page
    stored = [page.evaluate("[localStorage.length, document.cookie]") for page in _shown(windows)]
    for one in opened:
        one.close()
    assert complaints == []
    assert [one for one in stored if one != [0, ""]] == []  # else the next page is no new visitor's


def _shown(windows: BrowserContext) -> list[Page]:
    """The pages in it, without the empty one that it began with."""
    return [page for page in windows.pages if page.url != "about:blank"]


def _listen(page: Page, complaints: list[str]) -> None:
    page.on(
        "console", lambda m: complaints.append(f"console: {m.text}") if m.type == "error" else None
    )
    page.on("request", lambda request: _notice(request.url, complaints))
    page.on("popup", lambda popup: complaints.append(f"window: {popup.url}"))
    page.on("pageerror", lambda error: complaints.append(f"page: {error}"))
    page.on("dialog", lambda dialog: _dismiss(dialog, complaints))


def _notice(url: str, complaints: list[str]) -> None:
    """Nothing answers elsewhere (chromium.ARGUMENTS); nor may it be tried."""
    if ELSEWHERE.match(url):
        complaints.append(f"request to {url}")


def _dismiss(dialog: Any, complaints: list[str]) -> None:
    complaints.append(f"dialog: {dialog.message}")
    dialog.dismiss()
