"""Masks, positions, candidates and the model's own page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import whatif
from playwright.sync_api import BrowserContext, expect
from serving import Server
from visit import WAIT_MS, Visit

from transformer.ui.examples import EXAMPLES
from transformer.views.drawing import style

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
EXAMPLE = EXAMPLES["decoder"]

PARTS = {
    "Attention": (".attention-math",),
    "Masks": (".masks", ".removal"),
    "Positions": (".positions", ".position-inputs", ".position-formula", ".position-shift"),
    "Prediction": (".prediction",),
    "What if?": whatif.PARTS,
    "Model": (".architecture",),
}
COUNTING = """
    const frame = window.requestAnimationFrame.bind(window);
    window.frames_asked = 0;
    window.requestAnimationFrame = (tick) => { window.frames_asked += 1; return frame(tick); };
"""
FILLED = """name => document.querySelector(`[data-picture=${name}]`).calcdata[0][0].z
    .map(row => [...row].filter(Number.isFinite).length)"""


def test_masks_then_positions_then_candidates(visit: Open, server: Server) -> None:
    page = visit()
    masks_of_the_stored_batch_then_of_the_visitors_own_lines_and_without_one(page, server)
    positions_then_candidates_of_the_chosen_token(page, server)


def masks_of_the_stored_batch_then_of_the_visitors_own_lines_and_without_one(
    page: Visit, server: Server
) -> None:
    assert page.page.locator(".masks").count() == 0  # nothing is made before the tab is seen
    page.tab("Masks")
    page.wait_drawn(".masks")
    assert page.page.locator(".sentence").count() == len(EXAMPLE.batch)
    page.page.locator("#lines textarea").fill("The fox.\n\nThe dog ran to the park.")
    with page.drawn(".masks"):
        page.page.locator("#show-masks").click()
    batch = server.model.trace(["The fox.", "The dog ran to the park."])
    lengths = batch.padding.sum(dim=1).tolist()
    width = batch.ids.shape[1]
    assert page.page.evaluate(FILLED, "padded") == lengths
    assert page.page.evaluate(FILLED, "padding") == [lengths[0]] * width
    assert page.page.evaluate(FILLED, "causal") == list(range(1, width + 1))
    combined = [min(row + 1, lengths[0]) for row in range(width)]
    assert page.page.evaluate(FILLED, "combined") == combined
    page.wait_drawn(".mask-scores")
    assert page.page.evaluate(FILLED, "scores") == [width] * width
    assert page.page.evaluate(FILLED, "masked") == combined
    with page.drawn(".masks"):
        page.page.locator(".sentence").nth(1).click()
    assert page.page.evaluate(FILLED, "padding") == [width] * width
    page.page.locator("#lines textarea").fill("fox " * 20)
    with page.drawn(".masks"):
        page.page.locator("#show-masks").click()
    words = page.page.locator("[data-picture=padded] .hm text").all_text_contents()
    assert len(words) == page.page.evaluate("viz.batch.lengths[0]") > 16
    read_again_without_its_padding_mask(page, server)


def read_again_without_its_padding_mask(page: Visit, server: Server) -> None:
    page.page.locator("#lines textarea").fill("The fox.\nThe dog ran to the park.")
    with page.drawn(".masks"):
        page.page.locator("#without-padding").click()
    assert "read without the padding mask" in page.page.locator("#status").inner_text()
    width = server.model.trace(["The fox.", "The dog ran to the park."]).ids.shape[1]
    page.wait_drawn(".mask-scores")
    for name in ("combined", "masked"):  # the causal mask alone is left
        assert page.page.evaluate(FILLED, name) == list(range(1, width + 1))
    assert page.page.evaluate(FILLED, "padding") == [width] * width
    assert "Only the causal mask is left" in page.page.locator(".combined-note").inner_text()
    toggle = page.page.locator("#without-padding")
    assert toggle.get_attribute("aria-pressed") == "true"
    page.wait_drawn(".removal")
    expect(page.page.locator(".removal .switch input")).to_have_count(1)
    assert page.page.locator(".removal .switch input").input_value() == "causal"
    with page.drawn(".masks"):
        toggle.click()
    assert toggle.get_attribute("aria-pressed") == "false"
    assert "only if both masks allow it" in page.page.locator(".combined-note").inner_text()


def positions_then_candidates_of_the_chosen_token(page: Visit, server: Server) -> None:
    page.tab("Positions")
    page.wait_drawn(".positions")
    z = "name => document.querySelector(`[data-picture=${name}]`).calcdata[0][0].z.map(r => [...r])"
    matrix = server.model.network.embedding.positions.matrix
    shown = page.page.evaluate(z, "matrix")
    assert [len(shown), len(shown[0])] == list(matrix.shape)
    assert shown[3] == pytest.approx(matrix[3].tolist(), abs=1e-6)
    similar = page.page.evaluate(z, "similarity")
    assert similar[2][2] == pytest.approx(1, abs=1e-5)
    page.wait_drawn(".position-curves")
    with page.drawn(".position-curves"):
        page.page.locator(".dimensions").fill("2, 5")
        page.page.locator(".dimensions").press("Enter")
    curves = "() => document.querySelector('[data-picture=curves]').calcdata.map(c => c[3].y)"
    assert page.page.evaluate(curves) == pytest.approx(matrix[3, [2, 5]].tolist(), abs=1e-6)
    page.page.locator(".dimensions").fill("2, 999")
    page.page.locator(".dimensions").press("Enter")
    assert "from 0 to 23" in page.wait_for_alert()
    candidates_of_the_chosen_token(page, server)


def candidates_of_the_chosen_token(page: Visit, server: Server) -> None:
    run = server.model.generate(EXAMPLE.text, **EXAMPLE.settings)
    page.tab("Prediction")
    page.wait_drawn(".prediction")
    with page.drawn(".prediction"):
        page.tokens.nth(run.n_prompt + 1).click()  # after which step 2 chose
    step = run.steps[2]
    assert page.page.locator(".prediction").get_attribute("data-step") == "2"
    title = page.page.locator(".step-title").inner_text()
    assert title.startswith("Step 3 of")
    assert run.tokens[run.n_prompt + 2] in title
    assert f"{step.chosen.probability:.3f}" in title
    window = page.page.locator(".step-window").inner_text()
    assert f"It read all {step.window[1]} tokens before it." in window
    bars = "() => document.querySelector('[data-picture=candidates]').calcdata[0].map(b => b.s)"
    shown = page.page.evaluate(bars)
    likeliest = sorted((c.probability for c in step.candidates), reverse=True)
    assert max(shown) == pytest.approx(likeliest[0], abs=1e-6)
    with page.drawn(".prediction"):
        page.page.locator(".next").click()
    assert page.page.locator(".prediction").get_attribute("data-step") == "3"
    assert page.tokens.nth(run.n_prompt + 2).get_attribute("aria-pressed") == "true"


def test_a_view_out_of_date_says_so_until_it_is_drawn_again_of_a_text_that_slid(
    visit: Open, server: Server
) -> None:
    page = visit()
    page.set_length(60)
    page.tokens.nth(page.page.evaluate("viz.run.n_prompt")).click()  # a step has a picture
    page.tab("Prediction")
    page.wait_drawn(".prediction")
    assert page.page.locator(".prediction").get_attribute("aria-busy") is None
    page.tab("Attention")
    page.page.wait_for_selector(".prediction[aria-busy=true]", state="attached")
    page.generate("The dog")
    assert page.page.locator(".prediction").get_attribute("aria-busy") == "true"
    old = page.rev(".prediction")
    page.tab("Prediction")
    page.wait_drawn(".prediction")
    assert page.rev(".prediction") > old
    count = page.tokens.count()
    if count <= server.model.config.max_len:
        pytest.fail("the text must be longer than the window for this test to say something")
    assert page.page.evaluate("viz.run.trace_start") == count - server.model.config.max_len
    page.tokens.nth(count - 2).click()
    window = page.page.locator(".step-window")
    expect(window).to_contain_text("earlier ones no longer fit")


def page_and_pictures_follow_the_visitors_dark_mode(page: Visit) -> None:
    paper = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, paper.removeprefix("rgb(").rstrip(")").split(","))) < 150
    ink = "document.querySelector('.large')._fullLayout.font.color"
    assert page.page.evaluate(ink) == style.DARK.text
    with page.drawn(".attention"):
        page.page.evaluate("document.body.classList.remove('dark')")
    assert page.page.evaluate(ink) == style.LIGHT.text


def test_nothing_is_wider_than_a_phone(visit: Open) -> None:
    """A translator's is in test_hostile_tokens.py."""
    page = visit(width=390, height=844)
    for tab, parts in PARTS.items():
        page.tab(tab)
        for part in parts:
            page.wait_drawn(part)
            assert page.page.evaluate("document.documentElement.scrollWidth") <= 390, part


def test_a_page_in_the_dark_is_dark_and_at_rest_asks_for_no_frame(
    memory: Callable[..., BrowserContext], server: Server
) -> None:
    context = memory(color_scheme="dark")
    context.set_default_timeout(WAIT_MS)
    context.add_init_script(COUNTING)
    opened = context.new_page()
    opened.goto(server.url)
    page = Visit(opened)
    page_and_pictures_follow_the_visitors_dark_mode(page)
    page.generate("The fox.")
    for _ in range(20):  # Gradio's sign of loading swings for some seconds after it is gone
        before = page.page.evaluate("window.frames_asked")
        page.page.wait_for_timeout(500)
        if page.page.evaluate("window.frames_asked") - before < 3:  # a clock asks for thirty
            break
    else:
        pytest.fail("the page never rests")
    assert before > 0
    context.close()
