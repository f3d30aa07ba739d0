"""A translator on the page: two texts, three kinds of attention, alignment, search and batch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from serving import Server
from visit import Visit

from transformer.ui.examples import EXAMPLES

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
EXAMPLE = EXAMPLES["encoder-decoder"]
LINKS = "document.querySelector('.lines').layout.meta.links"
FILLED = """name => document.querySelector(`[data-picture=${name}]`).calcdata[0][0].z
    .map(row => [...row].filter(Number.isFinite).length)"""


@pytest.fixture
def page(visit: Open) -> Visit:
    opened = visit()
    opened.choose_model("tiny-translator")
    return opened


def test_only_another_model_changes_what_is_shown_and_the_text_goes_with_it(
    visit: Open, server: Server
) -> None:
    page = visit()
    page.set_length(6)
    page.generate("The fox")
    first, address = page.shown_run(), page.wait_for_address("text=The+fox")
    choice, box = page.page.locator("#model input"), page.page.locator("#text textarea")
    for leave in ("Escape", "Tab"):
        choice.click()
        page.page.get_by_role("option", name="tiny", exact=True).wait_for()
        page.page.keyboard.press(leave)
        box.click()
    choice.click()
    page.page.get_by_role("option", name="tiny", exact=True).click()  # which is shown already
    assert page.shown_run() == first
    page.choose_model("tiny-translator")
    assert page.page.evaluate("viz.run.text") == box.input_value() == "The fox"
    run = server.translator.generate("The fox", beams=4, max_new_tokens=6)
    expect(page.tokens).to_have_text(run.labels)  # its tokens may still be on their way
    assert page.page.locator("#generate").inner_text() == EXAMPLE.action
    assert page.sources.count() == len(run.source_ids)
    assert page.wait_for_address("model=tiny-translator") != address
    page.page.go_back()
    page.page.wait_for_function("() => viz.run.model === 'tiny' && !viz.isOpening()")
    counts = page.page.evaluate("[viz.run.labels.length - viz.run.n_prompt, viz.run.text]")
    assert counts == [6, "The fox"]
    assert page.wait_for_address("text=The+fox") == address


def test_choosing_it_draws_a_stored_translation(page: Visit, server: Server) -> None:
    run = server.translator.generate(EXAMPLE.text, **EXAMPLE.settings)
    assert page.page.locator("#text textarea").input_value() == EXAMPLE.text
    assert page.tokens.count() == len(run.ids)
    assert "A stored example" in page.page.locator("#status").inner_text()
    source_and_target_tokens_light_their_row_or_column(page)
    a_batch_shows_padding_where_it_acts(page, server)


def test_each_kind_of_attention_has_its_own_axes_and_numbers(page: Visit, server: Server) -> None:
    page.generate("The fox ran to the park.")
    run = server.translator.generate("The fox ran to the park.", beams=4, max_new_tokens=40, seed=3)
    for stack, kind in [("encoder", "self"), ("decoder", "self"), ("decoder", "cross")]:
        page.attention(f"{stack} {kind}")
        meta = page.page.evaluate("document.querySelector('.attention .large').layout.meta")
        assert meta["query_labels"] == list(run.queries(stack))
        assert meta["key_labels"] == list(run.keys(stack, kind))
        page.point_at(1, 0)
        expected = run.trace[stack, 0, kind].pattern[0, 0, 1, 0]
        assert float(page.read("weight")) == pytest.approx(float(expected), abs=6e-5)


def source_and_target_tokens_light_their_row_or_column(page: Visit) -> None:
    page.attention("decoder cross")
    page.tokens.nth(2).click()
    assert page.large.get_attribute("data-row") == "2"
    assert page.large.get_attribute("data-column") == ""
    page.sources.nth(1).click()
    assert page.large.get_attribute("data-row") == ""
    assert page.large.get_attribute("data-column") == "1"
    assert "This key is read most by" in page.page.locator(".top-keys").inner_text()
    page.point_at(3, 2)
    assert "is-query" in str(page.tokens.nth(3).get_attribute("class"))
    assert "is-key" in str(page.sources.nth(2).get_attribute("class"))
    page.attention("encoder self")
    assert page.large.get_attribute("data-row") == "1"


def test_alignment_draws_the_most_read_source_token(page: Visit, server: Server) -> None:
    run = server.translator.generate(EXAMPLE.text, **EXAMPLE.settings)
    page.attention("decoder cross")
    assert page.page.locator(".lines").is_hidden()
    with page.drawn(".attention"):
        page.page.locator(".pictures label").nth(1).click()
    weights = run.trace["decoder", 0, "cross"].pattern[0, 0]
    links = {to: source for to, source, _ in page.page.evaluate(LINKS)}
    for place in range(1, len(run.ids)):
        assert links[place] == int(weights[place - 1].argmax())
    with page.drawn(".attention"):
        page.page.locator(".over label").nth(2).click()
    mean = run.trace.weights("decoder", "cross")[:, 0].mean(dim=(0, 1))
    links = {to: source for to, source, _ in page.page.evaluate(LINKS)}
    assert links[1] == int(mean[0].argmax())
    with page.drawn(".attention"):
        page.page.locator(".by label").nth(1).click()
    links = {to: source for to, source, _ in page.page.evaluate(LINKS)}
    assert links[1] == int(mean[1].argmax())


def test_a_search_lists_its_texts_and_draws_its_tree(page: Visit, server: Server) -> None:
    page.generate("The dog")
    run = server.translator.generate("The dog", beams=4, max_new_tokens=40, seed=3)
    assert run.search is not None
    rows = page.page.locator(".hypotheses tbody tr")
    expect(rows).to_contain_text([f"{one.score:.3f}" for one in run.search.hypotheses])
    page.tab("Prediction")
    page.wait_drawn(".tree-box")
    page.page.wait_for_function(
        "n => document.querySelector('.tree')?.layout?.meta?.nodes?.length === n",
        arg=sum(len(step) for step in run.search.tree),
    )
    page.tab("Attention")
    page.page.get_by_role("button", name="Settings").click()
    page.page.get_by_role("radio", name="greedy: always the likeliest").check()
    page.generate("The dog")
    expect(page.page.locator(".hypotheses")).to_be_hidden()
    page.tab("Prediction")
    page.page.locator("[data-section=beams]").wait_for(state="detached")


def a_batch_shows_padding_where_it_acts(page: Visit, server: Server) -> None:
    page.tab("Masks")
    page.wait_drawn(".masks")
    texts = ["The fox.", "The dog ran to the park."]
    page.page.locator("#lines textarea").fill("\n".join(texts))
    with page.drawn(".masks"):
        page.page.locator("#show-masks").click()
    batch = server.translator.translate_batch(texts, max_new_tokens=200)
    assert batch.target_padding is not None
    sources, targets = batch.padding.sum(dim=1).tolist(), batch.target_padding.sum(dim=1).tolist()
    assert page.page.evaluate(FILLED, "padded") == sources
    page.wait_drawn(".targets")
    assert page.page.evaluate(FILLED, "padded-targets") == targets
    assert page.page.evaluate(FILLED, "combined") == [sources[0]] * batch.ids.shape[1]
    with page.drawn(".masks"):
        page.page.locator(".pick-kind").select_option("decoder self")
    width = batch.target_padding.shape[1]
    combined = [min(row + 1, targets[0]) for row in range(width)]
    assert page.page.evaluate(FILLED, "combined") == combined
    with page.drawn(".masks"):
        page.page.locator(".pick-kind").select_option("decoder cross")
    assert page.page.evaluate(FILLED, "combined") == [sources[0]] * width
    assert page.page.evaluate(FILLED, "causal") == [batch.ids.shape[1]] * width
