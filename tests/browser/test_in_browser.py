"""The bundled model in the visitor's browser, beside a server: once it is there the page goes on
without the server, and says in Model which of them computes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kit.browser import Visit
from kit.serving import Server
from playwright.sync_api import Page, expect

from transformer import from_json

READY = "() => viz.inBrowser.includes('stories') && viz.plotlyIfLoaded()"
TYPED = "The big dog ran to the"
# Whether the page has begun to load the network, or has decided that it does not: what waits for an
# idle page is done in the order in which it was asked for.
BEGUN = """async () => {
    for (let times = 0; times < 3; times += 1)
        await new Promise(done => requestIdleCallback(() => setTimeout(done)));
    return performance.getEntriesByType("resource").map(({ name }) => name)
        .filter(name => /weights|engine/.test(name)); }"""
# Ask the worker what it does not know: a fault, and no refusal.
FAIL = """() => import("engine").then(({ modules }) =>
    modules["browser/page/beside.js"].engine._call("no such question", {})).catch(() => {})"""
SMALL = "Object.defineProperty(navigator, '{name}', {{ value: {value} }});"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of its own, which can be stopped."""
    with Server(tmp_path_factory.mktemp("in_browser") / "log", ["stories"]) as server:
        yield server


def computed_by(visit: Visit) -> str:
    visit.tab("Model")
    visit.wait_drawn(".architecture")
    return visit.page.locator(".computed-by").inner_text()


def no_problem(page: Page) -> None:
    expect(page.locator("#status .problem")).to_be_hidden()


def test_the_page_goes_on_without_its_server(opening: Callable[..., Any], alone: Server) -> None:
    with opening(may_complain=True) as open_page:  # about requests to the stopped server
        visit = open_page(alone.url, tab="Journey")
        page = visit.page
        page.wait_for_function(READY)
        alone.stop()

        box = visit.text_box()
        box.fill("")
        said, words = [], TYPED.split()
        for n, word in enumerate(words, 1):
            box.press_sequentially(word if n == 1 else f" {word}")
            page.locator(f".next-words[data-typed='{' '.join(words[:n])}']").wait_for()
            said.append(page.locator(".next-words ul").inner_text())
        assert len(set(said)) == len(words)
        expect(page.locator(".next-words .next-word").first).to_contain_text("park")
        box.press("Enter")
        page.wait_for_function("text => viz.run.text === text && !viz.writing", arg=TYPED)
        visit.wait_drawn(".journey")
        no_problem(page)

        head = visit.head(2, 2)
        head.scroll_into_view_if_needed()
        place = head.bounding_box()
        assert place is not None
        for offset in (3, 6):
            page.mouse.move(place["x"] + offset, place["y"] + offset)
        expect(page.locator(".bars-legend")).to_contain_text("without layer 2, head 2")
        expect(page.locator(".next-word .bars .without")).not_to_have_count(0)
        page.mouse.down()
        page.mouse.up()
        page.get_by_role("button", name="Switch off layer 2, head 2").first.click()
        expect(page.locator(".altered")).to_contain_text("layer 2, head 2 switched off")
        page.wait_for_function("() => viz.interventions().length === 1 && !viz.writing")
        expect(page.locator(".altered [data-text=after], .altered-says")).not_to_have_count(0)
        page.go_back()  # at once: the step is in the history as soon as it is shown
        page.wait_for_function("() => !viz.isOpening() && viz.interventions().length === 0")
        no_problem(page)
        assert computed_by(visit).startswith("This browser computes stories;")

        visit.wait_drawn(".equations")
        assert page.locator(".equations").get_attribute("data-run") == visit.shown_run()
        alone.start()  # which makes the page's run again for what only it can answer
        page.locator(".exports > summary").click()
        with page.expect_download() as file:
            page.locator("[data-form=json]").click()
        saved = from_json(Path(file.value.path()).read_text(encoding="utf-8"))
        assert saved.text.startswith(TYPED)
        no_problem(page)


def test_a_failing_network_leaves_the_answers_to_the_server(
    opening: Callable[..., Any], alone: Server
) -> None:
    with opening() as open_page:
        visit = open_page(alone.url, tab="Journey")
        visit.page.wait_for_function(READY)
        visit.page.evaluate(FAIL)
        visit.page.wait_for_function("() => viz.inBrowser.length === 0")
        visit.enter(TYPED)
        visit.page.wait_for_function("text => viz.run.text === text && !viz.writing", arg=TYPED)
        assert len(visit.shown_run()) == 22
        assert not visit.shown_run().startswith("browser-")
        assert computed_by(visit) == "The server computes stories."


@pytest.mark.parametrize(
    ("address", "script"),
    [
        ("?engine=server", ""),
        ("", SMALL.format(name="connection", value="{ saveData: true }")),
        ("", SMALL.format(name="deviceMemory", value="2")),
    ],
    ids=["engine=server", "save-data", "small"],
)
def test_weights_are_not_asked_for(
    opening: Callable[..., Any], alone: Server, address: str, script: str
) -> None:
    with opening() as open_page:
        visit = open_page(f"{alone.url}{address}", own={}, tab="Journey", script=script)
        assert visit.page.evaluate(BEGUN) == []
        assert computed_by(visit) == "The server computes stories."
        assert visit.page.evaluate(BEGUN) == []
        visit.wait_for_address("tab=model")
        assert visit.page.url.startswith(f"{alone.url}{address}#")
