"""The page in real Chromium: one browser, a page of its own a test, nothing leaves the machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import chromium
import pytest
import serving
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect
from visit import PAGE_MODULES, WAIT_MS, Visit
from whatif import WhatIf

STORED = "[localStorage.length, document.cookie]"
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
def windows(playwright: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    """One profile for most pages. It lies on the disk, where the browser keeps the page's scripts
    compiled: opening the page takes a third less processor time than in a profile in memory."""
    context = playwright.chromium.launch_persistent_context(
        tmp_path_factory.mktemp("profile"),
        executable_path=chromium.find(),
        args=chromium.ARGUMENTS,
    )
    context.add_init_script(path=PAGE_MODULES)
    yield Window(context)
    context.close()


@pytest.fixture
def visit(
    browser: Browser, windows: Window, server: serving.Server, slowdown: float
) -> Iterator[Open]:
    """Opens the page; afterwards there is no error, no request to elsewhere, nothing stored."""
    with _opening(browser, windows, server, slowdown) as open_page:
        yield open_page


@pytest.fixture(scope="module")
def still(
    browser: Browser, windows: Window, server: serving.Server, slowdown: float
) -> Iterator[Visit]:
    """One page for the tests of a file that leave it as they found it: the stored run, no token
    chosen, the first head."""
    with _opening(browser, windows, server, slowdown) as open_page:
        yield open_page(own={})  # in the profile of the others it would be a hidden tab


@pytest.fixture
def whatif(visit: Open, server: serving.Server) -> WhatIf:
    """The tab What if?, with a short run of the first model."""
    return WhatIf(visit(), server.model)


@dataclass
class Window:
    """A profile with one window, in which one test after another opens the page anew: that takes
    half the processor time of a window of its own."""

    context: BrowserContext
    complaints: list[str] = field(default_factory=list)  # of what it shows now
    page: Page | None = None

    @property
    def is_free(self) -> bool:
        return self.page is None or self.page.is_closed() or self.page.url == "about:blank"

    def take(self) -> Page:
        if self.page is None or self.page.is_closed():
            self.page = self.context.new_page()
            _listen(self.page, self.complaints)
        return self.page

    def leave(self) -> None:
        """No page in it; what the last one asked for on its way out is not the next one's."""
        if self.page and not self.page.is_closed():
            self.page.unroute_all(behavior="ignoreErrors")
            self.page.goto("about:blank")


@contextmanager
def _opening(
    browser: Browser, windows: Window, server: serving.Server, slowdown: float
) -> Iterator[Open]:
    others: list[BrowserContext] = []
    windows.complaints.clear()
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
        if own is None and windows.is_free:
            page = windows.take()
        else:
            context = browser.new_context(**own or {})
            others.append(context)
            context.add_init_script(path=PAGE_MODULES)
            page = context.new_page()
            _listen(page, complaints)
        page.set_default_timeout(WAIT_MS)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=color_scheme, reduced_motion=reduced_motion)
        if slowdown != 1:
            tools = page.context.new_cdp_session(page)
            tools.send("Emulation.setCPUThrottlingRate", {"rate": slowdown})
        page.goto(address)
        return Visit(page)

    try:
        yield open_page
        stored = [] if windows.is_free else [windows.take().evaluate(STORED)]
    finally:
        windows.leave()
        for context in others:
            context.close()
    assert complaints + windows.complaints == []
    assert stored in ([], [[0, ""]])  # else the next page is no new visitor's


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
