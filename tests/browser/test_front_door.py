"""The page as it is first met, with the bundled models: its opening, its cards, on a phone,
projected. The page is compared with a run made in this process."""

import re

import pytest
import torch
from kit import serving
from kit.browser import WAIT_MS, complaints
from kit.visitors import MODELS, Counted, continued, model, opening
from playwright.sync_api import expect

from transformer.server.fields import cards

LAST = 31  # the L at which the opening's text ends
SHADES = """() => [...document.querySelectorAll("#tokens .text-tokens button.token")]
    .map(token => Number(token.style.getPropertyValue("--read")))"""
# The files that Gradio's script had to name itself, and the addresses of what was fetched.
ADDED = """[...document.querySelectorAll("link[href^='http'][href*='/assets/']")]
    .filter(link => ![...document.scripts].some(({ src }) => src === link.href))
    .map(link => link.href)"""
FETCHED = """performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname)"""
# Both sides of the picture are at least so long, and nothing is wider than the window.
LARGE = """([width, least]) => {
    const { xaxis, yaxis } = document.querySelector(".attention .large")._fullLayout;
    return innerWidth === width && document.documentElement.scrollWidth <= width
        && Math.min(xaxis._length, yaxis._length) >= least; }"""

SMALLEST = """Math.min(...[...document.querySelectorAll(".surprisal-box .js-plotly-plot text")]
    .map(one => parseFloat(getComputedStyle(one).fontSize)))"""


@pytest.fixture(scope="module")
def address() -> str:
    """As visitors open it: the network is in their browser."""
    return serving.bundled().url


def shade(weights: torch.Tensor) -> list[float]:
    return [float(weight) ** (2 / 3) for weight in weights]


def test_the_page_opens_and_its_text_is_read_pointed_at_and_played(door):
    visitor = Counted(door)
    the_page_brings_what_gradio_and_its_example_ask_for(visitor)
    door.tab("Attention")
    a_head_that_finishes_names_is_shown_and_shades_the_text_on_every_tab(visitor)
    visitor.visit.tab("Attention")
    visitor.page.emulate_media(reduced_motion="reduce")
    for stage in ("scores", "masked", "weights"):  # where there is no motion it steps
        visitor.page.get_by_role("button", name="Watch softmax").click()
        expect(visitor.page.locator(".attention")).to_have_attribute("data-stage", stage)
    visitor.page.emulate_media(reduced_motion="no-preference")
    visitor.generate()
    expect(visitor.visit.tokens).to_have_text(list(continued().labels))
    the_text_is_played_token_by_token_with_what_each_reads(visitor)
    door.enter("Der Hund schläft")
    status = visitor.page.locator("#status .status")
    expect(status).to_contain_text("this model learned English alone")


def the_page_brings_what_gradio_and_its_example_ask_for(visitor: Counted) -> None:
    page = visitor.page
    expect(page.locator(".head-card li")).to_have_count(3)
    expect(page.locator("#generate")).to_be_visible()  # Gradio has come
    assert page.evaluate(ADDED) == []
    asked = {path.partition("/resources/")[2] for path in page.evaluate(FETCHED)}
    assert asked & {"atlas", "metrics", "journey", "heatmap", "continuation", "deciding"} == set()


def a_head_that_finishes_names_is_shown_and_shades_the_text_on_every_tab(visitor: Counted) -> None:
    run, page = opening("stories"), visitor.page
    weights = run.trace["decoder.5.self"].pattern[0, 0]
    read = int(weights[LAST].argmax())
    assert run.labels[read - 1 : read + 1] == ("␣L", "o")  # what followed the last time
    expect(visitor.visit.tokens).to_have_text(list(run.labels))
    assert visitor.sentence().startswith(
        "After ␣L the network chooses what comes next. Layer 5, head 0 reads o most "
        f"({float(weights[LAST, read]):.2f}), which followed ␣L last time."
    )
    assert page.evaluate(SHADES) == pytest.approx(shade(weights[LAST]), abs=2e-3)
    visitor.visit.tokens.nth(13).hover()
    expect(page.locator(".token-says")).to_contain_text("After k the network is about to choose")
    assert page.evaluate(SHADES)[:14] == pytest.approx(shade(weights[13, :14]), abs=2e-3)
    page.mouse.move(700, 5)
    expect(page.locator(".token-says")).to_contain_text("After ␣L")  # the chosen one again
    visitor.visit.tab("Masks")
    visitor.visit.tokens.nth(23).focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".token-says")).to_contain_text("After o the network")
    assert page.evaluate(SHADES)[:25] == pytest.approx(shade(weights[24, :25]), abs=2e-3)
    page.keyboard.press("Escape")
    expect(page.locator(".token-says")).to_be_hidden()
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    expect(visitor.visit.tokens.first).to_be_in_viewport()


