"""What the page is served with stands until its own pictures do, and never longer."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

PAGE_JS = "**/ui/static/page.js"
PLOTLY_JS = "**/plotly-cartesian.min.js"

pytestmark = pytest.mark.browser


def test_a_picture_stands_before_any_script_and_gives_way_to_the_pages_own(memory, server):
    page = memory(viewport={"width": 390, "height": 844}).new_page()
    held = []
    page.route(PAGE_JS, lambda route: held.append(route))
    page.route(PLOTLY_JS, lambda route: None)  # never answered
    page.goto(server.url, wait_until="commit")
    look = page.locator("#first-look")
    expect(look.locator("[role=status]")).to_have_text("The controls are being loaded.")
    for picture in look.locator("img").all():
        expect(picture).to_be_in_viewport()
        assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 10
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    # The heads can be used, and so can the large one: a canvas stands there until Plotly has come.
    expect(page.locator(".one-layer .head").first).to_be_attached()
    expect(look).to_be_hidden()
    cells = page.locator(".large-box canvas.cells")
    box = cells.bounding_box()
    assert box is not None
    cells.click(position={"x": box["width"] / 4, "y": box["height"] / 2})
    expect(page.locator(".readers li")).to_have_count(5)
    expect(page.locator(".band.cell")).to_be_visible()
    page.get_by_role("tab", name="What if?", exact=True).click()
    expect(look).to_be_hidden()  # it does not come back where the journey is left
    page.context.close()


def test_it_does_not_hide_what_a_link_shows(memory, server):
    page = memory().new_page()
    page.route(PAGE_JS, lambda route: route.abort())
    for address in ("#tab=masks", "?embed=attention"):
        page.goto(f"{server.url}{address}", wait_until="commit")
        expect(page.locator("gradio-app")).to_be_attached()
        expect(page.locator("#first-look")).to_have_count(0)
        page.goto("about:blank")
    page.context.close()
