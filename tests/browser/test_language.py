"""The page and the API in another language, and words explained."""

from __future__ import annotations

import re

import httpx
from playwright.sync_api import Request, expect
from visit import OPEN


def test_the_menu_brings_the_page_in_another_language_with_all_that_stands_on_it(visit):
    page = visit(own={})
    visits: set[str] = set()  # that the server is told of, as long as the page lives

    def note(one: Request) -> None:
        visits.update(re.findall(r'session_hash["=:]+(\w+)', f"{one.url} {one.post_data}"))

    page.page.on("request", note)
    page.set_length(3)
    page.generate("Once there was")
    page.press(page.head(1, 2), draws=".attention")
    page.page.locator("#text textarea").fill("not yet sent")
    page.tab("Masks")
    page.wait_for_link()
    run = page.page.evaluate("viz.run.ids")
    page.menu()
    menu = page.page.locator(".language-menu")
    assert menu.locator("option").all_inner_texts() == ["English", "Esperanto"]
    menu.select_option("eo")
    page.page.wait_for_selector("#generate:has-text('⟦')")
    page.page.wait_for_function(OPEN)
    page.page.wait_for_function("ids => String(viz.run.ids) === String(ids)", arg=run)
    expect(page.page.locator("#text textarea")).to_have_value("not yet sent")
    assert page.page.evaluate("[viz.head.layer, viz.head.head]") == [1, 2]
    assert page.page.locator("#right [role=tab][aria-selected=true]").inner_text() == "⟦Masks⟧"
    assert "lang" not in page.page.url
    page.page.locator("#generate").click()
    page.page.wait_for_function("viz.run.text === 'not yet sent'")
    assert len(visits) == 1, "the visit goes on"
    again = page.page.context.new_page()  # the next visit in this browser
    again.goto(page.page.url.partition("#")[0])
    again.wait_for_selector("#generate:has-text('⟦')")
    again.locator(".menu-button").click()
    again.locator(".language-menu").select_option("en")
    again.wait_for_selector("#generate:not(:has-text('⟦'))")


def test_an_error_of_the_api_comes_in_the_language_that_was_asked_for(server):
    language = {"Accept-Language": "eo-CH, en;q=0.5"}
    with httpx.Client(base_url=server.url, headers=language) as client:
        body = {"text": " ", "model": "tiny"}
        event = client.post("gradio_api/call/v2/generate", json=body).json()["event_id"]
        said = client.get(f"gradio_api/call/v2/generate/{event}").text
    said = re.sub(r"\\u(....)", lambda found: chr(int(found[1], 16)), said)
    assert "'⟦the text is empty: write something in it first⟧'" in said


def test_a_word_of_the_field_is_explained_on_hover_focus_and_touch(visit):
    page = visit(own={"has_touch": True}).page
    tip, mark = page.locator("[role=tooltip]"), page.locator("#right .term:visible").first
    mark.hover()
    expect(tip).to_contain_text(".")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    mark.focus()
    expect(tip).to_contain_text(".")
    expect(mark).to_have_attribute("aria-describedby", str(tip.get_attribute("id")))
    mark.blur()
    expect(tip).to_be_hidden()
    mark.tap()
    expect(tip).to_contain_text(".")