def the_text_is_played_token_by_token_with_what_each_reads(visitor: Counted) -> None:
    run, page = continued(), visitor.page
    page.keyboard.press("Escape")
    page.get_by_role("button", name="One token on").click()  # from the last given token
    unwritten = page.locator("#tokens .unwritten")
    expect(unwritten).to_have_count(len(run.steps))
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function("start => viz.query.index > start", arg=run.n_prompt)
    page.get_by_role("button", name="Pause").click()
    here = page.evaluate("viz.query.index")
    expect(unwritten).to_have_count(len(run.ids) - 1 - here)
    assert run.labels[here + 1] in visitor.sentence()
    page.get_by_role("button", name="One token back").click()
    assert page.evaluate("viz.query.index") == here - 1


def test_the_heatmap_is_large_and_the_text_visible_on_every_screen(door):
    """In a window of the first size, which then takes the others."""
    page = door
    page.go("model=stories&tab=attention")
    page.wait_drawn(".attention")
    screens = {(1440, 900): 480, (1280, 720): 450, (1024, 768): 450, (390, 844): 10 * (LAST + 1)}
    for (width, height), least in screens.items():
        page.page.set_viewport_size({"width": width, "height": height})
        page.page.evaluate("window.scrollTo(0, 0)")
        page.page.wait_for_function(LARGE, arg=[width, least])
        labels = page.page.locator(".attention .large .ytick text")
        if width >= 1024:  # at least every second, one of them the chosen one
            expect(labels.nth(len(opening("stories").labels) // 2 - 1)).to_be_attached()
        chosen = page.page.locator(".attention .large .ytick tspan")  # in bold type
        expect(chosen).to_have_text(["\u2068␣L\u2069"])
        page.tokens.nth(LAST - 2).click()
        expect(page.page.locator(".token-says")).to_contain_text("After Hello")
        says = page.page.locator(".token-says").bounding_box()
        assert says is not None
        assert 0 <= says["y"] < height - 20
        page.tokens.nth(LAST).click()

    page.page.set_viewport_size({"width": 1280, "height": 720})
    page.go("model=stories&projector=1&tab=attention")
    page.wait_drawn(".attention")
    size = "s => parseFloat(getComputedStyle(document.querySelector(s)).fontSize)"
    for part in ("#tokens .token:not(.special)", ".token-says", "#right [role=tab]"):
        assert page.page.evaluate(size, part) >= 24, part
    assert page.page.evaluate(size, ".attention .large .ytick text") >= 20
    expect(page.page.locator("#generate")).to_be_hidden()
    page.page.evaluate("window.scrollTo(0, 0)")
    page.page.wait_for_function(LARGE, arg=[1280, 300])
    picture = page.page.locator(".attention .large").bounding_box()
    assert picture is not None
    assert picture["y"] <= 720 * 0.45  # most of it is seen without scrolling
    assert complaints(page.page, "#top", "#tokens", ".attention") == []
    page.tab("Prediction")
    page.wait_drawn(".surprisal-box")
    assert page.page.evaluate(SMALLEST) >= 24
    page.tab("Attention")
    with page.drawn(".attention"):
        page.menu()
        page.page.get_by_role("button", name="Projector").click()
    expect(page.page.locator("#generate")).to_be_visible()
    page.page.set_viewport_size({"width": 1440, "height": 900})


def test_the_cards_are_walked_by_keyboard_alone(door):
    page, every = door, cards(MODELS)
    title = page.page.locator(".card-title")
    assert 8 <= len(every) <= 11
    page.page.get_by_role("button", name="Start here").focus()
    page.page.keyboard.press("Enter")
    expect(title).to_be_focused()
    for place, card in enumerate(every):
        expect(title).to_have_text(card["title"])
        page.page.wait_for_function("place => viz.snapshot().tour === place", arg=str(place + 1))
        page.wait_for_link()
        shown = page.page.evaluate("viz.snapshot()")
        state = page.page.evaluate("state => viz.textsOf(state)", card["state"])
        wanted = {k: v for k, v in state.items() if (k, v) != ("tab", "journey")}
        assert {k: shown[k] for k in wanted if k in shown} == {
            k: v for k, v in wanted.items() if k in shown
        }
        expect(page.page.locator(".problem:not([hidden])")).to_have_count(0)
        if place == 1:
            assert complaints(page.page, ".card", "#top", "#tokens") == []
        page.page.keyboard.press("ArrowRight")
    expect(page.page.locator(".card-next")).to_have_text("Lessons ›")  # what comes after
    page.page.keyboard.press("ArrowLeft")
    expect(title).to_have_text(every[-2]["title"])
    page.page.keyboard.press("Escape")
    expect(page.page.locator(".card")).to_be_hidden()
    expect(page.page.get_by_role("button", name="Start here")).to_be_focused()
    page.wait_for_link()
    assert "tour" not in page.page.evaluate("viz.snapshot()")


def test_a_link_to_a_card_opens_it_after_a_card_was_put_away_early(door):
    """Put away while its state was still being opened, which comes without it."""
    page = door.page
    door.go("model=stories&text=Tom&max_new_tokens=4&tour=3")
    press = "name => { document.querySelector(name).click(); return viz.isOpening(); }"
    page.locator(".card-next").wait_for()
    assert page.evaluate(f"['.card-next', '.card-end'].map({press})") == [True, True]
    expect(page.locator(".card")).to_be_hidden()
    door.wait_for_link()
    expect(page.locator(".card")).to_be_hidden()
    door.go("model=stories&tour=3")
    expect(page.locator(".card")).to_have_attribute("data-place", "2")


def test_a_card_stays_visible_above_the_section_it_opens(door):
    page = door.page
    for width, height, projected in ((1440, 900, ""), (390, 844, ""), (1280, 720, "&projector=1")):
        page.set_viewport_size({"width": width, "height": height})
        for card, section in ((4, "attention_math"), (6, "inputs"), (8, "lens")):
            door.go(f"model=stories&tour={card - 1}{projected}")
            page.locator(".card-next").click()
            heading = page.locator(f"[data-section={section}] summary").first
            expect(heading).to_be_in_viewport(timeout=WAIT_MS)
            shown, below = page.locator("#tour-card .card").bounding_box(), heading.bounding_box()
            assert shown is not None
            assert below is not None
            assert shown["y"] >= -10, (width, card)
            assert width > 1280 or below["y"] >= shown["y"] + shown["height"], (width, card)
    page.set_viewport_size({"width": 1440, "height": 900})


def test_a_translators_heads_can_be_told_apart_on_a_projector(door):
    door.page.set_viewport_size({"width": 1280, "height": 720})
    door.go("model=translate-en-fr&projector=1&tab=journey")
    door.wait_drawn(".journey")
    door.page.wait_for_function(
        "() => document.querySelector('.journey .head canvas')?.getBoundingClientRect().width >= 14"
    )
    expect(door.page.locator(".card-actions .switch-off")).to_be_in_viewport()
    door.page.set_viewport_size({"width": 1440, "height": 900})


def test_hidden_words_are_guessed_and_a_click_hides_another(door):
    door.go("model=fill-in&tab=journey")
    page = door.page
    door.enter("The [MASK] ran up the [MASK].")
    best = page.locator(".hidden-best")
    expect(best).to_have_count(1)
    (first, *_), (other, *_) = model("fill-in").fill("The [MASK] ran up the [MASK].").guesses
    bar = page.locator(".next-word").first
    expect(bar.locator("bdi")).to_have_text(first.text.strip())
    expect(bar.locator(".value")).to_contain_text(f"{100 * first.probability:.0f} %")
    expect(best).to_have_text(f"{other.text.strip()} {100 * other.probability:.1f} %")
    door.enter("The dog ran up the hill.")
    expect(best).to_have_count(0)
    expect(page.locator(".hidden-hint")).to_be_in_viewport()
    page.locator("#tokens .token").nth(2).click()
    expect(page.locator(".hidden-word")).to_contain_text("If ␣dog were hidden:")
    door.tab("What if?")  # each card has the guess for the hidden word; nothing can be altered
    ((word, *_),) = model("fill-in").fill("The [MASK] ran up the hill.").guesses
    intact = page.locator(".what-card[data-what='']")
    share = 100 * word.probability
    expect(intact.locator(".becomes")).to_have_text(
        f"{word.text.strip()} {share:.{0 if share >= 9.95 else 1}f} %"
    )
    expect(page.locator(".becomes.waiting")).to_have_count(0)
    expect(page.locator(".what-switch")).to_have_count(0)
    expect(page.locator(".section:visible summary")).to_have_text(
        [re.compile("each part add"), re.compile("two runs differ")]
    )
