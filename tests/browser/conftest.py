"""The page in real Chromium: one browser, a new page for each test, nothing leaves the machine."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kit import serving
from kit.browser import PAGE_MODULES, WAIT_MS, Open, Visit
from kit.windows import PUBLIC, Profile, Window, opening_pages
from playwright.sync_api import Browser, BrowserContext, Playwright, expect

from tools import chromium

HERE = Path(__file__).parent
SITES = ("server", "folder")

Opening = Callable[..., AbstractContextManager[Open]]
expect.set_options(timeout=WAIT_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("browser")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests marked `without_server` open the page from a server and from a folder of files."""
    if metafunc.definition.get_closest_marker("without_server"):
        metafunc.parametrize("site", SITES, indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A failure says what its pages' visitors did last and what these show."""
    report = yield
    if report.failed and report.when == "call" and call.excinfo:
        values = [value for it in call.excinfo.traceback for value in it.frame.f_locals.values()]
        for visit in {id(value): value for value in values if isinstance(value, Visit)}.values():
            report.sections.append((f"state of {visit.page.url}", visit.state_for_report()))
    return report


@pytest.fixture
def site(request: pytest.FixtureRequest) -> str:
    """One of SITES."""
    return str(getattr(request, "param", SITES[0]))


@pytest.fixture(scope="session")
def server() -> serving.Shared:
    return serving.running()


@pytest.fixture(scope="session")
def address() -> str:
    """A page that offers the bundled models, as app.py does. The network answers from the server:
    in the browser it takes twice the processor time."""
    return f"{serving.bundled().url}?engine=server"


@pytest.fixture(scope="session")
def windows(
    playwright: Playwright, server: serving.Shared, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Window]]:
    """Get a free window of one browser, as many as are open at the same time. They are no tabs:
    two of one window would hide each other, and what is hidden is hardly drawn.

    Its profile lies on the disk, where the browser keeps the page's scripts compiled: opening the
    page takes half the processor time that it takes in one in memory."""
    context = playwright.chromium.launch_persistent_context(
        tmp_path_factory.mktemp("profile"),
        executable_path=chromium.find(),
        args=chromium.TEST_ARGUMENTS,
    )
    context.add_init_script(path=PAGE_MODULES)
    every: list[Window] = []

    def free() -> Window:
        for window in every:
            if window.is_free:
                return window
        every.append(Window(context, f"{server.url}health"))
        return every[-1]

    yield free
    context.close()


@pytest.fixture(scope="session")
def memory(request: pytest.FixtureRequest) -> Callable[..., BrowserContext]:
    """Make a profile in memory with these settings."""

    def profile(**settings: Any) -> BrowserContext:
        browser: Browser = request.getfixturevalue("browser")  # not started for nothing
        context = browser.new_context(**settings)
        context.add_init_script(path=PAGE_MODULES)
        return context

    return profile


@pytest.fixture(scope="module")
def elsewhere(playwright: Playwright) -> Iterator[Browser]:
    """A browser in which this machine has a public name."""
    rules = f"--host-resolver-rules=MAP {PUBLIC} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    others = [one for one in chromium.TEST_ARGUMENTS if not one.startswith("--host-resolver-rules")]
    browser = playwright.chromium.launch(executable_path=chromium.find(), args=[*others, rules])
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def opening(
    memory: Profile,
    windows: Callable[[], Window],
    server: serving.Shared,
    request: pytest.FixtureRequest,
) -> Opening:
    late_ms = request.config.getoption("--late")
    return partial(opening_pages, memory, windows, server, late_ms)


@pytest.fixture
def visit(opening: Opening) -> Iterator[Open]:
    """Opens the page; afterwards there is no error, no request to elsewhere, nothing stored."""
    with opening() as open_page:
        yield open_page


@pytest.fixture(scope="module")
def still_server(opening: Opening) -> Iterator[Visit]:
    with opening() as open_page:
        yield open_page()


@pytest.fixture(scope="module")
def still_folder(opening: Opening) -> Iterator[Visit]:
    with opening() as open_page:
        yield open_page(serving.folder().url)


@pytest.fixture
def still(site: str, request: pytest.FixtureRequest) -> Visit:
    """One page for the tests of a file that leave it as they found it: the stored run, no token
    chosen, the first head."""
    visit: Visit = request.getfixturevalue(f"still_{site}")
    return visit


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
