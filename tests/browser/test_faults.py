"""A server that is slow, full, or gone: the page says so, keeps the text, and comes back."""

import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest
from kit.browser import WAIT_MS, Visit
from kit.serving import Server
from playwright.sync_api import Page, Route, expect

from transformer.server.http.errors import BUSY, ENDING
from transformer.server.http.limits import AT_ONCE

IDLE_WITHIN_S = 60.0
LEFT_WITHIN_S = 10.0  # half of what 200 slow tokens take


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose tokens take their time."""
    with Server(tmp_path_factory.mktemp("slow") / "log", ["stories"], "slow_tokens") as server:
        yield server


def wait_for_running(server: Server, count: int, within_s: float = IDLE_WITHIN_S) -> None:
    """Wait until `count` requests are running."""
    give_up = time.monotonic() + within_s
    while (running := httpx.get(f"{server.url}health").json()["running"]) != count:
        assert time.monotonic() < give_up, f"{running} running, not {count}"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def page(opening: Callable[..., Any], slow: Server) -> Iterator[Visit]:
    """One page for all of these; console errors about the lost server are expected."""
    with opening(may_complain=True) as open_page:
        yield open_page(f"{slow.url}?engine=server")  # it is what is watched


def wait_for_status(page: Page, part: str) -> None:
    expect(page.locator("#status")).to_contain_text(part, use_inner_text=True)


def test_a_dead_server_is_reported_and_everything_returns_with_it(page, slow):
    page.set_length(6)
    page.generate("The little dog")
    page.press(page.head(2, 3), draws=".attention")
    page.tab("Prediction")
    page.wait_drawn(".prediction")
    page.wait_for_address("text=The+little+dog", "&site=decoder.2.self&head=3", "tab=prediction")
    labels, numbers = page.labels(), page.page.evaluate("viz.run.probabilities")
    wanted = {
        "temperature": "0.35",
        "top_k": "7",
        "top_p": "0.9",
        "max_new_tokens": "150",
        "seed": "11",
    }
    for name, value in wanted.items():
        page.page.locator(f".setting-{name} input[type=number]").fill(value)
    page.page.get_by_role("radio", name="greedy: always the likeliest").check()
    wanted["temperature"] = "0"  # which is greedy
    page.enter("Typed, not finished")
    page.page.wait_for_selector("#tokens [data-state=running]")
    text = page.text_box()
    text.fill("Typed, not run")
    slow.process.kill()
    slow.process.wait(10)
    assert "connection to the server was lost" in page.wait_for_alert()
    expect(text).to_have_value("Typed, not run")
    slow.start()
    wait_for_status(page.page, "The server is back. Your text is kept")
    expect(text).to_have_value("Typed, not run")
    expect(page.tokens).to_have_text(labels)
    assert page.page.evaluate("viz.run.probabilities") == numbers
    assert page.page.evaluate("[viz.head.layer, viz.head.head]") == [2, 3]
    tab = page.page.get_by_role("tab", name="Prediction", exact=True)
    expect(tab).to_have_attribute("aria-selected", "true")
    for name, value in wanted.items():
        expect(page.page.locator(f".setting-{name} input[type=number]")).to_have_value(value)
    expect(page.page.get_by_role("radio", name="greedy: always the likeliest")).to_be_checked()
    it_generates_again(page)
    # A server that is shutting down says so.
    page.set_length(200)
    page.enter("The little dog")
    wait_for_running(slow, 1)
    slow.process.terminate()
    assert page.wait_for_alert() == str(ENDING)
    assert slow.process.wait(60) == 128 + signal.SIGTERM
    expect(text).to_have_value("The little dog")
    slow.start()
    it_generates_again(page)


def it_generates_again(page: Visit) -> None:
    page.set_length(3)
    old = page.page.evaluate("viz.run.run")
    page.page.locator("#generate").click()
    wait_for_status(page.page, "3 tokens in")
    page.page.wait_for_function("old => viz.run.run !== old", arg=old)
    expect(page.tokens.nth(1)).to_have_text(re.compile("^T"))


FOLLOW = """() => { window.told = [];
    const status = document.querySelector("#status");
    new MutationObserver(() => told.at(-1) === status.innerText || told.push(status.innerText))
        .observe(status, { subtree: true, childList: true, characterData: true }); }"""


def test_the_queue_shows_how_many_are_before_a_visitor(page, slow):
    page.page.evaluate(FOLLOW)
    page.set_length(1)
    # Each shorter than what would make it step aside.
    asked = {"model": "stories", "text": "The dog", "max_new_tokens": 7}

    def ask(place: int) -> None:
        named = {"x-session": f"before{place}"}
        httpx.post(f"{slow.url}resources/runs", json=asked, headers=named, timeout=60)

    with ThreadPoolExecutor(AT_ONCE + 6) as pool:
        list(map(partial(pool.submit, ask), range(AT_ONCE + 6)))
        wait_for_running(slow, AT_ONCE)
        resources = httpx.get(f"{slow.url}health").json()["resources"]
        assert resources["model"]["waiting"] > 0  # answered though the network is busy
        page.enter("Hello")
        wait_for_status(page.page, "1 token in")
    messages = [text for text in page.page.evaluate("told") if "before yours" in text]
    before = [int(text.split()[0]) for text in messages]
    assert len(messages) > 1
    assert before == sorted(before, reverse=True)
    assert before[-1] >= AT_ONCE
    assert messages[0] == f"{before[0]} requests before yours …"


def refusing(page: Page, address: str, sentence: str) -> None:
    page.route(address, lambda route: route.fulfill(status=503, json={"detail": sentence}))


def test_a_refusal_is_shown_and_the_text_kept(page):
    page.tab("Attention")
    refusing(page.page, "**/resources/heatmap?*", str(ENDING))
    page.head(1, 1).click()
    assert page.wait_for_alert() == str(ENDING)
    expect(page.page.locator("#attention .first-head")).to_be_visible()  # no other head's cells
    page.page.unroute_all()
    page.press(page.head(0, 1), draws=".attention")
    expect(page.page.get_by_role("alert")).to_be_hidden()
    refusing(page.page, "**/resources/runs*", str(BUSY))
    page.enter("My own words")
    expect(page.page.get_by_role("alert")).to_have_text(str(BUSY))
    expect(page.page.locator("#text textarea")).to_have_value("My own words")
    page.page.unroute_all()
    page.set_length(1)
    page.page.locator("#generate").click()
    wait_for_status(page.page, "1 token in")


def test_an_answered_press_is_not_asked_for_once_the_server_is_back(page):
    held: list[Route] = []
    page.page.route("**/ready", lambda route: held.append(route))
    page.page.route("**/resources/runs*", lambda route: route.abort())
    with page.page.expect_request("**/ready"):
        page.enter("The little dog")
    page.page.unroute("**/resources/runs*")
    page.set_length(1)
    page.page.locator("#generate").click()
    wait_for_status(page.page, "1 token in")
    held[0].continue_()
    page.page.wait_for_function("!viz.isLost")
    page.page.unroute_all()
    wait_for_status(page.page, "1 token in")


def test_a_refusal_after_progress_is_what_the_page_says(page):
    lines = (
        {"status": {"kind": "busy", "text": "1 token …"}, "running": True},
        {"detail": str(ENDING), "code": ENDING.code},
    )
    body = "".join(f"{json.dumps(line)}\n" for line in lines)
    answer = {"content_type": "application/x-ndjson", "body": body}
    page.page.route("**/resources/runs*", lambda route: route.fulfill(**answer))
    page.enter("The little dog")
    expect(page.page.get_by_role("alert")).to_have_text(str(ENDING))
    page.page.unroute_all()
    page.set_length(1)
    page.page.locator("#generate").click()
    wait_for_status(page.page, "1 token in")


def test_a_hanging_server_is_reported_and_a_leaving_page_says_so(visit):
    page = visit(own={}).page
    with page.expect_request("**/leave") as request:
        page.evaluate("window.dispatchEvent(new Event('pagehide'))")
    assert request.value.method == "POST"
    assert len(request.value.headers["x-session"]) == 32
    page.clock.install()
    page.route("**/resources/runs*", lambda route: None)
    with page.expect_request("**/resources/runs*"):
        page.locator("#generate").click()
    page.clock.fast_forward(20_000)
    status = page.locator("#status")
    expect(status).not_to_contain_text("has not answered")
    page.clock.fast_forward(6_000)
    expect(status).to_contain_text("has not answered for a while")


def test_scripts_that_fail_to_load_are_reported(browser, slow):
    context = browser.new_context()
    context.set_default_timeout(WAIT_MS)
    context.route("**/server/static/page.js", lambda route: route.abort())
    opened = context.new_page()
    opened.goto(slow.url)
    problem = opened.locator("#status .problem")
    expect(problem).to_contain_text("A part of the page could not be loaded; reload the page.")
    expect(opened.locator("#first-look")).to_have_count(0)  # which would hide it
    expect(opened.locator("#generate")).to_be_visible()
    context.close()


def test_a_generation_ends_when_stopped_or_when_its_page_is_closed(page, slow):
    page.set_length(200)
    page.enter("Once upon a time")
    page.page.wait_for_selector("#tokens [data-state=running] .generated")
    page.page.locator("#stop").press("Enter")
    wait_for_status(page.page, "You stopped it.")
    expect(page.page.locator("#generate")).to_be_focused()
    written = page.page.locator("#tokens .generated")
    expect(written).not_to_have_count(0)
    expect(written).not_to_have_count(200)
    wait_for_running(slow, 0, LEFT_WITHIN_S)
    page.enter("The dog")
    page.page.wait_for_selector("#tokens [data-state=running]")
    wait_for_running(slow, 1)
    page.page.close()
    wait_for_running(slow, 0, LEFT_WITHIN_S)
