"""What others add to the page: networks of other families through all tabs, one of many heads, and
views that a folder declares, on the page and in links."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kit import serving
from kit.browser import PARTS, Visit
from kit.hf_folders import LANGUAGES as NAMES
from playwright.sync_api import expect

from transformer.server.fields import LANGUAGES

pytestmark = pytest.mark.filterwarnings("ignore")
OF_NETWORK = {tab: first for tab, (first, *_) in PARTS.items() if tab != "Learn"}
# The tabs that a family changes; all of them for an encoder and for an encoder-decoder.
TABS = {
    "tiny-llama": {"Attention": ".attention", "Positions": ".rotary", "Model": ".architecture"},
    "tiny-gemma3": {
        "Journey": ".journey", "Masks": ".masks[data-site='decoder.2.self']",
        "Positions": ".rotary", "What if?": ".breaks",
    },
    "tiny-bloom": {"Positions": ".score-bias", "Model": ".architecture"},
    "tiny-bert": OF_NETWORK | {"Prediction": ".masked", "What if?": ".compare"},
    "tiny-classifier": {"Journey": "", "Prediction": ".labels", "What if?": ".compare"},
    "tiny-marian": {"Journey": ".journey", "Attention": ".attention"},
    "tiny-t5": OF_NETWORK | {"Positions": ".score-bias"},
}  # fmt: skip
BARS = "name => document.querySelector(`[data-picture=${name}]`).calcdata[0].length"


@pytest.fixture(scope="module")
def page(opening: Callable[[], Any]) -> Iterator[Visit]:
    with opening() as open_page:
        yield open_page(serving.second().url)


def test_networks_of_other_families_go_through_the_tabs(page):
    for name, tabs in TABS.items():
        page.go(f"model={name}&tab=attention")
        for tab, part in tabs.items():
            page.tab(tab)
            if (name, tab) == ("tiny-gemma3", "Masks"):  # its third layer alone has no window
                page.page.locator(".masks .pick-layer").select_option("2")
            if (name, tab) == ("tiny-classifier", "Journey"):  # it predicts no token
                expect(page.page.locator("#journey .no-head")).to_be_visible()
                continue
            page.wait_drawn(part)
            expect(page.page.locator("#status .problem:not([hidden])")).to_have_count(0)
        if name == "tiny-llama":  # its keys are shared and turned
            page.tab("Positions")
            with page.drawn(".rotary"):
                page.page.locator(".rotary-pair").fill("1")
                page.page.locator(".rotary-pair").blur()
            expect(page.page.locator(".rotary")).to_have_attribute("data-pair", "1")
            page.tab("Attention")
            expect(page.page.locator(".head-grid .joined.first")).to_have_count(3)
            shared = "Head 0 shares its keys with head 1."
            expect(page.page.locator(".shared-keys")).to_have_text(shared)


def test_a_chat_model_reads_the_text_by_its_template_where_chosen(page):
    page.go("model=tiny-llama&text=The+cat&method=greedy&max_new_tokens=2")
    page.wait_drawn(".journey")
    expect(page.tokens.first).to_have_text("<s>")
    page.page.get_by_role("button", name="Settings").click()
    page.page.get_by_label("The text is").click()
    with page.drawn(".journey"):
        page.page.get_by_role("option", name="a message to answer").click()
        page.page.locator("#generate").click()
    page.wait_for_address("read_as=chat", "text=The+cat")
    expect(page.tokens.nth(3)).to_have_text("er")  # of "user: "
    page.reload()
    page.wait_drawn(".journey")
    expect(page.tokens.nth(3)).to_have_text("er")
    page.go("model=tiny")
    expect(page.page.get_by_label("The text is")).to_be_hidden()


def test_a_mask_of_all_layers_hides_no_more_than_the_widest(page):
    """The third layer of Gemma's alone has no window; the others read six tokens."""
    page.go("model=tiny-gemma3&tab=what-if")
    page.wait_drawn(".maskedit")
    length = len(page.labels())
    board = page.page.locator(".maskedit")
    for layer, window in (("1", 6), ("*", length)):
        page.page.locator(".edit-layer").select_option(layer)
        allowed = sum(min(place + 1, window) for place in range(length))
        expect(board).to_have_attribute("data-allowed", str(allowed))
        note = re.compile("hides the least" if layer == "*" else "^$")
        expect(board.locator(".mask-note")).to_have_text(note)
    assert length > 6


def test_a_uniform_head_is_one_of_the_chosen_heads_layer(page):
    page.go("model=tiny-gemma3&tab=attention")
    page.wait_drawn(".ranking")
    length, titles = len(page.labels()), page.page.locator(".ranking-table thead th")
    column = titles.all_inner_texts().index("Largest weight")
    for layer, window in ((1, 6), (2, length)):
        page.page.locator(f".rows tr[data-layer='{layer}'] .pick").first.click()
        cells = page.page.locator(".baselines tr").first.locator("th, td")
        expect(cells.first).to_have_text(f"a uniform head, layer {layer}")
        weights = [1 / min(place + 1, window) for place in range(1, length)]
        shown = float(cells.nth(column).inner_text())
        assert shown == pytest.approx(sum(weights) / len(weights), abs=6e-4)


