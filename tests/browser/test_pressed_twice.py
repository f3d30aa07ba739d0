"""Nothing moves away from the pointer: what is pressed twice at one place, by mouse or finger, is
pressed twice, and the second press takes the first back or goes on."""

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kit.browser import WAIT_MS, Visit
from playwright.sync_api import Locator, expect

from transformer.views.declaration import tab_name

ROOM_PX = 6  # within every control
STATE = "() => JSON.stringify(viz.interventions())"
TABS = ("Attention", "Masks", "Positions", "Prediction", "What if?", "Learn", "Model")
UNDER = "(control, at) => control.contains(document.elementFromPoint(...at))"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}

Press = Callable[[float, float], None]


def settled(visit: Visit) -> None:
    """Until the run is shown, nothing in sight waits for an answer, and nothing moves any more."""
    visit.page.wait_for_function("() => viz.run.run && !viz.writing")
    visit.page.wait_for_function(
        """() => new Promise(done => {
            const isInSight = ({ top, bottom, height }) =>
                height && bottom > 0 && top < window.innerHeight;
            const isBusy = () => [...document.querySelectorAll("[aria-busy=true]")]
                .some(one => isInSight(one.getBoundingClientRect()));
            const look = () => [scrollY, ...["#tokens", ".next-words", ".journey", "#right"]
                .map(one => document.querySelector(one)?.getBoundingClientRect().height)].join();
            let [before, same] = [look(), 0];
            const timer = setInterval(() => {
                same = look() === before && !isBusy() ? same + 1 : 0;
                before = look();
                if (same < 6) return;
                clearInterval(timer);
                done(true);
            }, 50);
        })"""
    )


def middle(control: Locator) -> tuple[float, float]:
    control.evaluate("one => one.scrollIntoView({ block: 'center' })")
    box = control.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def until(visit: Visit, state: Callable[[], object], is_right: Callable[[object], bool]) -> None:
    give_up = time.monotonic() + WAIT_MS / 1000
    while not is_right(now := state()):
        assert time.monotonic() < give_up, now
        visit.page.wait_for_timeout(50)
    settled(visit)


def twice(visit: Visit, control: Locator, press: Press, state: Callable[[], object]) -> None:
    """Press where the control is, and there again: the first is taken back."""
    middle(control)
    settled(visit)  # what sticks on a phone moves the rest once it is scrolled
    x, y = middle(control)
    top = control.bounding_box()
    before = state()
    press(x, y)
    until(visit, state, lambda now: now != before)
    moved = control.bounding_box()
    assert top is not None
    assert moved is not None
    assert abs(moved["y"] - top["y"]) <= ROOM_PX, control
    press(x, y)
    until(visit, state, lambda now: now == before)


def mouse(visit: Visit) -> Press:
    def press(x: float, y: float) -> None:
        visit.page.mouse.move(x, y, steps=3)
        visit.page.mouse.down()
        visit.page.mouse.up()

    return press


@pytest.fixture(scope="module")
def phone(opening: Callable[[], Any], address: str) -> Iterator[Visit]:
    """One page on a phone, as it opens, for the tests in their order."""
    with opening() as open_page:
        yield open_page(address, own=PHONE, width=390, height=844, tab="Journey")


@pytest.mark.parametrize("at", [(5, 0), (4, 5), (0, 0)])
def test_a_head_is_switched_off_and_on_at_one_place(door, at):
    door.go("model=stories&tab=journey")
    door.wait_drawn(".journey")
    door.head(*at).click()
    button = door.page.locator(".journey .switch-off")
    expect(button).to_contain_text("layer {}, head {}".format(*at))
    settled(door)
    twice(door, button, mouse(door), lambda: door.page.evaluate(STATE))


def test_a_projected_head_is_switched_off_and_on_at_one_place(door):
    """Not covered by the box of changes; other answers begin in the window."""
    door.page.set_viewport_size({"width": 1280, "height": 720})
    door.go("model=stories&tab=journey&projector=1")
    door.wait_drawn(".journey")
    expect(door.page.locator(".head-card li")).to_have_count(3)
    settled(door)
    press = mouse(door)
    twice(door, door.page.locator(".journey .switch-off"), press, lambda: door.page.evaluate(STATE))
    where_else = door.page.locator(".where-else")
    press(*middle(where_else))
    expect(door.page.locator(".passage").first).to_be_in_viewport(ratio=1)
    press(*middle(where_else))
    press(*middle(door.page.locator(".lessons-button")))
    expect(door.page.locator(".lesson").last).to_be_in_viewport(ratio=1)
    expect(door.page.locator(".lesson-list h2")).to_be_in_viewport(ratio=1)
    door.page.locator(".lessons-end").click()
    door.page.set_viewport_size({"width": 1440, "height": 900})


