"""One selection, one meaning: whatever path led there, every part of the page speaks of it alike;
nothing unselected is marked, ablated heads read nothing, and Esc closes one thing."""

import re
from urllib.parse import urldefrag

import pytest
from kit.browser import Visit
from kit.visitors import opening
from playwright.sync_api import Page, expect

# The token of the source that is shaded most.
DARKEST = """place => {
    const tokens = [...document.querySelectorAll("#tokens .source-tokens button.token")];
    const shades = tokens.map(token => Number(token.style.getPropertyValue("--read")));
    return shades.length > place && shades.indexOf(Math.max(...shades)) === place; }"""
POMME = "After ␣pomme the network is about to choose the next token, ␣rouge."


def says(page: Page) -> str:
    return page.locator(".token-says").inner_text()


def red(visit: Visit) -> None:
    """Check what the open tab says about the selected *pomme*."""
    run = opening("translate-en-fr")
    row = run.labels.index("␣pomme")
    weights = run.trace["decoder.2.cross"].pattern[0, 3, row]
    assert run.source_labels[int(weights.argmax())] == "␣red"
    words = visit.page.locator(".token-says")
    expect(words).to_contain_text(POMME)
    expect(words).to_contain_text(f"head 3 reads ␣red most ({float(weights.max()):.2f})")
    visit.page.wait_for_function(DARKEST, arg=int(weights.argmax()))
    expect(visit.page.locator(".next-words")).to_have_attribute("data-place", "4")
    expect(visit.page.locator(".next-word bdi").first).to_have_text("rouge")


def by_a_click(visit: Visit) -> None:
    visit.go("model=translate-en-fr&tab=journey")
    visit.tokens.nth(4).click()


def after_attention(visit: Visit) -> None:
    by_a_click(visit)
    for tab in ("Attention", "Journey"):
        visit.tab(tab)
    visit.tokens.nth(3).click()
    visit.tokens.nth(4).click()


def after_the_source(visit: Visit) -> None:
    visit.go("model=translate-en-fr&tab=journey")
    visit.sources.nth(2).click()
    visit.tokens.nth(4).click()


def by_a_link(visit: Visit) -> None:
    visit.go("model=translate-en-fr&tab=journey&site=decoder.2.cross&head=3&read=4")


def loaded_again(visit: Visit) -> None:
    by_a_link(visit)
    visit.reload()


PATHS = [by_a_click, after_attention, after_the_source, by_a_link, loaded_again]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.__name__)
def test_a_click_on_a_translated_word_has_one_answer_on_every_tab(door, path):
    path(door)
    red(door)
    door.tab("Attention")
    door.wait_drawn(".attention")
    red(door)
    expect(door.page.locator("[data-field=query]")).to_contain_text("␣pomme")
    expect(door.page.locator(".top-key bdi").first).to_have_text("␣red")
    door.page.locator(".pictures input[value=heatmap]").check()
    expect(door.large).to_have_attribute("data-row", "4")
    expect(door.large).to_have_attribute("data-column", "")
    red(door)
    door.tab("Prediction")
    door.wait_drawn(".prediction")
    expect(door.page.locator(".prediction .candidate bdi").first).to_have_text("rouge")
    red(door)


def test_no_cell_is_marked_before_one_is_chosen(door):
    door.go("model=stories&tab=attention&read=31")
    door.wait_drawn(".attention")
    bands = door.page.locator("#attention .band")
    expect(bands).to_have_count(1)  # the row
    expect(door.large).to_have_attribute("data-column", "")
    expect(door.page.locator("[data-field=key]")).to_have_text("o at 12")
    door.tokens.nth(12).hover()  # what is pointed at in the text is what the numbers are of
    expect(door.large).to_have_attribute("data-row", "12")
    expect(door.page.locator("[data-field=query]")).to_contain_text("at 12")
    expect(bands).to_have_count(1)
    door.page.mouse.move(5, 5)
    door.point_at(20, 12)
    expect(bands).to_have_count(3)


def test_the_large_head_is_the_one_that_the_sentence_names(door):
    door.go("model=stories&tab=journey")
    door.wait_drawn(".journey")
    page = door.page
    title = page.locator(".head-card h3")
    for text in ("Tom and Mia went to the park. They saw a", "One day a boy found a red apple and"):
        old = door.shown_run()
        door.enter(text)
        page.wait_for_function(
            """old => viz.run.run !== old
                && document.querySelector(".journey").dataset.run === viz.run.run""",
            arg=old,
        )
        # The run may be the browser's own, which the server does not have.
        told = page.evaluate("run => viz.ask('telling', { run })", door.shown_run())
        at = told["head"]
        expect(title).to_contain_text(f"Layer {at['layer']}, head {at['head']}")
        assert page.evaluate("viz.query.index") == told["position"]
    door.head(0, 0).click()  # who presses another keeps it
    old = door.shown_run()
    door.enter("Tom and Mia went to the park. They saw a")
    page.wait_for_function("old => viz.run.run !== old", arg=old)
    link = page.locator(".head-card .pick")
    expect(link).to_have_text("layer 5, head 7")
    expect(title).to_contain_text("Layer 0, head 0")
    link.click()  # and comes back by its name
    expect(title).to_contain_text("Layer 5, head 7")
    page.keyboard.press("Escape")