def test_windows_are_said_where_the_text_is_a_triangle(page):
    for name, reads, hidden in (
        ("tiny-gemma3", "at most 6 tokens, itself included. In some layers it reads all.", 15),
        ("tiny-modernbert", "at most 5 tokens, itself included.", 12),  # |i - j| > 2 of 6 x 6
    ):
        page.go(f"model={name}&tab=masks")
        page.wait_drawn(".future")
        expect(page.page.locator(".future p").last).to_have_text(f"A token reads {reads}")
        expect(page.page.locator(".future td.hidden")).to_have_count(hidden)
    expect(page.page.locator(".future h3")).to_have_text("What each token may read")
    expect(page.page.locator(".future p").first).to_contain_text("one for what is too far away")


def test_a_translator_goes_from_and_to_the_languages_that_are_chosen(page, visit):
    english, french = NAMES["NllbTokenizer"]
    page.go("model=tiny-nllb&tab=attention")
    ids, begins = "viz.run.ids.join()", "viz.run.labels[1]"
    assert page.page.evaluate(begins) == french  # its files choose none
    stored = page.page.evaluate(ids)
    settings = page.page.get_by_role("button", name="Settings")
    source, target = (page.page.locator(f".setting-{name} input") for name in LANGUAGES)
    settings.click()
    expect(source).to_have_value(english)
    expect(target).to_have_value(french)
    page.page.evaluate("viz.nextPaint()")  # what is shown first takes its old value again
    target.fill("deu")
    page.page.get_by_role("option", name="deu_Latn").click()
    page.generate("The black cat is sleeping.")
    assert page.page.evaluate(begins) == "deu_Latn"
    chosen = page.page.evaluate(ids)
    assert chosen != stored
    link = page.wait_for_address(f"source_language={english}", "target_language=deu_Latn")
    other = visit(link)
    other.wait_for_link()
    assert other.page.evaluate(ids) == chosen
    page.go("model=tiny-marian&tab=attention")
    expect(target).to_be_hidden()
    assert page.page.evaluate("viz.controls.target_language") is None
    settings.click()


def test_a_grid_of_many_heads_is_one_image_and_scrolls_to_the_head(page):
    page.go("model=many-heads&tab=attention")
    page.wait_drawn(".attention")
    page.wait_drawn(".heads-side")
    grid = page.page.locator("#attention .head-grid")
    expect(grid.locator("canvas")).to_have_count(0)
    assert grid.evaluate("it => it.style.getPropertyValue('--all-heads')").startswith("url(data:")
    page.page.locator(".zoom").click()
    last = grid.locator("button").last
    with page.drawn(".attention"):
        last.evaluate("it => it.click()")  # without Playwright's scrolling
    expect(page.page.locator(".attention")).to_have_attribute("data-site", "decoder.19.self")
    expect(page.page.locator(".shared-keys")).to_have_text(re.compile("with heads 15, 16."))
    expect(last).to_be_in_viewport(ratio=0.95)


def test_a_declared_view_has_controls_a_picture_and_fields_in_the_link(page, visit):
    page.go("model=tiny&tab=prediction")
    page.wait_drawn("#view-own_lengths .panel")
    panel = page.page.locator("#view-own_lengths")
    labels = page.labels()
    assert page.page.evaluate(BARS, "own_lengths") == len(labels)
    with page.drawn("#view-own_lengths .panel"):
        panel.get_by_label("Longer than").fill("3")
        panel.get_by_label("Longer than").blur()
    with page.drawn("#view-own_lengths .panel"):
        panel.get_by_label("Counted in").select_option("bytes")
    wanted = [len(label.encode()) for label in labels if len(label.encode()) >= 3]
    assert page.page.evaluate(BARS, "own_lengths") == len(wanted)
    panel.get_by_title("Numbers as a table").click()
    expect(panel.locator("table")).to_contain_text(str(wanted[0]))
    page.wait_for_address("own_lengths.least=3", "own_lengths.unit=bytes")

    page.tab("Letters")  # one with its own component
    page.wait_drawn(".first-letters")
    with page.drawn(".first-letters"):
        page.page.get_by_label("At most").fill("3")
    assert page.page.evaluate(BARS, "own_letters") == 3
    colour = "getComputedStyle(document.querySelector('.first-letters h3')).color"
    assert page.page.evaluate(colour) == "rgb(10, 92, 173)"
    link = page.wait_for_address("own_letters.most=3", "tab=letters")
    other = visit(link, language="de")
    other.wait_for_link()
    other.wait_drawn(".first-letters[data-most='3']")
    expect(other.page.get_by_role("tab", name="Buchstaben")).to_be_visible()
    expect(other.page.get_by_role("heading", name="Anfangsbuchstaben")).to_be_visible()
    expect(other.page.get_by_label("Höchstens")).to_have_value("3")
    other.page.locator("#right [role=tab][data-tab-id=prediction]").click()
    other.wait_drawn("#view-own_lengths .panel")
    assert other.page.evaluate(BARS, "own_lengths") == len(wanted)
