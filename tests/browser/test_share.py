"""The page before a class: a code for other devices, a presenter's keys, inside a course's page."""

import io

import zxingcpp
from kit.browser import PAGE_MODULES, WAIT_MS, Visit
from kit.windows import PUBLIC
from PIL import Image
from playwright.sync_api import expect


def test_the_code_opens_the_current_page_when_scanned(elsewhere, server):
    context = elsewhere.new_context(color_scheme="dark", viewport={"width": 1280, "height": 720})
    context.set_default_timeout(WAIT_MS)
    context.add_init_script(path=PAGE_MODULES)
    page = context.new_page()
    page.goto(server.url.replace("127.0.0.1", PUBLIC) + "#tab=attention&head=2&projector=1")
    shown = Visit(page)
    shown.wait_for_link()
    shown.menu()
    page.locator(".show-code").click()
    window = page.locator(".code-window[data-rev]")
    (found,) = zxingcpp.read_barcodes(Image.open(io.BytesIO(window.screenshot())))
    address = str(found.text)
    assert address.startswith(f"http://{PUBLIC}:")
    expect(page.locator(".code-address")).to_have_text(address.split("#")[0])
    box = page.locator(".code-picture").bounding_box() or {}
    assert min(box["width"], box["height"]) > 600
    page.keyboard.press("Escape")
    expect(window).to_be_hidden()
    run = shown.shown_run()
    page.goto("about:blank")
    page.goto(address)
    Visit(page).wait_for_link()
    assert page.evaluate("[viz.run.run, viz.head.head]") == [run, 2]
    assert not page.evaluate("viz.projector")  # a phone is none
    context.close()


def test_a_local_page_explains_how_to_serve_others(still):
    still.menu()
    still.page.locator(".show-code").click()
    expect(still.page.locator(".code-says")).to_contain_text("python app.py --host 0.0.0.0")
    expect(still.page.locator(".code-picture")).to_be_hidden()
    still.page.locator(".code-close").press("Enter")
    expect(still.page.locator(".menu-button")).to_be_focused()


def test_a_presenters_keys_leaf_through_the_cards(still):
    page = still
    page.go("model=stories&projector=1&tour=1")
    card = page.page.locator("#tour-card .card")
    page.page.evaluate("document.activeElement.blur()")
    for key, place in (
        ("PageDown", "1"), ("ArrowDown", "2"), ("PageUp", "1"), ("ArrowLeft", "0"), ("PageUp", "0"),
    ):  # fmt: skip
        page.page.keyboard.press(key)
        expect(card).to_have_attribute("data-place", place)
        page.wait_for_link()
    page.menu()
    page.page.locator(".projector-button").focus()
    page.page.keyboard.press("ArrowRight")  # the button's own
    page.page.keyboard.press("PageDown")
    expect(card).to_have_attribute("data-place", "1")
    page.wait_for_link()
    page.page.locator(".projector-button").click()
    page.page.keyboard.press("PageDown")  # the window scrolls
    page.page.evaluate("viz.nextPaint()")
    expect(card).to_have_attribute("data-place", "1")


def test_a_courses_page_shows_one_view_and_the_way_to_the_whole_page(elsewhere, server):
    """At an address that the page's server allows to show it, and at one that it does not."""
    page = elsewhere.new_page(permissions=["local-network-access"])
    page.set_default_timeout(WAIT_MS)
    frame = f'<iframe src="{server.url}?embed#tab=masks" width=900 height=600>'
    listens = 'told = []; onmessage = it => "hash" in Object(it.data) && told.push(it)'
    course = f"<!doctype html><script>{listens}</script>{frame}"
    page.route("**/course", lambda one: one.fulfill(content_type="text/html", body=course))
    page.goto("http://127.0.0.1:9/course")
    frame = page.frame_locator("iframe")
    expect(frame.locator(".masks[data-rev]")).to_be_visible()
    for part in ("#top", "#right [role=tab]", "#text", "#settings", "#tokens"):
        expect(frame.locator(part).first).to_be_hidden()
    inside = page.frames[1]
    frame.locator(".sentence").nth(1).click()
    inside.wait_for_function("() => location.hash.includes('tab=masks&row=1')")
    assert inside.evaluate("location.search") == "?embed"
    whole = frame.get_by_role("link", name="Open the whole page")
    expect(whole).to_have_attribute("target", "_blank")
    whole.focus()
    address = inside.evaluate("location.hash")
    assert whole.evaluate("link => link.href") == server.url + address
    assert page.evaluate("told.length") == 0  # only a Space's outer page gets the address
    page.goto(f"http://{PUBLIC}/course")
    page.frames[1].wait_for_url("chrome-error://**")
    page.close()
