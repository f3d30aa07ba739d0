"""What a link may not do: cost a visitor who has none, tell others, run what it holds."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urldefrag, urlencode, urlparse

import pytest
from serving import Server
from visit import Visit

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]


def opened(visit: Open, address: str, **settings: Any) -> Visit:
    """The page of a link, once it shows what the link says."""
    page = visit(address, **settings)
    page.wait_for_link()
    return page


def test_who_only_looks_asks_nothing_copies_the_link_and_is_followed_by_a_space(
    visit: Open, server: Server
) -> None:
    # the last: an outer page elsewhere shows one of this machine
    permissions = ["clipboard-read", "clipboard-write", "local-network-access"]
    own = {"permissions": permissions, "viewport": {"width": 1440, "height": 900}}
    page = visit(own=own, tab="Journey")
    who_only_looks_asks_nothing_more_and_fills_no_history(page)
    the_outer_page_of_a_space_follows_and_no_other_is_told(page, server)
    the_link_is_copied_by_keyboard_or_stands_ready_to_be_copied(page)


def who_only_looks_asks_nothing_more_and_fills_no_history(page: Visit) -> None:
    asked: list[str] = []
    page.page.on("request", lambda request: asked.append(request.url))
    page.page.evaluate("viz.nextPaint()")
    assert urlparse(page.page.url)[4:] == ("", "")  # neither query nor fragment
    page.tab("Attention")
    page.wait_for_address("model=tiny")
    page.wait_drawn(".attention")
    entries = page.page.evaluate("history.length")
    for layer in (1, 0, 1):
        with page.drawn(".attention"):
            page.head(layer, 1).click()
    page.wait_for_address("model=tiny&site=decoder.1.self&head=1")
    with page.drawn(".attention"):
        page.head(0, 0).click()
    page.page.wait_for_function("location.hash === '#model=tiny'")
    assert page.page.evaluate("history.length") == entries
    assert not [url for url in asked if "queue/join" in url]


def the_link_is_copied_by_keyboard_or_stands_ready_to_be_copied(page: Visit) -> None:
    """Head 1 of layer 1 is shown."""
    page.page.bring_to_front()
    page.page.locator("#model input").focus()
    for _ in range(3):  # past Start here and Lessons, where there are any
        if page.page.evaluate("document.activeElement.className") != "menu-button":
            page.page.keyboard.press("Tab")
    page.page.keyboard.press("Enter")
    page.page.keyboard.press("Tab")
    assert page.page.evaluate("document.activeElement.textContent") == "Copy link"
    page.page.keyboard.press("Enter")
    expected = f"{page.page.url.split('#')[0]}#model=tiny&site=decoder.1.self&head=1"
    page.page.wait_for_selector(".share-says:has-text('Copied')")
    assert page.page.evaluate("navigator.clipboard.readText()") == expected
    assert page.page.locator(".share-address").is_hidden()
    # as where the page is served to a network without encryption
    page.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector(".share-says:has-text('Copy the link from here')")
    assert page.page.evaluate("getSelection().toString()") == expected
    assert page.page.locator(".share-address").input_value() == expected


def test_a_long_text_is_compressed_and_one_too_long_is_told_in_a_sentence(visit: Open) -> None:
    page = visit()
    page.set_length(2)
    page.generate("été déjà " * 220)
    address = page.wait_for_address("#z=")
    assert len(address) < 1_000
    other = opened(visit, address)
    assert other.labels() == page.labels()
    assert other.page.locator("#text textarea").input_value() == "été déjà " * 220
    assert other.page.url == address
    draw = random.Random(3)
    page.generate("".join(chr(draw.randrange(0x20000, 0x2A6D0)) for _ in range(1_900)))
    page.menu()
    page.page.get_by_role("button", name="Copy link").click()
    page.page.wait_for_selector(".share-says:has-text('more than 6,000 characters')")
    assert page.page.locator(".share-address").is_hidden()
    assert page.page.url == address


def test_a_hostile_link_is_text_and_sentences(visit: Open, server: Server) -> None:
    attack = "<img src=x onerror=alert(1)>${alert(2)}{{value}}"
    names = [
        "model", "method", "temperature", "taken", "alter", "tab", "site", "head", "token", "cell",
        "picture", "stage", "scale", "sort", "row", "dimensions", "constructor", "__proto__",
    ]  # fmt: skip
    state = dict.fromkeys(names, attack) | {"text": attack, "length": "3", "lines": attack}
    page = opened(visit, f"{server.url}#{urlencode(state)}")
    said = page.wait_for_alert()
    for name in ("model", "temperature", "taken", "constructor", "site", "tab", "picture", "cell"):
        assert f"link's {name}" in said or f"link's '{name}'" in said
    for tab in ("Masks", "Positions", "Prediction", "Attention"):
        page.tab(tab)
    page.wait_drawn(".attention")
    assert page.page.locator("img[src=x]").count() == 0
    assert page.page.locator("#text textarea").input_value() == attack
    page.page.evaluate("viz.nextPaint()")
    assert page.page.evaluate("({}).constructor === Object")


def test_a_link_that_cannot_be_read_leaves_the_page_as_it_is(visit: Open, server: Server) -> None:
    page = opened(visit, f"{server.url}#z=AAAA")
    assert "compressed part cannot be read" in page.wait_for_alert()
    page.set_length(2)
    page.generate("The dog")
    page.wait_for_address("model=tiny&text=The+dog")


def test_words_in_a_link_go_to_the_page_alone_and_are_not_logged(
    visit: Open, server: Server
) -> None:
    secret = "Xerxes"
    link = f"model=tiny&text={secret}&method=greedy&length=2"
    page = opened(visit, f"{server.url}?{link}")  # of before: its first request cannot be helped
    asked: list[str] = []
    page.page.on("request", lambda one: asked.append(urldefrag(one.url)[0] + str(one.headers)))
    page.wait_for_address(f"text={secret}")
    page.page.reload()
    page = Visit(page.page)
    page.wait_for_link()
    assert "".join(page.labels()).startswith(f"<|endoftext|>{secret[0]}")
    assert any(one.startswith(f"{server.url}{{") for one in asked)  # the page itself
    page.generate("The dog")
    with page.drawn(".attention"):
        page.head(1, 1).click()
    assert asked
    assert not [one for one in asked if secret in one]
    assert (
        page.page.evaluate("document.querySelector('meta[name=referrer]').content") == "no-referrer"
    )
    log = server.log.read_text(encoding="utf-8", errors="replace")
    assert secret not in log
    assert "Exception ignored" not in log  # as when a page's configuration cannot be copied


def the_outer_page_of_a_space_follows_and_no_other_is_told(page: Visit, server: Server) -> None:
    page.page.evaluate(
        "() => { window.told = []; window.onmessage = ({ data }) => told.push(data); }"
    )
    with page.drawn(".attention"):
        page.head(1, 1).click()
    page.wait_for_address("head=1")
    assert page.page.evaluate("told") == []
    expected = {"model": ["tiny"], "site": ["decoder.1.self"], "head": ["1"]}
    told = told_by_a_frame(page, "https://huggingface.co/spaces/a/b", server.url)
    assert parse_qs(told[-1]) == expected
    assert told_by_a_frame(page, f"{server.url}elsewhere", server.url) == []


def told_by_a_frame(page: Visit, address: str, framed: str) -> list[str]:
    """What a page that shows ours in a frame is told when a head is chosen: links, without #."""
    outer = page.page.context.new_page()
    frame = f"<iframe src='{framed}' width=1300 height=900></iframe>"
    listen = "<script>told = []; onmessage = ({ data }) => told.push(data)</script>"
    outer.route(address, lambda route: route.fulfill(content_type="text/html", body=listen + frame))
    outer.goto(address)
    inner = outer.frame_locator("iframe")
    inner.locator(".journey[data-rev]").wait_for()
    inner.get_by_role("tab", name="Attention").click()
    inner.locator(".attention[data-rev]").wait_for()
    inner.get_by_role("button", name="Layer 1, head 1", exact=True).click()
    outer.frames[1].wait_for_function("location.hash.includes('head=1')")
    outer.frames[1].evaluate("viz.nextPaint()")
    told = [one for one in outer.evaluate("told") if "queryString" in one]
    outer.close()
    assert all(one["queryString"] == "" for one in told)
    return [one["hash"].removeprefix("#") for one in told]