def test_what_is_switched_off_reads_nothing_anywhere(door):
    off = '[{"type":"ablate","stack":"decoder","layer":5,"heads":[0]}]'
    door.go(f"model=stories&tab=journey&site=decoder.5.self&head=0&read=31&interventions={off}")
    door.wait_drawn(".journey")
    page = door.page
    expect(page.locator(".token-says")).to_contain_text("switched off: it reads nothing")
    expect(page.locator(".head-card h3")).to_have_text("Layer 5, head 0, switched off")
    expect(page.locator(".head-card li")).to_have_text(
        [
            "Layer 5, head 0 is switched off: it reads nothing.",
            re.compile(r"^It adds \+0\.0 to .*; .* adds most"),
            re.compile("^With it the network writes “Loki!”, without it “Little bird!”"),
        ]
    )
    expect(page.locator(".arcs path")).to_have_count(0)
    name = "Layer 5, head 0, switched off"
    expect(page.locator(".journey").get_by_role("button", name=name)).to_be_visible()
    expect(page.locator(".journey .head-label")).to_have_count(0)
    shades = "all => all.map(token => Number(token.style.getPropertyValue('--read')))"
    assert set(door.tokens.evaluate_all(shades)) == {0}
    door.tab("Attention")
    door.wait_drawn(".attention")
    expect(page.locator(".large-title")).to_contain_text("switched off")
    expect(page.locator("#attention .head-label")).to_have_count(0)
    expect(page.locator(".top-key")).to_have_count(0)
    door.point_at(31, 12)
    assert float(door.read("weight")) == 0
    expect(page.locator("#attention").get_by_role("button", name=name, exact=True)).to_be_visible()
    large = page.get_by_role("application", name=re.compile("switched off.*heatmap"))
    expect(large).to_be_visible()
    door.go("model=stories")


def test_escape_closes_one_thing_at_a_time_and_the_selection_last(door):
    door.go("model=stories&tab=journey&read=31")
    door.wait_drawn(".journey")
    page = door.page
    chosen = door.tokens.and_(page.locator("[aria-pressed=true]"))
    expect(chosen).to_have_count(1)
    door.menu()
    page.locator(".show-code").click()
    expect(page.locator(".code-window")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".code-window")).to_be_hidden()
    expect(chosen).to_have_count(1)
    door.menu()
    expect(page.locator("#page-menu")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#page-menu")).to_be_hidden()
    expect(chosen).to_have_count(1)
    page.keyboard.press("Escape")
    expect(chosen).to_have_count(0)


def test_a_second_token_is_requested_until_chosen(door):
    door.go("model=stories&tab=journey&read=31")
    page = door.page
    notice = page.get_by_role("button", name="Now choose a second token")
    who = page.get_by_role("button", name="Who reads what?")
    who.click()
    expect(notice).to_be_visible()
    door.tokens.nth(12).click()
    expect(page.locator(".readers")).to_be_visible()
    expect(notice).to_have_count(0)
    who.click()  # a different second token for the same token
    expect(notice).to_be_visible()
    door.tokens.nth(11).click()
    readers = page.locator(".readers h3")
    expect(readers).to_contain_text("␣L")
    expect(notice).to_have_count(0)
    link = urldefrag(door.wait_for_address("key=11")).fragment
    door.go("model=stories&tab=journey&read=31")
    expect(readers).to_have_count(0)
    door.go(link)
    expect(readers).to_contain_text("␣L")


def test_numbers_and_words_are_not_cut(door):
    door.go("model=stories&tab=journey&read=31")
    door.wait_drawn(".next-words")
    page = door.page
    page.get_by_role("button", name="Write on", exact=True).click()
    page.wait_for_function("() => viz.run.probabilities.length")
    door.head(5, 0).click()
    expect(page.locator(".next-word em").first).to_be_visible()
    cut = """all => all.filter(box => box.scrollWidth > box.clientWidth + 1)
        .map(box => box.innerText)"""
    assert page.locator(".next-word .value").evaluate_all(cut) == []
    off = page.get_by_role("button", name="Switch off layer 5, head 0", exact=True)
    off.click()
    # Whole words, as a text: the first that differs is marked from its first letter on.
    expect(page.locator("[data-text=before] .differs")).to_have_text(re.compile("^Loki!"))
    expect(page.locator("[data-text=after] .differs")).to_have_text(re.compile("^Little bird!"))
    door.go("model=stories")
