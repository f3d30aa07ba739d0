"""The page's address: a copy of it, opened elsewhere, draws the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import serving
from playwright.sync_api import Page, Route, expect
from serving import Server
from visit import Visit

from transformer.ui.limits import MAX_VISITOR_RUNS

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]

SILENCED = {"type": "ablate", "stack": "decoder", "layer": 0, "heads": [1]}
SEEN = """() => {
    const [[{ z }]] = document.querySelector("#attention .large").calcdata;
    const picture = z.map((row) => [...row]);
    const numbers = [...document.querySelectorAll(".readout dd")].map((one) => one.textContent);
    const shown = document.querySelector(".attention");
    const { rev, run, firstMs, clickMs, ...state } = shown?.dataset ?? {};
    return { picture, numbers, state };
}"""
CHECKED = """() => [...document.querySelectorAll("#attention input:checked")]
    .map((one) => `${one.name} ${one.value}`)"""


@pytest.fixture(scope="module")
def restarted(server: Server) -> Iterator[str]:
    """Where a second server listens, to which the first has left nothing but the checkpoints."""
    folder, port = server.log.parent, serving.free_port()
    offered = [str(folder / name) for name in ("tiny", "tiny-translator")]
    process = serving.started(port, offered, folder / "restarted.log")
    yield f"http://127.0.0.1:{port}/"
    serving.stop(process)


def opened(visit: Open, address: str, **settings: Any) -> Visit:
    """The page of a link, once it shows what the link says."""
    page = visit(address, **settings)
    page.wait_for_link()
    return page


def wait_for(page: Page, state: dict[str, Any]) -> None:
    """Until the large picture has these in its data-attributes."""
    for name, value in state.items():
        page.wait_for_selector(f".attention[data-{name}='{value}']", state="attached")


def alter(page: Visit, script: str) -> None:
    """Ask for another run and wait for its picture."""
    old = page.page.evaluate("viz.run.run")
    page.page.evaluate(script)
    page.page.wait_for_function(
        """old => viz.run.run !== old
            && document.querySelector(".attention")?.dataset.run === viz.run.run""",
        arg=old,
    )


def test_a_link_draws_the_same_in_another_browser_and_after_a_restart(
    visit: Open, restarted: str
) -> None:
    page = visit()
    page.set_length(12)
    page.generate("The fox & the <b>bird</b>")
    alter(page, f"viz.alter([{SILENCED!r}])".replace("'", '"'))
    alter(page, "viz.continueFrom([60, 61])")
    with page.drawn(".attention"):
        page.head(1, 2).click()
    page.show_more()
    for value in ("log", "own"):
        with page.drawn(".attention"):
            page.page.locator(f"#attention input[value={value}]").check()
    with page.drawn(".attention"):
        page.page.locator("#attention input[value=masked]").check()
    page.page.mouse.click(*page.cell(7, 4))
    page.page.mouse.move(5, 5)
    address = page.wait_for_address(
        "model=tiny", "&forced_tokens=60,61", "&site=decoder.1.self", "&head=2", "&cell=7,4",
        "&stage=masked", "&scale=log", "&range=own",
    )  # fmt: skip
    seen, labels, facts = page.page.evaluate(SEEN), page.labels(), page.page.evaluate("viz.run")
    assert (seen["state"]["row"], seen["state"]["column"]) == ("7", "4")
    for there in (address, address.replace(address.split("#")[0], restarted)):
        other = opened(visit, there)
        wait_for(other.page, {"stage": "masked", "row": 7, "column": 4, "head": 2})
        assert other.labels() == labels
        assert other.page.evaluate(SEEN) == seen
        assert other.page.evaluate(CHECKED) == page.page.evaluate(CHECKED)
        again = other.page.evaluate("viz.run")
        for name in ("forced_tokens", "interventions", "probabilities", "link"):
            assert again[name] == facts[name]
        assert other.page.locator(".altered").is_visible()
        assert other.page.url.split("#")[1] == address.split("#")[1]


def test_a_link_to_a_translation_draws_its_search_and_its_source_token(
    visit: Open, restarted: str
) -> None:
    page = visit()
    page.choose_model("tiny-translator")
    page.generate("The dog ran")
    assert page.large.get_attribute("data-site") == "decoder.0.cross"
    with page.drawn(".attention"):
        page.page.locator(".pictures label").nth(1).click()
    with page.drawn(".attention"):
        page.page.locator(".over label").nth(2).click()
    page.sources.nth(2).click()
    address = page.wait_for_address(
        "method=beam", "&picture=alignment", "&over_heads=all",
        "&read=encoder.2",
    )  # fmt: skip
    links = "document.querySelector('.lines').layout.meta.links"
    other = opened(visit, address.replace(address.split("#")[0], restarted))
    wait_for(other.page, {"picture": "alignment"})
    assert other.labels() == page.labels()
    assert other.page.evaluate(links) == page.page.evaluate(links)
    assert other.sources.nth(2).get_attribute("aria-pressed") == "true"
    assert other.page.locator(".hypotheses tbody tr").all_inner_texts() == (
        page.page.locator(".hypotheses tbody tr").all_inner_texts()
    )
    assert other.page.locator("#generate").inner_text() == "Translate"
    assert other.page.locator("#headline").inner_text() == (
        page.page.locator("#headline").inner_text()
    )


def test_every_tab_opens_as_it_was_left(visit: Open) -> None:
    page = visit()
    page.tab("Attention")
    page.wait_drawn(".ranking")
    page.page.locator(".ranking th button").nth(1).click()
    page.tab("Masks")
    page.wait_drawn(".masks")
    page.page.locator("#lines textarea").fill("The fox.\nThe dog ran.")
    with page.drawn(".masks"):
        page.page.locator("#show-masks").click()
    with page.drawn(".masks"):
        page.page.locator(".sentence").nth(1).click()
    page.wait_drawn(".mask-scores")
    with page.drawn(".mask-scores"):
        page.page.locator(".pick-head").select_option("2")
    page.tab("Positions")
    page.wait_drawn(".positions")
    page.wait_drawn(".position-curves")
    page.page.locator(".dimensions").fill("3, 5")
    with page.drawn(".position-curves"):
        page.page.locator(".dimensions").press("Enter")
    page.tab("Prediction")
    page.tokens.nth(9).click()
    address = page.wait_for_address(
        "sort=", "&order=", "&lines=", "&row=1", "&mask_head=2", "&dimensions=3,5",
        "&tab=prediction", "&read=9",
    )  # fmt: skip
    other = opened(visit, address)
    assert other.page.locator("#status .problem").is_hidden()
    other.wait_drawn(".prediction")
    title = page.page.locator(".step-title").inner_text()
    assert other.page.locator(".step-title").inner_text() == title
    assert other.page.url == address
    other.tab("Positions")
    other.wait_drawn(".position-curves")
    other.page.wait_for_selector(".position-curves[data-dimensions='3,5']")
    other.tab("Masks")
    other.wait_drawn(".mask-scores")
    other.page.wait_for_selector(".mask-scores[data-row='1'][data-head='2']")
    assert other.page.locator("#lines textarea").input_value() == "The fox.\nThe dog ran."
    assert other.page.locator(".sentence bdi").all_inner_texts() == ["The fox.", "The dog ran."]
    other.tab("Attention")
    other.wait_drawn(".ranking")
    expect(other.page.locator(".ranking [aria-sort=descending]")).to_have_count(1)
    # Where a link names no dimensions, a small network has those of the usual ones that it has.
    other.page.evaluate("location.hash = 'model=tiny&tab=positions&more=curves'")
    other.page.wait_for_selector(".position-curves[data-dimensions='0,1,8']")
    assert other.page.locator("#status .problem").is_hidden()


def test_a_tab_that_a_phone_keeps_in_its_menu_opens_too(visit: Open, server: Server) -> None:
    page = opened(visit, f"{server.url}#model=tiny&tab=model", width=390, height=844)
    page.wait_drawn(".architecture")
    assert page.page.locator("[role=tab][aria-selected=true]").inner_text() == "Model"
    page.page.wait_for_function(
        "() => document.querySelector('#right').getBoundingClientRect().top < innerHeight / 2"
    )  # however much of the window the text above fills
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.page.locator("#status .problem").is_hidden()


def test_a_link_of_before_opens_and_its_words_move_behind_the_hash(
    visit: Open, server: Server
) -> None:
    state = "model=tiny&text=The+fox&method=greedy&length=3&site=decoder.1.self&head=2"
    page = opened(visit, f"{server.url}?__theme=dark&{state}")
    wait_for(page.page, {"head": 2})
    page.wait_for_address("text=The+fox", "&head=2")
    assert page.page.evaluate("location.search") == "?__theme=dark"
    other = opened(visit, page.page.url)
    assert other.labels() == page.labels()
    assert other.page.evaluate("document.body.classList.contains('dark')")


def a_link_typed_into_an_open_page_is_opened(page: Visit) -> None:
    page.page.evaluate("location.hash = 'model=tiny&text=The+fox&length=3&tab=prediction'")
    page.page.wait_for_function("() => viz.run.text === 'The fox' && !viz.isOpening()")
    page.wait_drawn(".prediction")
    assert page.page.evaluate("window.before")
    assert page.page.locator("#text textarea").input_value() == "The fox"


def test_a_run_that_the_server_dropped_is_made_again_when_it_is_shown_again(visit: Open) -> None:
    page = visit()
    page.set_length(6)
    page.generate("The fox")
    first, labels = page.page.evaluate("viz.run"), page.labels()
    page.set_length(1)
    for place in range(MAX_VISITOR_RUNS):
        page.generate(f"Newer {place}")
    page.page.evaluate("first => void viz.showRun(first)", first)
    page.page.wait_for_function("() => viz.run.text === 'The fox' && !viz.isOpening()")
    assert page.labels() == labels
    assert page.page.evaluate("viz.run.run") != first["run"]
    assert page.page.locator("#status .problem").is_hidden()


def test_links_typed_and_back_and_forward_are_followed_without_loading_the_page(
    visit: Open,
) -> None:
    page = visit()
    page.page.evaluate("window.before = true")
    page.set_length(4)
    page.generate("The fox")
    first, labels = page.wait_for_address("text=The+fox"), page.labels()
    page.generate("The bird")
    page.wait_for_address("text=The+bird")
    page.tab("Masks")
    page.wait_for_address("tab=masks")
    page.page.go_back()
    expect(page.page.get_by_role("tab", name="Attention")).to_have_attribute(
        "aria-selected", "true"
    )
    page.page.go_back()
    page.page.wait_for_function("() => viz.run.text === 'The fox'")
    assert page.labels() == labels
    expect(page.page.locator("#text textarea")).to_have_value("The fox")
    assert page.wait_for_address("text=The+fox") == first
    page.page.go_forward()
    page.page.wait_for_function("() => viz.run.text === 'The bird' && !viz.isOpening()")
    a_link_typed_into_an_open_page_is_opened(page)


def test_back_and_forward_pressed_at_once_end_where_they_lead(visit: Open) -> None:
    page = visit()
    page.set_length(4)
    for text in ("The fox", "The bird", "The cow"):
        page.generate(text)
        page.wait_for_address(f"text={text.replace(' ', '+')}")
    # Each is asked for while the server still answers the one before.
    for leap, text in ((-1, "The bird"), (-1, "The fox"), (2, "The cow"), (-2, "The fox")):
        page.page.evaluate("leap => history.go(leap)", leap)
        page.wait_for_address(f"text={text.replace(' ', '+')}")
    page.page.wait_for_function("() => viz.run.text === 'The fox'")
    expect(page.page.locator("#text textarea")).to_have_value("The fox")
    page.page.go_forward()
    page.page.wait_for_function("() => viz.run.text === 'The bird'")
    assert page.wait_for_address("text=The+bird")


def test_back_pressed_before_the_answer_leads_to_what_was_shown(
    visit: Open, server: Server
) -> None:
    """And not away from the page. The step is there at once, and one alone once it is answered."""
    page = visit(own={})  # with a history of its own: a long one grows no more
    page.wait_for_address("model=tiny")  # its tab is not the first
    before, run, entries = page.page.url, page.shown_run(), page.page.evaluate("history.length")
    held: list[Route] = []
    holds = [True]
    page.page.route(
        "**/queue/join*", lambda route: held.append(route) if holds else route.continue_()
    )
    with page.page.expect_request("**/queue/join*"):
        page.page.locator(".start").first.click()
    page.wait_for_address("tour=")
    page.page.go_back()
    holds.clear()
    for route in held:
        route.continue_()
    page.page.wait_for_function("url => !viz.isOpening() && location.href === url", arg=before)
    assert page.shown_run() == run
    expect(page.page.locator("#tour-card .card")).to_be_hidden()
    page.page.go_forward()
    page.page.wait_for_function("run => viz.run.run !== run && !viz.isOpening()", arg=run)
    page.wait_for_address("tour=", "model=stories")
    assert page.page.evaluate("history.length") == entries + 1


def test_a_mistake_elsewhere_does_not_end_the_opening_of_a_link(visit: Open) -> None:
    """Back, pressed while a picture is refused, leads to the run before all the same."""
    page = visit()
    page.set_length(4)
    for text in ("The fox", "The bird"):
        page.generate(text)
        page.wait_for_address(f"text={text.replace(' ', '+')}")
    held: list[Route] = []
    holds = [True]
    page.page.route(
        "**/queue/join*", lambda route: held.append(route) if holds else route.continue_()
    )
    with page.page.expect_request("**/queue/join*"):
        page.page.evaluate("history.back()")
    page.page.evaluate("viz.showProblem('No such picture.')")
    assert page.page.evaluate("viz.isOpening()")
    holds.clear()
    for route in held:
        route.continue_()
    page.page.wait_for_function("() => viz.run.text === 'The fox' && !viz.isOpening()")
    page.wait_for_address("text=The+fox")
