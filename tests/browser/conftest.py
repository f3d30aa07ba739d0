"""The page in real Chromium: one browser, a page of its own a test, nothing leaves the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from kit import serving
from kit.browser import PAGE_MODULES, WAIT_MS, Open, Visit
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect

from tools import chromium

HERE = Path(__file__).parent
STORED = "[localStorage.length, document.cookie]"

Profile = Callable[..., BrowserContext]
Opening = Callable[..., AbstractContextManager[Open]]
expect.set_options(timeout=WAIT_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("browser")


@pytest.fixture(scope="session")
def server() -> serving.Shared:
    return serving.running()


@pytest.fixture(scope="session")
def address() -> str:
    """A page that offers the bundled models, as app.py does."""
    return serving.bundled().url


@pytest.fixture(scope="session")
def windows(
    playwright: Playwright, server: serving.Shared, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Window]]:
    """Gives one that is free: as many as are open at the same time, each in a browser of its own.
    Two tabs of one would hide each other, and what is hidden is hardly drawn.

    Their profiles lie on the disk, where the browser keeps the page's scripts compiled: opening the
    page takes half the processor time that it takes in one in memory."""
    every: list[Window] = []

    def free() -> Window:
        for window in every:
            if window.is_free:
                return window
        folder = tmp_path_factory.mktemp("profile")
        context = playwright.chromium.launch_persistent_context(
            folder, executable_path=chromium.find(), args=chromium.ARGUMENTS
        )
        context.add_init_script(path=PAGE_MODULES)
        every.append(Window(context, f"{server.url}health"))
        return every[-1]

    yield free
    for window in every:
        window.context.close()


@pytest.fixture(scope="session")
def memory(request: pytest.FixtureRequest) -> Callable[..., BrowserContext]:
    """Makes a profile in memory, with settings of its own."""

    def profile(**settings: Any) -> BrowserContext:
        browser: Browser = request.getfixturevalue("browser")  # not started for nothing
        context = browser.new_context(**settings)
        context.add_init_script(path=PAGE_MODULES)
        return context

    return profile


@pytest.fixture(scope="session")
def opening(
    memory: Profile,
    windows: Callable[[], Window],
    server: serving.Shared,
    request: pytest.FixtureRequest,
) -> Opening:
    return partial(_opening, memory, windows, server, float(request.config.getoption("--slowdown")))


@pytest.fixture
def visit(opening: Opening) -> Iterator[Open]:
    """Opens the page; afterwards there is no error, no request to elsewhere, nothing stored."""
    with opening() as open_page:
        yield open_page


@pytest.fixture(scope="module")
def still(opening: Opening) -> Iterator[Visit]:
    """One page for the tests of a file that leave it as they found it: the stored run, no token
    chosen, the first head."""
    with opening() as open_page:
        yield open_page()


@pytest.fixture(scope="module")
def door(opening: Opening, address: str) -> Iterator[Visit]:
    """One page with the bundled models, for the tests of a file."""
    with opening() as open_page:
        yield open_page(address, tab="Journey")


@pytest.fixture
def page(still: Visit) -> Visit:
    """It, as at first."""
    still.go("model=tiny&tab=attention&site=decoder.0.self&head=0")
    return still


@dataclass
class Window:
    """A profile with one window, in which one test after another opens the page anew: that takes
    half the processor time of a window of its own."""

    context: BrowserContext
    rest: str  # an address of the page's site: for another the browser would start a new process
    complaints: list[str] = field(default_factory=list)  # of what it shows now
    page: Page | None = None
    is_free: bool = True

    def take(self) -> Page:
        """For one test, until it is left."""
        self.is_free = False
        self.complaints.clear()
        if self.page is None or self.page.is_closed():
            self.page = self.context.new_page()
            _listen(self.page, self.complaints)
        return self.page

    def stored(self) -> Any:
        """What the page has kept in the browser."""
        closed = self.page is None or self.page.is_closed()
        return [0, ""] if closed else self.page.evaluate(STORED)

    def leave(self) -> None:
        """Not the page in it; what the last one asked for on its way out is not the next one's."""
        if self.page and not self.page.is_closed():
            self.page.unroute_all(behavior="ignoreErrors")
            self.page.goto(self.rest)
        self.is_free = True


@contextmanager
def _opening(
    memory: Profile,
    windows: Callable[[], Window],
    server: serving.Shared,
    slowdown: float,
    may_complain: bool = False,
) -> Iterator[Open]:
    others: list[BrowserContext] = []
    taken: list[Window] = []
    complaints: list[str] = []

    def open_page(
        address: str = server.url,
        *,
        width: int = 1440,
        height: int = 900,
        color_scheme: Literal["light", "dark"] = "light",
        language: str = "en",
        own: dict[str, Any] | None = None,
        tab: str = "Attention",
    ) -> Visit:
        """language: what the browser asks for. own: settings of a profile of its own. tab: see
        Visit."""
        if own is None:
            taken.append(windows())
            page = taken[-1].take()
            page.set_extra_http_headers({"Accept-Language": language})
        else:
            context = memory(**own)
            others.append(context)
            page = context.new_page()
            _listen(page, complaints)
        page.set_default_timeout(WAIT_MS)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=color_scheme, reduced_motion="no-preference")
        if slowdown != 1:
            tools = page.context.new_cdp_session(page)
            tools.send("Emulation.setCPUThrottlingRate", {"rate": slowdown})
        page.goto(address)
        return Visit(page, tab)

    try:
        yield open_page
        stored = [window.stored() for window in taken]
        complaints += [one for window in taken for one in window.complaints]
    finally:
        for window in taken:
            window.leave()
        for context in others:
            context.close()
    assert may_complain or complaints == []
    assert all(one == [0, ""] for one in stored)  # else the next page is no new visitor's


def _listen(page: Page, complaints: list[str]) -> None:
    """The console tells of a request to elsewhere too: nothing answers it (chromium.ARGUMENTS).

    It tells of every refusal; that of a question (resources/) is the page's own to tell."""

    def hear(m: Any) -> None:
        refused = "the server responded with a status of 4" in m.text
        if m.type == "error" and not (refused and "/resources/" in m.location["url"]):
            complaints.append(f"console: {m.text}")

    page.on("console", hear)
    page.on("popup", lambda popup: complaints.append(f"window: {popup.url}"))
    page.on("pageerror", lambda error: complaints.append(f"page: {error}"))
    page.on("dialog", lambda dialog: _dismiss(dialog, complaints))


def _dismiss(dialog: Any, complaints: list[str]) -> None:
    complaints.append(f"dialog: {dialog.message}")
    dialog.dismiss()
