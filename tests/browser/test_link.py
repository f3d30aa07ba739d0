"""The page's address: a copy of it, opened elsewhere, draws the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlparse

import pytest
import serving
from playwright.sync_api import Page, expect
from serving import Server
from visit import Visit

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]

SILENCED = {"type": "silence", "stack": "decoder", "layer": 0, "heads": [1]}
SEEN = """() => {
    const picture = document.querySelector(".large").calcdata[0][0].z.map((row) => [...row]);
    const numbers = [...document.querySelectorAll(".readout dd")].map((one) => one.textContent);
    const { rev, run, firstMs, clickMs, ...state } = document.querySelector(".attention").dataset;
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
    page.page.wait_for_function("() => viz.link && !viz.link.opening")
    page.page.wait_for_function(
        "() => document.querySelector('.attention').dataset.run === viz.run.run"
        " || !document.querySelector('.attention').getClientRects().length"
    )
    return page


def wait_for_address(page: Visit, *parts: str) -> str:
    """The page's address once it has all of these in it."""
    for part in parts:
        page.page.wait_for_function("part => location.search.includes(part)", arg=part)
    return page.page.url


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
            && document.querySelector(".attention").dataset.run === viz.run.run""",
        arg=old,
    )


def test_a_link_draws_the_same_in_another_browser_and_after_a_restart(
    visit: Open, restarted: str
) -> None:
    page = visit()
    page.set_length(12)
    page.generate("The fox & the <b>bird</b>")
    alter(page, f"viz.alter([{SILENCED!r}])".replace("'", '"'))
    alter(page, "viz.branch([60, 61])")
    with page.drawn(".attention"):
        page.head(1, 2).click()
    for value in ("log", "own"):
        with page.drawn(".attention"):
            page.page.locator(f"#attention input[value={value}]").check()
    with page.drawn(".attention"):
        page.page.locator("#attention input[value=masked]").check()
    page.page.mouse.click(*page.cell(7, 4))
    page.page.mouse.move(5, 5)
    address = wait_for_address(
        page, "model=tiny", "&taken=60,61", "&site=decoder.1.self", "&head=2", "&cell=7,4",
        "&stage=masked", "&scale=log", "&range=own",
    )  # fmt: skip
    seen, labels, facts = page.page.evaluate(SEEN), page.labels(), page.page.evaluate("viz.run")
    assert (seen["state"]["row"], seen["state"]["column"]) == ("7", "4")
    for there in (address, address.replace(address.split("?")[0], restarted)):
        other = opened(visit, there)
        wait_for(other.page, {"stage": "masked", "row": 7, "column": 4, "head": 2})
        assert other.labels() == labels
        assert other.page.evaluate(SEEN) == seen
        assert other.page.evaluate(CHECKED) == page.page.evaluate(CHECKED)
        again = other.page.evaluate("viz.run")
        for name in ("taken", "interventions", "probabilities", "link"):
            assert again[name] == facts[name]
        assert other.page.locator(".altered").is_visible()
        assert other.page.url.split("?")[1] == address.split("?")[1]


def test_a_link_to_a_translation_draws_its_search_and_its_source_token(
    visit: Open, restarted: str
) -> None:
    page = visit()
    page.choose_model("tiny-translator")
    page.generate("The dog ran")
    page.attention("decoder cross")
    with page.drawn(".attention"):
        page.page.locator(".pictures label").nth(1).click()
    with page.drawn(".attention"):
        page.page.locator(".over label").nth(2).click()
    page.sources.nth(2).click()
    address = wait_for_address(
        page, "method=beam", "&site=decoder.0.cross", "&picture=alignment", "&over_heads=all",
        "&token=encoder.2",
    )  # fmt: skip
    links = "document.querySelector('.lines').layout.meta.links"
    for there in (address, address.replace(address.split("?")[0], restarted)):
        other = opened(visit, there)
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
    with page.drawn(".ranking"):
        page.page.locator(".ranking th button").nth(1).click()
    page.tab("Masks")
    page.page.wait_for_selector(".masks[data-rev]")
    page.page.locator("#lines textarea").fill("The fox.\nThe dog ran.")
    with page.drawn(".masks"):
        page.page.locator("#show-masks").click()
    with page.drawn(".masks"):
        page.page.locator(".sentence").nth(1).click()
    with page.drawn(".masks"):
        page.page.locator(".pick-head").select_option("2")
    page.tab("Positions")
    page.page.wait_for_selector(".positions[data-rev]")
    page.page.locator(".dimensions").fill("3, 5")
    with page.drawn(".positions"):
        page.page.locator(".dimensions").press("Enter")
    page.tab("Prediction")
    page.tokens.nth(9).click()
    address = wait_for_address(
        page, "sort=", "&order=", "&lines=", "&row=1", "&mask_head=2", "&dimensions=3,5",
        "&tab=prediction", "&token=9",
    )  # fmt: skip
    other = opened(visit, address)
    assert other.page.locator("#status .problem").is_hidden()
    other.page.wait_for_selector(".prediction[data-rev]")
    title = page.page.locator(".step-title").inner_text()
    assert other.page.locator(".step-title").inner_text() == title
    assert other.page.url == address
    other.tab("Positions")
    other.page.wait_for_selector(".positions[data-dimensions='3,5']")
    other.tab("Masks")
    other.page.wait_for_selector(".masks[data-row='1'][data-head='2']")
    assert other.page.locator("#lines textarea").input_value() == "The fox.\nThe dog ran."
    assert other.page.locator(".sentence bdi").all_inner_texts() == ["The fox.", "The dog ran."]
    other.tab("Attention")
    expect(other.page.locator(".ranking [aria-sort=descending]")).to_have_count(1)


def test_a_tab_that_a_phone_keeps_in_its_menu_opens_too(visit: Open, server: Server) -> None:
    phone = {"width": 390, "height": 844}
    page = opened(visit, f"{server.url}?model=tiny&tab=model", viewport=phone)
    page.page.wait_for_selector(".architecture[data-rev]", state="attached")
    assert page.page.locator("[role=tab][aria-selected=true]").inner_text() == "Model"
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.page.locator("#status .problem").is_hidden()


def test_who_only_looks_asks_nothing_more_and_fills_no_history(visit: Open) -> None:
    page = visit()
    asked: list[str] = []
    page.page.on("request", lambda request: asked.append(request.url))
    page.page.evaluate("viz.painted()")
    assert urlparse(page.page.url).query == ""
    entries = page.page.evaluate("history.length")
    for layer in (1, 0, 1):
        with page.drawn(".attention"):
            page.head(layer, 1).click()
    wait_for_address(page, "model=tiny&site=decoder.1.self&head=1")
    with page.drawn(".attention"):
        page.head(0, 0).click()
    page.page.wait_for_function("location.search === ''")
    assert page.page.evaluate("history.length") == entries
    assert not [url for url in asked if "queue/join" in url]


@pytest.mark.parametrize("clipboard", [True, False])
def test_the_link_is_copied_by_keyboard(visit: Open, clipboard: bool) -> None:
    permissions = ["clipboard-read", "clipboard-write"]
    page = visit(permissions=permissions)
    if not clipboard:  # as where the page is served to a network without encryption
        page.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    with page.drawn(".attention"):
        page.head(1, 1).click()
    page.page.locator("#model input").focus()
    page.page.keyboard.press("Tab")
    assert page.page.evaluate("document.activeElement.textContent") == "Copy link"
    page.page.keyboard.press("Enter")
    expected = f"{page.page.url.split('?')[0]}?model=tiny&site=decoder.1.self&head=1"
    if clipboard:
        page.page.wait_for_selector(".share-says:has-text('Copied')")
        assert page.page.evaluate("navigator.clipboard.readText()") == expected
        assert page.page.locator(".share-address").is_hidden()
    else:
        page.page.wait_for_selector(".share-says:has-text('Copy it from here')")
        assert page.page.evaluate("getSelection().toString()") == expected
        assert page.page.locator(".share-address").input_value() == expected


def test_a_long_text_is_compressed_and_one_too_long_is_told_in_a_sentence(visit: Open) -> None:
    page = visit()
    page.set_length(2)
    page.generate("été déjà " * 200)
    address = wait_for_address(page, "?z=")
    assert len(address) < 1_000
    other = opened(visit, address)
    assert other.labels() == page.labels()
    assert other.page.locator("#text textarea").input_value() == "été déjà " * 200
    assert other.page.url == address
    draw = random.Random(3)
    page.generate("".join(chr(draw.randrange(0x20000, 0x2A6D0)) for _ in range(1_900)))
    page.page.get_by_role("button", name="Copy link").click()
    page.page.wait_for_selector(".share-says:has-text('more than the 6,000 characters')")
    assert page.page.locator(".share-address").is_hidden()
    assert page.page.url == address


def test_a_hostile_link_is_text_and_sentences(visit: Open, server: Server) -> None:
    attack = "<img src=x onerror=alert(1)>${alert(2)}{{value}}"
    names = [
        "model", "method", "temperature", "taken", "alter", "tab", "site", "head", "token", "cell",
        "picture", "stage", "scale", "sort", "row", "dimensions", "constructor", "__proto__",
    ]  # fmt: skip
    state = dict.fromkeys(names, attack) | {"text": attack, "length": "3", "lines": attack}
    page = opened(visit, f"{server.url}?{urlencode(state)}")
    said = page.wait_for_alert()
    for name in ("model", "temperature", "taken", "constructor", "site", "tab", "picture", "cell"):
        assert f"link's {name}" in said or f"link's '{name}'" in said
    for tab in ("Masks", "Positions", "Prediction", "Attention"):
        page.tab(tab)
    page.page.wait_for_selector(".attention[data-rev]")
    assert page.page.locator("img[src=x]").count() == 0
    assert page.page.locator("#text textarea").input_value() == attack
    page.page.evaluate("viz.painted()")
    assert page.page.evaluate("({}).constructor === Object")


@pytest.mark.parametrize("query", ["z=AAAA", "z=", "text=" + "a" * 9_000, "wat"])
def test_a_link_that_cannot_be_read_leaves_the_page_as_it_is(
    visit: Open, server: Server, query: str
) -> None:
    page = opened(visit, f"{server.url}?{query}")
    assert "link" in page.wait_for_alert()
    page.set_length(2)
    page.generate("The dog")
    wait_for_address(page, "model=tiny&text=The+dog")


def test_words_in_a_link_go_to_the_page_alone_and_are_not_logged(
    visit: Open, server: Server
) -> None:
    secret = "Xerxes"
    page = opened(visit, f"{server.url}?model=tiny&text={secret}&method=greedy&length=2")
    assert "".join(page.labels()).startswith(f"<|endoftext|>{secret[0]}")
    asked: list[str] = []
    page.page.on("request", lambda request: asked.append(request.url + str(request.headers)))
    page.generate("The dog")
    with page.drawn(".attention"):
        page.head(1, 1).click()
    assert asked
    assert not [one for one in asked if secret in one]
    assert (
        page.page.evaluate("document.querySelector('meta[name=referrer]').content") == "no-referrer"
    )
    assert secret not in server.log.read_text(encoding="utf-8", errors="replace")


def test_the_outer_page_of_a_space_follows_and_no_other_is_told(
    visit: Open, server: Server
) -> None:
    page = visit()
    page.page.evaluate("window.told = []; onmessage = ({ data }) => told.push(data)")
    with page.drawn(".attention"):
        page.head(1, 1).click()
    wait_for_address(page, "head=1")
    assert page.page.evaluate("told") == []
    for outer, follows in (("https://huggingface.co/", True), ("https://example.org/", False)):
        assert told_by_a_frame(page, server, f"{outer}spaces/a/b") == follows


def told_by_a_frame(page: Visit, server: Server, address: str) -> bool:
    """Whether a page that shows ours in a frame is told of a chosen head."""
    outer = page.page.context.new_page()
    frame = f"<iframe src='{server.url}' width=1300 height=900></iframe>"
    listen = "<script>told = []; onmessage = ({ data }) => told.push(data)</script>"
    outer.route(address, lambda route: route.fulfill(content_type="text/html", body=listen + frame))
    outer.goto(address)
    inner = outer.frame_locator("iframe")
    inner.locator(".attention[data-rev]").wait_for()
    inner.get_by_role("button", name="Layer 1, head 1", exact=True).click()
    outer.frames[1].wait_for_function("location.search.includes('head=1')")
    outer.frames[1].evaluate("viz.painted()")
    told = [one["queryString"] for one in outer.evaluate("told") if "queryString" in one]
    outer.close()
    if told:
        assert parse_qs(told[-1]) == {
            "model": ["tiny"], "site": ["decoder.1.self"], "head": ["1"],
        }  # fmt: skip
    return bool(told)
