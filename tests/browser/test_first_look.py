"""What the page is served with stands until its own pictures do, and never longer."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tools.chromium import LAYOUT_SHIFT

PAGE_JS = "**/ui/static/page.js"
PLOTLY_JS = "**/plotly-cartesian.min.js"


@pytest.fixture
def held(memory):
    """A page whose own script comes when it is let go."""
    page, routes = memory(viewport={"width": 390, "height": 844}).new_page(), []
    page.add_init_script(LAYOUT_SHIFT)
    page.route(PAGE_JS, lambda route: routes.append(route))

    def let_go():
        while not routes:
            page.wait_for_timeout(20)
        routes[0].continue_()

    yield page, let_go
    page.context.close()


def test_a_picture_stands_before_any_script_and_the_page_takes_its_place(held, server):
    page, let_go = held
    page.route(PLOTLY_JS, lambda route: None)  # never answered
    page.goto(server.url, wait_until="commit")
    look = page.locator("#first-look")
    expect(look.locator("[role=status]")).to_have_text("The controls are being loaded.")
    for picture in look.locator("img").all():
        expect(picture).to_be_in_viewport()
        assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 10
    let_go()
    # The heads can be used, and so can the large one: a canvas stands there until Plotly has come.
    expect(page.locator(".one-layer .head").first).to_be_attached()
    expect(look).to_be_hidden()
    cells = page.locator(".large-box canvas.cells")
    expect(cells).to_be_attached()
    assert page.evaluate("layoutShift") <= 0.1
    box = cells.bounding_box()
    assert box is not None
    cells.click(position={"x": box["width"] / 4, "y": box["height"] / 2})
    expect(page.locator(".readers li")).to_have_count(5)
    page.get_by_role("tab", name="What if?", exact=True).click()
    expect(look).to_be_hidden()  # it does not come back where the journey is left


def test_a_link_never_flashes_the_stored_example(held, server):
    page, let_go = held
    page.goto(f"{server.url}#tab=masks", wait_until="commit")
    look = page.locator("#first-look")
    expect(look.locator("[role=status]")).to_be_visible()
    expect(look.locator("img").first).to_be_hidden()  # of the stored example
    expect(page.locator("gradio-app")).to_be_hidden()
    let_go()
    expect(page.get_by_role("tab", name="Masks")).to_have_attribute("aria-selected", "true")
    expect(look).to_be_hidden()
