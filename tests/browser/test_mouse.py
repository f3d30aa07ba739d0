"""The first experiment with a real mouse: a head is pressed, the pointer goes in a straight line
to the button that switches it off, and just that head is switched off."""

import re
from collections.abc import Iterator

import pytest
from kit.browser import Visit
from playwright.sync_api import Locator, expect

STEP_PX = 8  # less than a head: none on the way is left out
# Tokens and heads that the box of changes covers.
COVERED = """() => {
    const of = (one) => one.getBoundingClientRect(), box = of(document.querySelector(".altered"));
    const covers = ({ right, top, bottom }, end) =>
        right > box.left && top < box.bottom && Math.min(bottom, end) > box.top;
    const text = document.querySelector("#tokens .text-tokens"), end = of(text).bottom;
    const heads = document.querySelectorAll(".journey button.head");
    return [...text.querySelectorAll(".token"), ...heads]
        .filter((each) => covers(of(each), text.contains(each) ? end : Infinity))
        .map((each) => each.textContent);
}"""
UNDER = "([x, y]) => document.elementFromPoint(x, y)?.closest('button')?.textContent"


@pytest.fixture
def journey(door: Visit) -> Iterator[Visit]:
    """The opening, nothing altered, no head pressed."""
    yield from opened(door, "model=stories&tab=journey")


def opened(door: Visit, link: str) -> Iterator[Visit]:
    door.page.mouse.move(5, 5)
    door.go(link)
    door.wait_drawn(".next-words")
    door.wait_drawn(".journey")
    yield door
    door.page.keyboard.press("Escape")


def middle(part: Locator) -> tuple[float, float]:
    box = part.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def straight(visit: Visit, start: Locator, end: Locator) -> str:
    """Press `start`, and go in a straight line to `end`: the words of the button there."""
    visit.page.mouse.move(*middle(start))
    visit.page.mouse.down()
    visit.page.mouse.up()
    expect(end).to_be_visible()
    (x0, y0), (x, y) = middle(start), middle(end)
    steps = int(max(abs(x - x0), abs(y - y0)) // STEP_PX) + 1
    visit.page.mouse.move(x, y, steps=steps)
    return str(visit.page.evaluate(UNDER, [x, y]))


def off(visit: Visit, head: str) -> Locator:
    """The button that switches this head off."""
    return visit.page.get_by_role("button", name=f"Switch off {head}", exact=True)


def altered(visit: Visit) -> list[dict[str, object]]:
    found: list[dict[str, object]] = visit.page.evaluate("viz.interventions()")
    return found


# Corners, borders and the middle: on the ways to their buttons the pointer crosses all others.
@pytest.mark.parametrize("layer", [0, 2, 5])
def test_the_pointer_reaches_a_heads_off_button_in_a_straight_line(journey, layer):
    for head in (0, 3, 7):
        button = off(journey, f"layer {layer}, head {head}")
        said = straight(journey, journey.head(layer, head), button)
        assert said == f"Switch off layer {layer}, head {head}"
        expect(journey.page.locator(".journey button.switch-off")).to_have_count(1)


@pytest.mark.parametrize(("layer", "head"), [(5, 0), (0, 0), (2, 4)])
def test_the_off_button_switches_its_head_off_and_on_again(journey, layer, head):
    name = f"layer {layer}, head {head}"
    straight(journey, journey.head(layer, head), off(journey, name))
    journey.page.mouse.down()
    journey.page.mouse.up()
    journey.page.wait_for_function("() => viz.run.interventions.length")
    assert altered(journey) == [
        {"type": "ablate", "stack": "decoder", "layer": layer, "heads": [head]}
    ]
    again = journey.page.get_by_role("button", name=f"Switch {name} on again", exact=True)
    expect(again).to_be_visible()
    expect(journey.page.locator(".altered [data-text=after]")).to_be_visible()
    assert journey.page.evaluate(COVERED) == []
    again.click()
    journey.page.wait_for_function("() => !viz.run.interventions.length")


def test_hover_previews_a_head_and_a_click_keeps_it(journey):
    page = journey.page
    without, title = page.locator(".bars-legend"), page.locator(".head-card h3")
    page.mouse.move(*middle(journey.head(3, 3)))
    expect(without).to_contain_text("without layer 3, head 3")
    page.mouse.move(5, 5)
    expect(without).to_contain_text("without layer 5, head 0")
    journey.head(4, 5).click()
    page.mouse.move(*middle(journey.head(3, 3)))
    expect(without).to_contain_text("without layer 3, head 3")
    expect(off(journey, "layer 4, head 5")).to_be_visible()  # not of what is only crossed
    expect(title).to_contain_text("Layer 4, head 5")
    page.mouse.move(5, 5)
    expect(without).to_contain_text("without layer 4, head 5")
    journey.head(4, 5).focus()  # the same by keyboard
    page.keyboard.press("ArrowUp")
    expect(without).to_contain_text("without layer 4, head 4")
    expect(off(journey, "layer 4, head 4")).to_be_visible()


@pytest.mark.parametrize("kind", ["encoder self", "decoder self", "decoder cross"])
def test_a_translators_heads_are_named_with_their_kind(door, kind):
    stack, what = kind.split()
    link = f"model=translate-en-fr&tab=journey&site={stack}.0.{what}"
    for visit in opened(door, link):
        for layer, head in ((0, 0), (2, 7)):
            pressed = visit.page.locator(".journey").get_by_role(
                "button", name=re.compile(rf"^Layer {layer}, head {head}(, {kind}-attention)?(:|$)")
            )
            name = f"layer {layer}, head {head} ({kind})"
            assert straight(visit, pressed, off(visit, name)) == f"Switch off {name}"


def test_an_encoders_head_can_be_selected_but_not_switched_off(door):
    for visit in opened(door, "model=fill-in&tab=journey"):
        visit.head(1, 2).click()
        without = visit.page.locator(".bars-legend")
        expect(without).to_contain_text("without layer 1, head 2")  # it is under the pointer
        expect(visit.page.locator(".head-card h3")).to_contain_text("Layer 1, head 2")
        expect(visit.page.get_by_role("button", name=re.compile("^Switch off"))).to_have_count(0)


def test_on_a_phone_a_tapped_head_is_forgotten_where_the_tour_begins(opening, address):
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with opening() as open_page:
        visit = open_page(address, own=phone, width=390, height=844, tab="Journey")
        visit.wait_drawn(".journey")
        visit.head(5, 3).tap()
        without = visit.page.locator(".bars-legend")
        expect(without).to_contain_text("layer 5, head 3")
        expect(off(visit, "layer 5, head 3")).to_be_visible()
        visit.page.get_by_role("button", name="Start here").tap()
        expect(visit.page.locator(".card")).to_be_visible()
        expect(without).to_contain_text("layer 5, head 0")
