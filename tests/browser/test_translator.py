"""A translator on the page: two texts, three kinds of attention, alignment, search and batch."""

import pytest
from kit.browser import Visit
from kit.serving import Shared
from playwright.sync_api import expect

from transformer import Run
from transformer.server.kept.page_models import EXAMPLES

EXAMPLE = EXAMPLES["encoder-decoder"]


@pytest.fixture
def page(still: Visit) -> Visit:
    """With the stored translation."""
    still.go("model=tiny-translator&tab=attention&site=decoder.0.cross&head=0")
    still.wait_drawn(".attention")
    return still


@pytest.fixture(scope="module")
def run(server: Shared) -> Run:
    return server.translator.generate(EXAMPLE.text, **EXAMPLE.settings)


def test_choosing_another_model_keeps_the_text(still, server):
    page = still
    page.set_length(6)
    page.generate("The fox")
    page.tokens.nth(1).click()
    first, address = page.shown_run(), page.wait_for_address("text=The+fox", "read=1")
    choice, box = page.page.locator("#model input"), page.page.locator("#text textarea")
    choice.click()
    option = page.page.get_by_role("option", name="tiny", exact=True)
    expect(option).to_be_visible()
    page.page.keyboard.press("Escape")  # closes the list and not the selection too
    expect(option).to_have_count(0)
    assert page.page.evaluate("viz.query.index") == 1
    choice.blur()
    choice.click()
    option.click()  # which is shown already
    assert page.shown_run() == first
    page.choose_model("tiny-translator")
    expect(box).to_have_value("The fox")
    assert page.page.evaluate("viz.run.text") == "The fox"
    run = server.translator.generate("The fox", beams=4, max_new_tokens=6)
    expect(page.tokens).to_have_text(run.labels)  # its tokens may still be on their way
    expect(page.page.locator("#generate")).to_have_text(EXAMPLE.action)
    expect(page.sources).to_have_count(len(run.source_ids))
    page.page.go_back()
    page.page.wait_for_function("() => viz.run.model === 'tiny' && !viz.isOpening()")
    assert page.wait_for_address("text=The+fox") == address


@pytest.mark.without_server
def test_each_kind_of_attention_has_its_own_axes_numbers_pictures_and_row(page, run):
    expect(page.tokens).to_have_count(len(run.ids))
    alone = {"self": ["heatmap", "lines", "heads combined"],
             "cross": ["heatmap", "alignment", "lines", "heads combined"]}  # fmt: skip
    page.show_more()
    for stack, kind in [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")]:
        page.attention(f"{stack} {kind}")
        meta = page.page.evaluate("document.querySelector('.attention .large').layout.meta")
        assert meta["query_labels"] == list(run.queries(stack))
        assert meta["key_labels"] == list(run.keys(stack, kind))
        page.point_at(1, 0)
        expected = run.trace[stack, 0, kind].pattern[0, 0, 1, 0]
        assert float(page.read("weight")) == pytest.approx(float(expected), abs=6e-5)
        expect(page.page.locator(".pictures label:visible")).to_have_text(alone[kind])
        page.page.mouse.move(5, 5)
        page.wait_worked(f"{stack}.0.{kind}", 0, len(run.queries(stack)) - 1)
    # of cross-attention, source and target tokens light their row or column
    for tokens, row, column in ((page.tokens, "2", ""), (page.sources, "", "1")):
        tokens.nth(int(row or column)).click()
        expect(page.large).to_have_attribute("data-row", row)
        expect(page.large).to_have_attribute("data-column", column)
    page.large.scroll_into_view_if_needed()
    page.point_at(3, 2)
    expect(page.tokens.nth(3)).to_contain_class("is-query")
    expect(page.sources.nth(2)).to_contain_class("is-key")
    # altered, it goes on greedily: nothing is searched any more
    says = page.page.locator(".drawn-says")
    expect(says).to_contain_text("Beam search weighs whole texts")
    page.page.locator("#attention .switch-off").click()
    page.page.wait_for_function("() => viz.run.interventions.length === 1")
    expect(says).not_to_contain_text("Beam search")


@pytest.mark.without_server
def test_a_batch_shows_padding_where_it_acts_and_is_read_without_it(page, server):
    page.tab("Masks")
    page.wait_drawn(".masks")
    expect(page.page.locator(".sentence")).to_have_count(len(EXAMPLE.batch))
    texts = ["The fox.", "The dog ran to the park."]
    page.show_masks(*texts)
    batch = server.translator.translate_batch(texts, max_new_tokens=200)
    assert batch.target_padding is not None
    sources, targets = batch.padding.sum(dim=1).tolist(), batch.target_padding.sum(dim=1).tolist()
    assert page.filled("padded") == sources
    page.wait_drawn(".targets")
    assert page.filled("padded-targets") == targets
    n_source, n_target = batch.ids.shape[1], batch.target_padding.shape[1]
    assert page.filled("combined") == [sources[0]] * n_source
    page.press(page.page.locator(".sentence").nth(1), draws=".masks")
    assert page.filled("combined") == [n_source] * n_source  # it is the longest
    page.press(page.page.locator(".sentence").nth(0), draws=".masks")
    page.press(page.page.locator("#without-padding"), draws=".masks")
    expect(page.page.locator("#status")).to_contain_text("read without the padding mask")
    assert page.filled("padding") == [n_source] * n_source
    page.press(page.page.locator("#without-padding"), draws=".masks")
    with page.drawn(".masks"):
        page.page.locator(".masks .pick-kind").select_option("decoder cross")
    assert page.filled("combined") == [sources[0]] * n_target
