"""A class: a teacher's projected page and two phones, each in a separate browser profile."""

import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zxingcpp
from kit import serving
from kit.browser import PAGE_MODULES, WAIT_MS, Visit, complaints, held_back
from kit.windows import PUBLIC
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

from transformer.lessons import all_lessons
from transformer.lessons.teacher import teacher_page
from transformer.messages import speaking


@pytest.fixture
def opened(elsewhere: Browser) -> Iterator[Callable[..., Page]]:
    """Opens a page in a new profile; afterwards none had an error or asked another host."""
    errors: list[str] = []
    contexts = []

    def new_page(**settings: Any) -> Page:
        context = elsewhere.new_context(**settings)
        contexts.append(context)
        context.set_default_timeout(WAIT_MS)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        return page

    asked: list[str] = []
    yield new_page
    for context in contexts:
        context.close()
    assert errors == []
    others = (f"http://{PUBLIC}:", "data:", "blob:")
    assert [url for url in asked if not url.startswith(others)] == []


def bars(teacher: Page) -> Any:
    return expect(teacher.locator(".class-bars li"))


def marks(teacher: Page, place: str, sign: str) -> list[str]:
    """What is counted on the picture."""
    signs = teacher.locator(place).evaluate_all(f"all => all.map({sign})")
    return sorted(one for one in signs if one[0].isdigit())


def move(page: Page, to: Locator) -> None:
    """Click it with the mouse, as a hand does."""
    to.scroll_into_view_if_needed()
    box = to.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
    page.mouse.down()
    page.mouse.up()


def test_the_teachers_page_of_the_route_fits_four_sheets(opened):
    page = opened()
    for language in ("en", "de", "fr"):  # German is the longest
        with speaking(language):
            page.set_content(teacher_page(all_lessons()["route"], "./"))
        sheets = re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True))
        assert 2 <= len(sheets) <= 4, language


