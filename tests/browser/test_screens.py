"""The page on four screens, before its scripts run, and the ways from the first tab."""

import pytest
from kit.visitors import MODELS
from playwright.sync_api import Page, TimeoutError, expect

from tools.chromium import LAYOUT_SHIFT

ANSWERS = {  # the tab that each question opens
    "Why not the future?": "Masks",
    "Without positions?": "Positions",
    "Why this word, and not another?": "Prediction",
    "Watch a head form": "Learn",
}


def test_questions_and_all_tools_lead_to_the_tabs(visit):
    page = visit(tab="Journey").page
    tabs = page.locator("#right [role=tab]:visible")
    expect(tabs).to_have_count(0)
    for question, tab in ANSWERS.items():
        page.get_by_role("button", name=question).press("Enter")
        expect(page.get_by_role("tab", name=tab, exact=True, selected=True)).to_be_visible()
        expect(page.locator(":focus")).to_be_visible()
        page.get_by_role("tab", name="Journey", exact=True).click()
    page.get_by_role("button", name="All tools…").click()
    expect(tabs).to_have_count(8)
    page.get_by_role("button", name="All tools…").click()
    expect(tabs).to_have_count(0)


SCREENS = {
    "desk at 200 %": (720, 450),
    "tablet": (1024, 768),
    "desk": (1440, 900),
    "phone": (390, 844),
}
# Texts that do not fit into their button or tab. Suggestions are whole texts and end in "…"; of
# Gradio's headings the rotated arrow sticks out.
CUT = """() => [...document.querySelectorAll("button, [role=tab], select, summary")]
    .filter(one => one.checkVisibility({ visibilityProperty: true }) && one.innerText.trim()
        && !one.closest("#chips, .label-wrap, .visually-hidden, .picture-of, .tokens")
        && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== "inline")
    .map(one => `${one.className}: ${one.innerText}`)"""
# The page clips what is wider: the document itself never is.
WIDER = """Math.max(...["html", ".gradio-container"].map(name => {
    const box = document.querySelector(name); return box.scrollWidth - box.clientWidth; }))"""
# Of lines between tokens: labels that stand out of their picture.
LABELS_BEYOND = """() => { const { left, right } = document.querySelector(".lines .main-svg")
        .getBoundingClientRect();
    return [...document.querySelectorAll(".lines .main-svg text")].filter(one => {
        const box = one.getBoundingClientRect();
        return box.left < left || box.right > right;
    }).map(one => one.textContent); }"""
BOTTOM = "([s]) => document.querySelector(s).getBoundingClientRect().bottom"


def test_nothing_is_wider_than_the_screen_or_cut_and_no_tab_is_hidden(visit):
    """One page in German, whose words are long: each size on each tab, and then projected."""
    _, height = SCREENS["desk"]
    opened = visit(language="de", tab="Journey")
    page = opened.page
    for part in ("#top", "#generate", "#tokens", ".next-words ul", ".journey .picture-of"):
        page.locator(part).first.wait_for()
        assert 0 < page.evaluate(BOTTOM, [part]) <= height, part
    assert page.evaluate(BOTTOM, ["#top"]) < 60  # one line
    page.locator(".all-tools").click()
    all_fits(page, SCREENS)
    page.evaluate("scrollBy(0, document.querySelector('#right').getBoundingClientRect().top - 600)")
    page.locator("#right [role=tab]:visible").first.click()  # a press leads down to what it shows
    page.wait_for_function(
        "document.querySelector('#right').getBoundingClientRect().top <= innerHeight / 2"
    )
    page.set_viewport_size({"width": 1280, "height": 720})
    opened.go("projector=1&tab=journey")
    page.locator(".next-words .without").first.wait_for(state="attached")  # its rows are the widest
    all_fits(page, {"projector": (1280, 720)})