def test_a_link_to_a_tab_shows_it_from_the_top(door):
    """The link is further down there: the page does not follow it."""
    door.go("model=stories&tab=journey")
    door.wait_drawn(".next-words")
    settled(door)
    link = door.page.locator(".next-words .to-tab", has_text="Prediction")
    mouse(door)(*middle(link))
    door.wait_drawn(".prediction")
    settled(door)
    assert door.page.evaluate("scrollY") == 0


def test_what_the_first_tab_opens_is_closed_at_one_place(door):
    door.go("model=stories&tab=journey")
    door.wait_drawn(".journey")
    settled(door)
    for selector, state in (
        (".enlarge", "aria-expanded"),
        (".who-reads", "aria-pressed"),
        (".all-tools", "aria-expanded"),
        (".own-text", "aria-expanded"),
    ):
        control = door.page.locator(selector).first
        twice(door, control, mouse(door), lambda c=control, s=state: c.get_attribute(s))


def test_the_temperature_stays_under_the_pointer(door):
    door.go("model=stories&tab=journey")
    door.wait_drawn(".next-words")
    settled(door)
    slider = door.page.locator("#temperature input[type=range]")
    box = slider.bounding_box()
    assert box is not None
    for share in (0.4, 0.6, 0.02):
        mouse(door)(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        settled(door)
        now = slider.bounding_box()
        assert now is not None
        assert abs(now["y"] - box["y"]) <= 1


@pytest.mark.parametrize("tab", TABS)
def test_a_fold_is_closed_where_it_was_opened(door, tab):
    door.go(f"model=stories&tab={tab_name(tab)}")
    settled(door)
    folds = door.page.locator("#right .section:visible")
    for place in range(folds.count()):
        fold = folds.nth(place)
        heading = fold.locator("summary").first
        twice(door, heading, mouse(door), lambda f=fold: f.get_attribute("open") is not None)
        mouse(door)(*middle(heading))  # left open: the next stays where it is, too
        settled(door)


@pytest.mark.parametrize(
    ("tab", "button"), [("Masks", ".future .switch-off"), ("Positions", ".order .switch-off")]
)
def test_an_experiment_of_a_tab_is_undone_at_one_place(door, tab, button):
    door.go(f"model=stories&tab={tab_name(tab)}")
    settled(door)
    control = door.page.locator(button)
    twice(door, control, mouse(door), lambda: door.page.evaluate(STATE))
    if tab == "Masks":
        expect(door.page.locator(".future .hidden")).to_have_count(15)
        control.click()
        expect(door.page.locator(".future .hidden")).to_have_count(0)
        expect(door.page.locator("[data-text=after]")).to_contain_text("Little bird")


def test_a_card_of_what_if_is_pressed_anywhere_on_it(door):
    door.go("model=stories&tab=what-if")
    cards = door.page.locator(".what-card:has(.what-switch)")
    expect(door.page.locator(".breaks .waiting")).to_have_count(0)
    for place in range(0, cards.count(), 3):
        card = cards.nth(place)  # its middle is text
        twice(door, card, mouse(door), lambda: door.page.evaluate(STATE))


def test_all_tools_are_seen_to_open_on_a_phone(phone):
    phone.wait_drawn(".journey")
    ghost, letter = (
        phone.page.locator(f".text-tokens {part}").bounding_box()
        for part in (".ghost", ".token.asks")
    )
    assert ghost is not None
    assert letter is not None
    assert abs(ghost["y"] - letter["y"]) < letter["height"]  # one word, on one line
    phone.page.locator(".all-tools").tap()
    expect(phone.page.locator("#right [role=tab]").first).to_be_in_viewport()


def test_a_phone_shows_the_token_that_its_sentence_is_about(phone):
    phone.go("model=stories&tab=what-if")
    expect(phone.page.locator(".breaks .waiting")).to_have_count(0)
    expect(phone.page.locator(".text-tokens [aria-pressed=true]")).to_be_in_viewport(ratio=0.9)
    card = phone.page.locator('.what-card[data-what="no-positions"]')
    why = card.locator(".hint")
    expect(why).to_be_hidden()
    press = phone.page.touchscreen.tap
    twice(phone, card.locator("h3"), press, lambda: why.is_visible())


def test_a_finger_switches_a_head_off_and_on_at_one_place(phone):
    phone.go("model=stories&tab=journey")
    phone.wait_drawn(".journey")
    for at in ((5, 3), (5, 0)):
        phone.head(*at).tap()
        button = phone.page.locator(".journey .switch-off")
        expect(button).to_contain_text("layer {}, head {}".format(*at))
        settled(phone)
        press = phone.page.touchscreen.tap
        twice(phone, button, press, lambda: phone.page.evaluate(STATE))


def test_heads_in_colours_stay_under_the_pointer(door):
    door.go("model=stories&tab=attention&picture=lines&line_heads=layer")
    door.wait_drawn(".attention")
    settled(door)
    head = door.page.locator(".head-colour").nth(3)
    of_layer = door.page.locator("label:has([name=attention-line_heads][value=layer])")
    weights = door.page.locator('label:has([name=attention-threshold][value="0.2"])')
    for control in (head, of_layer, weights):
        x, y = middle(control)
        before = control.bounding_box()
        for _ in range(2):  # what is chosen stays chosen: the second press hits it, too
            mouse(door)(x, y)
            settled(door)
            assert control.evaluate(UNDER, [x, y])
            assert control.bounding_box() == pytest.approx(before, abs=ROOM_PX)
        expect(head).to_have_attribute("aria-pressed", "true")
        expect(door.page.locator(".head-colour[aria-pressed=true]")).to_have_count(1)
    door.wait_for_address("line_heads=layer", "threshold=0.2", "head=3")


@pytest.mark.parametrize("touch", [False, True])
def test_a_feed_forward_is_switched_off_and_on_at_one_place(door, phone, touch):
    visit = phone if touch else door
    visit.go("model=stories&tab=attention")
    visit.wait_drawn(".attention")  # which settles its head at each run
    visit.go("model=stories&tab=journey&forward=decoder.5")
    visit.wait_drawn(".journey")
    button = visit.page.locator(".forward-card .switch-off")
    expect(visit.page.locator(".neurons li")).to_have_count(5)
    settled(visit)
    press = visit.page.touchscreen.tap if touch else mouse(visit)
    twice(visit, button, press, lambda: visit.page.evaluate(STATE))


@pytest.mark.parametrize("touch", [False, True])
def test_the_tours_next_is_at_one_place_on_every_card(door, phone, touch):
    visit = phone if touch else door
    visit.go("model=stories&tab=journey")
    visit.page.get_by_role("button", name="Start here").click()
    card, following = visit.page.locator(".card"), visit.page.locator(".card-next")
    expect(card).to_have_attribute("data-place", "0")
    settled(visit)
    if touch:  # where the card sticks
        box = following.bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    else:
        x, y = middle(following)
        visit.page.mouse.move(x, y, steps=3)
    for place in range(1, 11):
        if touch:
            visit.page.touchscreen.tap(x, y)
        else:
            visit.page.mouse.down()
            visit.page.mouse.up()
        expect(card).to_have_attribute("data-place", str(place))
        settled(visit)
        assert visit.page.evaluate("viz.pointed") is None  # nothing was pointed at by it
    visit.page.keyboard.press("Escape")


WATCH = """() => {
    const card = () => document.querySelector(".head-card");
    window.cards = [];
    const note = () => {
        const title = card()?.querySelector("h3").cloneNode(true);
        title?.querySelector(".head-label")?.remove(); // it may come later, into its own room
        const words = [title?.textContent.replace(/\\s+/g, " ").trim(),
            ...[...card()?.querySelectorAll("li") ?? []].map(one => one.innerText)];
        if (JSON.stringify(words) !== JSON.stringify(window.cards.at(-1))) window.cards.push(words);
    };
    new MutationObserver(note).observe(document.querySelector(".journey"),
        { subtree: true, childList: true, characterData: true });
    note();
}"""


def test_the_card_of_ones_own_text_is_said_once(door):
    door.go("model=stories&tab=journey")
    door.wait_drawn(".journey")
    expect(door.page.locator(".head-card li")).to_have_count(3)
    door.page.evaluate(WATCH)
    door.enter("Tom had an apple and Sue had a")
    door.page.wait_for_function("() => viz.run.text.startsWith('Tom had')")
    expect(door.page.locator(".head-card li").first).to_contain_text(re.compile("^At (?!L )"))
    settled(door)
    cards = door.page.evaluate("window.cards")
    said = [card for card in cards if len(card) > 1]
    assert len(said) == 2, json.dumps(cards)  # the former text's, and this one's
    assert len(cards) <= 4, json.dumps(cards)
