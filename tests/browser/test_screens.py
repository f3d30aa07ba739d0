"""The page on five screens, and the copy of the journey above each tab."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from serving import Server
from visit import Open

MARKED = {  # what each tab is about
    "Attention": "heads",
    "Masks": "mask",
    "Positions": "embedding",
    "Prediction": "next",
    "What if?": "altered",
    "Learn": "learned",
    "Model": "network",
}


@pytest.mark.parametrize("model", ["stories", "tiny-translator"])
def test_the_strip_above_a_tab_marks_where_it_stands_and_leads_on(
    visit: Open, server: Server, model: str
) -> None:
    page = visit(f"{server.url}?model={model}&tab=model", tab="Journey").page
    shown = page.locator(".strip:visible")
    expect(shown.locator("button")).to_have_count(8)
    for tab, part in MARKED.items():
        button = shown.locator(f"[data-part={part}]")
        button.focus()
        button.press("Enter")
        expect(page.get_by_role("tab", name=tab, exact=True)).to_have_attribute(
            "aria-selected", "true"
        )
        expect(shown.locator("[aria-current]")).to_have_attribute("data-part", part)
        height = shown.bounding_box()["height"]  # type: ignore[index]
        assert height <= 56, tab
    likeliest = page.evaluate("document.querySelector('.next-word bdi').textContent")
    expect(shown.locator("[data-part=next] bdi")).to_have_text(likeliest)
    shown.locator("[data-part=text]").click()
    expect(page.locator(".journey")).to_be_visible()
    expect(shown).to_have_count(0)


SCREENS = {
    "desk": (1440, 900, ""),
    "laptop": (1280, 720, ""),
    "projector": (1280, 720, "#projector=1"),
    "tablet": (1024, 768, ""),
    "phone": (390, 844, ""),
    "desk at 200 %": (720, 450, ""),
}
# Texts that do not fit into their button or tab. Suggestions are whole texts and end in "…"; of
# Gradio's headings the turned arrow stands out.
CUT = """() => [...document.querySelectorAll("button, [role=tab], select, summary")]
    .filter(one => one.checkVisibility({ visibilityProperty: true }) && one.innerText.trim()
        && !one.closest("#chips, .label-wrap, .visually-hidden, .picture-of, .tokens")
        && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== "inline")
    .map(one => `${one.className}: ${one.innerText}`)"""
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
BOTTOM = "([s]) => document.querySelector(s).getBoundingClientRect().bottom"


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("screen", SCREENS)
def test_nothing_is_wider_than_the_screen_or_cut_and_no_tab_is_hidden(
    visit: Open, server: Server, screen: str, language: str
) -> None:
    width, height, state = SCREENS[screen]
    address = server.url + state
    page = visit(address, width=width, height=height, language=language, tab="Journey").page
    assert page.locator("#right [role=tab]:visible").count() == 8
    for tab in page.locator("#right [role=tab]:visible").all():
        tab.click()
        expect(page.locator(".tabitem:visible [data-rev]").first).to_be_attached()
        assert page.evaluate(WIDER) <= 0, tab.inner_text()
        assert page.evaluate(CUT) == [], tab.inner_text()
    if screen == "phone":  # where a press leads down to what it shows
        page.evaluate(
            "scrollBy(0, document.querySelector('#right').getBoundingClientRect().top - 600)"
        )
        page.locator("#right [role=tab]:visible").first.click()
        page.wait_for_function(
            "document.querySelector('#right').getBoundingClientRect().top <= innerHeight / 2"
        )
    if screen != "desk":
        return
    page.locator("#right [role=tab]:visible").first.click()
    for part in ("#top", "#text", "#tokens", ".next-words ul", ".journey .picture-of"):
        page.locator(part).first.wait_for()  # the journey is made anew
        assert 0 < page.evaluate(BOTTOM, [part]) <= height, part
    assert page.evaluate(BOTTOM, ["#top"]) < 60  # one line