def all_fits(page: Page, screens: dict[str, tuple[int, int]]) -> None:
    """On each tab, on each screen; the last one's window stays."""
    for place in range(8):
        for screen, (width, height) in screens.items():
            page.set_viewport_size({"width": width, "height": height})
            tabs = page.locator("#right [role=tab]:visible")
            expect(tabs).to_have_count(8)
            tabs.nth(place).click()
            expect(
                page.locator(".tabitem:visible :is([data-rev], .section)").first
            ).to_be_attached()
            try:
                page.wait_for_function(f"{WIDER} <= 0 && !({CUT})().length", timeout=10_000)
            except TimeoutError:
                found = page.evaluate(WIDER), page.evaluate(CUT)
                pytest.fail(f"tab {place}, {screen}: {found}")


# Of the open tab: its parts are painted as they should be now.
PAINTED = """() => { const [tab] = [...document.querySelectorAll(".tabitem")].filter(
        one => one.checkVisibility());
    const parts = [...tab?.querySelectorAll("[data-rev], [aria-busy]") ?? []].filter(
        one => one.checkVisibility());
    return parts.length && !parts.some(one => one.ariaBusy); }"""
TALLEST = 1200  # px on a desk, before a section is opened


def test_no_tab_of_a_model_is_too_tall(visit, address):
    opened = visit(address, tab="Journey")
    page = opened.page
    page.set_viewport_size({"width": 1440, "height": 900})
    for name in MODELS:
        for tab in ("attention", "masks", "positions", "prediction", "what-if", "learn", "model"):
            opened.go(f"model={name}&tab={tab}")
            page.wait_for_function(PAINTED)
            page.evaluate("viz.nextPaint()")
            assert page.evaluate("document.documentElement.scrollHeight") <= TALLEST, (name, tab)
            if tab == "masks":
                words = page.locator(".future .wide")  # none is cut
                assert words.evaluate("box => box.scrollWidth <= box.clientWidth"), name
    # Projected, a tab's picture and findings are in the window, whole.
    page.set_viewport_size({"width": 1280, "height": 720})
    lowest = {"attention": ".large .main-svg", "what-if": ".what-card:last-child"}
    learned = [("learn", ".learn-ask"), ("learn", ".learn-curves .main-svg")]
    for tab, last in [*lowest.items(), *learned]:
        opened.go(f"model=stories&tab={tab}&projector=1")
        page.wait_for_function(PAINTED)
        expect(page.locator(last).first).to_be_attached()
        assert page.evaluate(BOTTOM, [last]) <= 720, tab
    opened.go("model=translate-en-fr&tab=attention&projector=1")
    page.wait_for_function(PAINTED)
    page.locator(".lines .main-svg text").first.wait_for()
    assert page.evaluate(LABELS_BEYOND) == []


PAGE_JS = "**/server/static/page.js"
PLOTLY_JS = "**/plotly-cartesian.min.js"
GRADIO_JS = "**/assets/index-*.js"


@pytest.fixture
def held(memory):
    """A phone's page, and a function that holds back what it asks for by an address; it returns
    one that lets it go."""
    page = memory(viewport={"width": 390, "height": 844}).new_page()
    page.add_init_script(LAYOUT_SHIFT)

    def hold(address):
        routes = []
        page.route(address, lambda route: routes.append(route))

        def let_go():
            while not routes:
                page.wait_for_timeout(20)
            routes[0].continue_()

        return let_go

    yield page, hold
    page.context.close()


