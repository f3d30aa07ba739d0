"""A slow network: responses come late, and in another order than they were asked for."""

import re
from collections.abc import Callable, Iterator

import pytest
from kit.browser import Visit, held_back
from playwright.sync_api import Page, expect

SOON_MS = 500  # what a wrong press would need to be seen


@pytest.fixture
def bundled(door: Visit) -> Iterator[Visit]:
    """The page as it opens; nothing is held back any more afterwards."""
    door.go("model=stories&tab=journey")
    door.wait_drawn(".journey")
    yield door
    door.page.unroute_all(behavior="ignoreErrors")


def model_late(page: Page) -> Callable[[], None]:
    """Choose fill-in; its example comes when the returned function is called."""
    example = held_back(page, "/examples")
    with page.expect_request(re.compile("/examples")):
        page.locator("[data-model=fill-in]").click()
    return example


def test_the_text_typed_while_a_model_loads_is_read_by_it(bundled):
    page, box, typed = bundled.page, bundled.text_box(), "The [MASK] is late."
    example = model_late(page)
    box.fill(typed)
    example()
    bundled.wait_for_link()
    expect(box).to_have_value(typed)
    assert page.evaluate("viz.run.text") != typed

    page.locator("[data-model=stories]").click()
    page.wait_for_function("viz.run.model === 'stories' && !viz.isOpening()")
    example = model_late(page)
    bundled.enter("A [MASK] ran.")
    page.wait_for_timeout(SOON_MS)
    example()
    page.wait_for_function("viz.run.text === 'A [MASK] ran.'")
    assert page.evaluate("viz.run.model") == "fill-in"


def test_a_link_that_is_still_opening_ends_no_later_press(bundled):
    page = bundled.page
    lines = held_back(page, "/batches")
    with page.expect_request(re.compile("/batches")):
        page.evaluate("location.hash = 'model=stories&lines=a%0Ab&text=One+day'")
    page.locator(".switch-off").click()
    page.wait_for_function("viz.run.interventions.length === 1")
    lines()
    page.wait_for_timeout(SOON_MS)
    assert page.evaluate("viz.run.interventions.length") == 1
    bundled.wait_for_address("interventions=")


def test_a_link_ends_the_batch_that_was_asked_for_before(bundled):
    page = bundled.page
    bundled.tab("Attention")
    bundled.tab("Masks")
    page.locator("#lines textarea").fill("a\nb b")
    held_back(page, "/batches")
    with page.expect_request(re.compile("/batches")):
        page.locator("#show-masks").click()
    with page.expect_event("requestfailed", lambda one: "/batches" in one.url, timeout=9000):
        page.evaluate("location.hash = 'model=fill-in'")


def test_the_lesson_that_was_chosen_last_opens(bundled):
    page, lessons = bundled.page, bundled.page.locator(".lesson")
    page.locator(".lessons-button").click()
    lessons.first.wait_for()
    titles = lessons.all_inner_texts()
    first = held_back(page, "/lesson?")
    with page.expect_request(re.compile(r"/lesson\?")):
        lessons.nth(0).click()
    lessons.nth(1).click()
    over = page.locator(".card-over")
    expect(over).to_contain_text(titles[1])
    first()
    bundled.wait_for_link()
    expect(over).to_contain_text(titles[1])


def test_what_the_last_text_shows_changes_nothing_in_the_next(bundled):
    page = bundled.page
    bundled.tab("Attention")
    bundled.generate("Lily saw the little dog and the little dog saw the little cat")
    bundled.tab("Prediction")
    bundled.wait_drawn(".surprisal-box")
    for late in ("/surprisal?", "/journey?"):
        held_back(page, late)
    with page.expect_request(re.compile(r"/surprisal\?")):
        bundled.enter("Tom ran")
    picture = page.locator("[data-picture=surprisal]")
    width, height = picture.evaluate("one => [one.clientWidth, one.clientHeight]")
    picture.click(position={"x": width - 40, "y": height / 3})
    run = bundled.shown_run()
    page.locator(".next-word:enabled").first.click()
    page.wait_for_timeout(SOON_MS)
    assert page.evaluate("viz.query") is None
    assert bundled.shown_run() == run


def test_a_map_of_the_last_text_is_not_shown_for_the_next(bundled):
    page, title = bundled.page, bundled.page.locator(".patch-title")
    bundled.tab("What if?")
    bundled.section("patching")
    page.locator(".patch-text").fill("Tom saw a dog.")
    page.locator(".show-map").click()
    title.wait_for()
    bundled.enter("Tom saw a red ball")
    expect(title).to_have_count(0)
    page.locator(".patch-text").fill("Tom saw a blue ball")
    shown = held_back(page, "/patching")
    with page.expect_request(re.compile("/patching")):
        page.locator(".show-map").click()
    page.wait_for_timeout(SOON_MS)
    expect(title).to_have_count(0)
    shown()
    title.wait_for()


def test_a_late_answer_of_learn_takes_nothing_back(bundled):
    page, box = bundled.page, bundled.page.locator(".learn-question")
    bundled.tab("Learn")
    bundled.wait_drawn(".learn")
    old = box.input_value()
    said = held_back(page, "/learned")
    with page.expect_request(re.compile("/learned")):
        box.fill(old[1:] + old[0])
        box.press("Enter")
    box.press("End")
    box.press_sequentially("b")
    said()
    page.wait_for_timeout(SOON_MS)
    expect(box).to_have_value(old[1:] + old[0] + "b")

    page.locator(".learn-own summary").click()
    begun = held_back(page, "/train?")
    with page.expect_request(re.compile(r"/train\?")):
        page.locator(".train").click()
    page.locator(".learn-controls select").first.select_option(label="Reverse")
    page.wait_for_selector(".learn[data-id=recorded-reverse]")
    begun()
    page.wait_for_timeout(SOON_MS)
    expect(page.locator(".learn")).to_have_attribute("data-id", "recorded-reverse")

    adopted = held_back(page, "/adopt")
    with page.expect_request(re.compile("/adopt")):
        page.locator(".open-network").click()
    bundled.tab("Masks")
    adopted()
    page.wait_for_timeout(SOON_MS)
    assert page.evaluate("viz.run.model") == "stories"