def test_a_class_answers_a_step_of_a_lesson(opened):
    teacher = opened(viewport={"width": 1280, "height": 720})
    teacher.add_init_script(path=PAGE_MODULES)
    teacher.goto(serving.second().url.replace("127.0.0.1", PUBLIC) + "#projector=1")
    shown = Visit(teacher)
    teacher.get_by_role("button", name="Lessons", exact=True).click()
    teacher.get_by_role("button", name="Looking back").click()
    for title in ("A head", "A token", "A number"):
        expect(teacher.locator(".card-title")).to_have_text(title)
        shown.wait_for_link()
        if title != "A number":
            teacher.locator(".card-next").click()

    # the code leads a phone to the question; the address can be typed as well
    move(teacher, teacher.get_by_role("button", name="Let the class answer"))
    window = teacher.locator(".code-window[data-rev]")
    expect(teacher.locator(".code-picture")).to_be_visible()
    (found,) = zxingcpp.read_barcodes(Image.open(io.BytesIO(window.screenshot())))
    address = str(found.text)
    expect(teacher.locator(".code-address")).to_have_text(address)
    assert complaints(teacher, ".code-window") == []
    one = opened(viewport={"width": 390, "height": 780}, has_touch=True, color_scheme="dark")
    two = opened(viewport={"width": 390, "height": 780}, locale="fr")
    one.goto(address)
    code = address[-6:]
    two.goto(address.replace(code, code.lower()))
    expect(window.locator(".class-count")).to_have_text("Phones that have answered: 0 of 2.")
    teacher.keyboard.press("Escape")
    expect(teacher.locator(".class-room h3")).to_be_focused()

    # the guess, by touch and by keyboard; one is changed
    for phone in (one, two):
        expect(phone.get_by_role("group", name="How many keys are hidden?")).to_be_visible()
        assert complaints(phone, "html") == []
    one.get_by_role("radio", name="many").tap()
    two.get_by_role("radio", name="few").focus()
    two.keyboard.press("Space")
    bars(teacher).to_have_text(["few1", "many1"])
    two.keyboard.press("ArrowDown")
    bars(teacher).to_have_text(["few0", "many2"])
    expect(two.get_by_role("status")).to_have_text("Envoyé. Vous pouvez encore changer de réponse.")
    assert complaints(teacher, "#tour-card") == []
    teacher.get_by_role("button", name="Open the picture").press("Enter")
    expect(teacher.locator(".card-title")).to_be_focused()
    expect(teacher.locator(".card-guessed")).to_have_count(0)  # the class's guesses are its own

    # the task, answered right and wrong; then its answer
    hidden = teacher.evaluate("viz.run.labels.length") - 7  # from token 6
    for phone, number in ((one, hidden), (two, hidden + 1)):
        box = phone.get_by_role("textbox")
        box.fill(str(number))
        box.press("Enter")
    bars(teacher).to_have_text([f"{hidden}1", f"{hidden + 1}1"])
    expect(one.get_by_text("All later ones.")).to_have_count(0)
    teacher.get_by_role("button", name="Show me the answer").press("Enter")
    expect(teacher.locator(".class-code")).to_be_focused()
    bars(teacher).to_have_text([f"{hidden} ✓1", f"{hidden + 1}1"])
    expect(one.get_by_role("status")).to_have_text(f"Right. The answer is {hidden}.")
    expect(two.get_by_role("status")).to_contain_text("Pas encore.")
    for phone in (one, two):
        expect(phone.get_by_text("All later ones.")).to_be_visible()
        expect(phone.get_by_role("textbox")).to_be_disabled()
        assert complaints(phone, "html") == []

    # the phones follow to the next step, also of a page that was loaded again, and back
    one.route("**/class/asked*", lambda route: None, times=1)  # it sleeps, its connection is lost
    teacher.keyboard.press("PageDown")
    expect(one.get_by_role("heading")).to_have_text("A sentence")
    steps = list[Any]()  # that the reloaded page shows on the phones
    shows = "resources/show_step"
    teacher.on("request", lambda one: shows in one.url and steps.append(one.post_data_json))
    linked = held_back(teacher, "resources/lesson")
    teacher.reload()
    expect(teacher.locator(".class-room h3")).to_have_text(f"Class {code}")
    teacher.wait_for_function("() => window.viz?.isOpening && !viz.isOpening()")
    teacher.evaluate("new Promise((done) => setTimeout(done, 200))")
    linked()
    expect(teacher.locator(".card-title")).to_have_text("A sentence")
    answered = held_back(one, "/class/answer")
    move(one, one.get_by_text("yes", exact=True))
    expect(teacher.locator(".class-bars li", has_text="yes")).to_have_text("yes1")
    assert [one["name"] for one in steps] == ["twice"]

    # how often each token and each head was named is marked on the picture
    for leafs, title, look, place, sign in (
        (2, "A token", "tokens", ".token[data-votes]", "one => one.dataset.votes"),
        (1, "A head", "heads", ".head:has(.sign)", "one => one.textContent"),
    ):
        for _ in range(leafs):
            teacher.keyboard.press("PageUp")
        one.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # it wakes up
        expect(one.get_by_role("heading")).to_have_text(title)
        if title == "A token":  # the response to the last answer comes only now
            answered()
            expect(one.get_by_role("heading")).to_have_text(title)
        for phone in (one, two):
            phone.locator(f".options.{look} label:has(:enabled)").nth(3).click()
        expect(teacher.locator(".class-count")).to_have_text("Phones that have answered: 2 of 2.")
        assert marks(teacher, place, sign) == []
        move(teacher, teacher.get_by_role("button", name="Show me the answer"))
        expect(teacher.locator(".class-bars .right")).to_have_count(1)
        assert marks(teacher, place, sign) in (["2 ✓"], ["0 ✓", "2"])

    move(teacher, teacher.get_by_role("button", name="End the class"))
    expect(teacher.locator(".class-room")).to_have_count(0)
    expect(teacher.get_by_role("button", name="Let the class answer")).to_be_focused()
    expect(one.get_by_text("There is no such class, or it is over.")).to_be_visible()
    expect(one.get_by_role("radio")).to_have_count(0)
    assert one.evaluate("localStorage.length") == 0
    assert teacher.evaluate("localStorage.length") == 0
    one.goto(address)
    expect(one.get_by_text("There is no such class, or it is over.")).to_be_visible()