def test_the_story_is_told_and_used_before_gradio_has_come(held, server):
    page, hold = held
    scripts, gradio = hold(PAGE_JS), hold(GRADIO_JS)
    page.goto(server.url, wait_until="commit")
    look = page.locator("#first-look")
    expect(look.locator("[role=status]")).to_have_text("The controls are being loaded.")
    expect(look).to_contain_text("Once upon a time")
    picture = look.locator("img")
    expect(picture).to_be_in_viewport()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 10
    scripts()
    expect(look.locator(".next-word")).to_have_count(5)
    expect(look.locator(".head-card li").first).not_to_be_empty()
    page.locator(".one-layer .head:not([aria-pressed=true])").first.click()
    chosen = look.locator(".one-layer .head[aria-pressed=true]").get_attribute("aria-label")
    page.get_by_role("button", name="Without positions?").click()  # needs a tab of Gradio's
    expect(look).to_be_visible()
    gradio()
    expect(look).to_be_hidden()
    expect(page.locator(".order")).to_be_in_viewport()  # what was pressed
    page.get_by_role("tab", name="Journey").click()
    shown = page.locator("gradio-app .one-layer .head[aria-pressed=true]")
    expect(shown).to_have_attribute("aria-label", chosen)


def test_a_phones_link_to_the_journey_begins_with_its_text(held, server):
    page, _ = held
    page.goto(f"{server.url}#model=stories&tab=journey")
    expect(page.locator("#first-look")).to_be_hidden()
    page.locator(".head-card li").first.wait_for()
    page.wait_for_function("() => viz.run && !viz.isOpening() && !viz.isLeading")
    expect(page.locator(".text-tokens:visible")).to_be_in_viewport()


def test_a_link_to_a_text_is_opened_before_gradio_has_come(held, server):
    page, hold = held
    gradio = hold(GRADIO_JS)
    page.add_init_script("""document.addEventListener("DOMContentLoaded", () => {
        const look = () => {
            const text = document.querySelector(".text-tokens");
            if (text?.checkVisibility() && text.textContent.includes("Once")) window.flashed = true;
            requestAnimationFrame(look);
        };
        look();
    });""")
    page.goto(f"{server.url}#text=The+fox&method=greedy&max_new_tokens=4", wait_until="commit")
    text = page.locator("#first-look .text-tokens")
    expect(text).to_contain_text("fox")
    expect(page.locator("#first-look .head-card li").first).not_to_be_empty()
    gradio()
    expect(page.locator("#first-look")).to_be_hidden()
    expect(page.locator("gradio-app .text-tokens")).to_contain_text("fox")
    expect(page.locator("#text textarea")).to_have_value("The fox")
    assert not page.evaluate("window.flashed")


def test_a_large_head_is_the_small_one_until_plotly_has_come(held, server):
    page, hold = held
    hold(PLOTLY_JS)  # never let go
    page.goto(server.url)
    look = page.locator("#first-look")
    expect(look).to_be_hidden()
    assert page.evaluate("layoutShift") <= 0.05
    page.locator(".enlarge").click()
    enlarged = page.locator(".large-box .first-head")
    expect(enlarged).to_be_visible()
    box = enlarged.bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) > 200
    pixels = enlarged.evaluate("canvas => canvas.toDataURL()")
    page.locator(".one-layer .head:not([aria-pressed=true])").first.click()
    assert enlarged.evaluate("canvas => canvas.toDataURL()") != pixels
    page.get_by_role("button", name="Without positions?").click()
    expect(look).to_be_hidden()  # it does not come back where the journey is left
    page.wait_for_function(  # a question leads down to its answer
        "document.querySelector('#right').getBoundingClientRect().top <= innerHeight / 2"
    )


def test_a_link_never_flashes_the_stored_example(held, server):
    page, hold = held
    let_go = hold(PAGE_JS)
    page.goto(f"{server.url}#tab=masks", wait_until="commit")
    look = page.locator("#first-look")
    expect(look.locator("[role=status]")).to_be_visible()
    expect(look.locator("img").first).to_be_hidden()  # of the stored example
    expect(page.locator("gradio-app")).to_be_hidden()
    let_go()
    expect(look).to_be_hidden(timeout=10_000)  # not when its 20 s are over
    expect(page.get_by_role("tab", name="Masks")).to_have_attribute("aria-selected", "true")
    page.wait_for_timeout(1000)
    assert page.evaluate("layoutShift") <= 0.05
