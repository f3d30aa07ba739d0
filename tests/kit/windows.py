"""Windows of Chromium in which tests open pages, and what their pages complained of."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from kit import serving
from kit.browser import WAIT_MS, Open, Visit
from playwright.sync_api import Browser, BrowserContext, Page

from transformer.views.declaration import tab_name

PUBLIC = "class.example"  # the name at which a proxy would offer the page
STORED = "[localStorage.length, document.cookie]"
Profile = Callable[..., BrowserContext]
# Responses and frames come late, and Gradio's frontend, which is an element, later still: a test
# that reads the page too early fails every time, and not only on a busy machine.
LATE = """late => {
    if (window.isLate) return; // a window is given this for each test that opens a page in it
    window.isLate = true;
    const { fetch, requestAnimationFrame } = window, { define } = customElements;
    const wait = ms => new Promise(done => setTimeout(done, ms));
    window.fetch = async (...given) => {
        const response = await fetch(...given);
        await wait(late);
        return response;
    };
    window.requestAnimationFrame = frame =>
        setTimeout(() => requestAnimationFrame(frame), late / 4);
    customElements.define = async (...given) => {
        await wait(2 * late);
        define.apply(customElements, given);
    };
}"""


@contextmanager
def opened_alone(browser: Browser, path: Path, **settings: Any) -> Iterator[Any]:
    """The file, which asks for nothing else and complains of nothing."""
    context = browser.new_context(offline=True, **settings)
    tab = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto(path.as_uri())
    yield tab
    context.close()
    assert {url for url in asked if not url.startswith(("data:", "blob:"))} == {path.as_uri()}
    assert complaints == []


@dataclass
class Window:
    """A window of a profile, in which one test after another opens the page anew: that takes half
    the processor time of a new window."""

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
            self.page = _new_window(self.context)
            _listen(self.page, self.complaints)
        return self.page

    def stored(self) -> Any:
        """The page's local storage and cookies."""
        closed = self.page is None or self.page.is_closed()
        return [0, ""] if closed else self.page.evaluate(STORED)

    def leave(self) -> None:
        """Not the page in it; what the last one asked for on its way out is not the next one's."""
        if self.page and not self.page.is_closed():
            self.page.unroute_all(behavior="ignoreErrors")
            self.page.goto(self.rest)
        self.is_free = True


@contextmanager
def opening_pages(
    memory: Profile,
    windows: Callable[[], Window],
    server: serving.Shared,
    late_ms: float,
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
        script: str = "",
    ) -> Visit:
        """language: of the browser. own: settings of a new profile, in which `script` runs first.
        tab: the one to open, unless the address names one."""
        if own is None:
            taken.append(windows())
            page = taken[-1].take()
            page.set_extra_http_headers({"Accept-Language": language})
        else:
            context = memory(**own)
            others.append(context)
            context.add_init_script(script)
            page = context.new_page()
            _listen(page, complaints)
        page.set_default_timeout(WAIT_MS)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=color_scheme, reduced_motion="no-preference")
        if late_ms:
            page.add_init_script(f"({LATE})({late_ms})")
        is_led = tab != "Journey" and "tab=" not in address
        if is_led:
            address += f"{'&' if '#' in address else '#'}tab={tab_name(tab)}"
        page.goto(address)
        visit = Visit(page)
        if is_led:
            visit.wait_drawn(f".{tab_name(tab)}")
        return visit

    try:
        yield open_page
        stored = [window.stored() for window in taken]
        complaints += [one for window in taken for one in window.complaints]
    finally:
        for window in taken:
            window.leave()
        for context in others:
            context.close()
    assert may_complain or complaints == [], complaints
    assert all(one == [0, ""] for one in stored)  # else the next page is no new visitor's


def _new_window(context: BrowserContext) -> Page:
    """And not a tab of the window that the browser began with."""
    tools = context.new_cdp_session(context.pages[0])
    with context.expect_page() as page:
        tools.send("Target.createTarget", {"url": "about:blank", "newWindow": True})
    tools.detach()
    return page.value


def _listen(page: Page, complaints: list[str]) -> None:
    """Record complaints. A request to another host is an error too (chromium.ARGUMENTS); a run that
    the server no longer keeps is none, nor a QR code, which a server for one machine refuses."""

    def hear(m: Any) -> None:
        url = m.location["url"]
        if m.type == "error" and "a status of 410" not in m.text and "/code?" not in url:
            complaints.append(f"console: {m.text} {url}")

    page.on("console", hear)
    page.on("popup", lambda popup: complaints.append(f"window: {popup.url}"))
    page.on("pageerror", lambda error: complaints.append(f"page: {error}"))
    page.on("dialog", lambda dialog: _dismiss(dialog, complaints))


def _dismiss(dialog: Any, complaints: list[str]) -> None:
    complaints.append(f"dialog: {dialog.message}")
    dialog.dismiss()
