"""The main way through the page: a text, its tokens, every head, and the right numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from serving import Server
from visit import Visit

from transformer import Run
from transformer.ui.examples import EXAMPLES

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
EXAMPLE = EXAMPLES["decoder"]


def test_a_stored_run_is_drawn_when_the_page_opens(still: Visit, server: Server) -> None:
    page = still
    run = server.model.generate(EXAMPLE.text, **EXAMPLE.settings)
    assert page.labels() == list(run.tokens)
    config = server.model.config
    assert page.page.locator(".head-grid canvas").count() == config.n_layers * config.n_heads
    assert page.large.get_attribute("data-site") == "decoder.0.self"
    shown = page.page.evaluate(
        """() => [...document.querySelectorAll(".head-grid canvas")].filter(canvas => {
            const { width, height } = canvas;
            const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
            return data.some((value, place) => place % 4 === 3 && value === 255)
                && data.some((value, place) => place % 4 === 3 && value === 0); }).length"""
    )
    assert shown == config.n_layers * config.n_heads  # each has seen cells and masked ones


def test_enter_generates_what_python_generates_and_a_head_has_its_numbers(
    visit: Open, server: Server
) -> None:
    page = visit()
    page.set_length(15)
    page.generate("The dog ran")
    run = server.model.generate("The dog ran", **{**EXAMPLE.settings, "max_new_tokens": 15})
    assert page.labels() == list(run.tokens)
    assert page.page.locator("#tokens .generated").count() == len(run.steps)
    assert "tokens in" in page.page.locator("#status .status").inner_text()
    a_clicked_head_shows_the_numbers_of_the_trace(page, run)
    seed = page.page.locator(".seed-says")
    expect(seed).to_have_text("Seed 3")
    page.page.get_by_role("button", name="Generate", exact=True).click()
    expect(seed).to_have_text("Seed 3 again: the same text.")
    page.page.get_by_role("button", name="New seed").click()
    page.page.wait_for_function("() => viz.run.seed !== 3")
    settings = {**EXAMPLE.settings, "max_new_tokens": 15}
    new = server.model.generate(
        "The dog ran", **{**settings, "seed": page.page.evaluate("viz.run.seed")}
    )
    assert page.labels() == list(new.tokens)
    for name, seen in (("temperature", True), ("seed", True), ("beams", False)):
        expect(page.page.locator(f".setting-{name}")).to_be_visible(visible=seen)
    expect(page.page.locator(".setting-seed input")).to_have_value(str(new.request.seed))


def a_clicked_head_shows_the_numbers_of_the_trace(page: Visit, run: Run) -> None:
    asked: list[str] = []
    page.page.on("request", lambda one: asked.append(one.url))
    page.head(1, 2).hover()
    with page.drawn(".attention"):
        with page.page.expect_request(lambda one: "resources/heatmap" in one.url):
            page.page.mouse.down()  # where the pointer goes down, before it is a click
        page.page.mouse.up()
    assert sum("resources/heatmap" in one for one in asked) == 1
    assert page.large.get_attribute("data-site") == "decoder.1.self"
    assert page.large.get_attribute("data-head") == "2"
    assert page.head(1, 2).get_attribute("aria-pressed") == "true"
    record = run.trace["decoder.1.self"]
    for row, column in [(5, 3), (7, 7), (3, 6)]:
        page.point_at(row, column)
        weight = float(record.pattern[0, 2, row, column])
        assert float(page.read("weight")) == pytest.approx(weight, abs=6e-5)
        score = float(record.scores[0, 2, row, column])
        assert float(page.read("score")) == pytest.approx(score, abs=2e-4)
        assert page.read("allowed") == ("allowed" if column <= row else "hidden")
        assert page.read("query").startswith(run.tokens[row])
        assert page.read("key").startswith(run.tokens[column])
        assert page.read("sum") == "1.0000"


def test_pointing_at_a_cell_lights_its_tokens_and_a_click_pins_it(still: Visit) -> None:
    page = still
    page.point_at(6, 2)
    assert page.tokens.nth(6).evaluate("e => e.classList.contains('is-query')")
    assert page.tokens.nth(2).evaluate("e => e.classList.contains('is-key')")
    page.page.mouse.click(*page.cell(6, 2))
    page.page.wait_for_selector(".pin-note:has-text('Pinned')")
    pinned = page.read("weight")
    page.page.mouse.move(5, 5)
    page.page.wait_for_selector("#tokens .is-query", state="detached")
    assert page.read("weight") == pinned != "–"
    page.page.keyboard.press("Escape")
    page.page.wait_for_selector(".pin-note:has-text('Point at')")
    assert page.read("weight") == "–"


def test_the_stage_switch_draws_scores_masked_scores_and_weights(still: Visit) -> None:
    page = still
    page.show_more()
    with page.drawn(".attention"):
        page.page.get_by_role("radio", name="even", exact=True).check()
    values = "() => document.querySelector('.large').calcdata[0][0].z.map(row => [...row])"
    seen = {}
    names = {"scores": "scores", "masked": "masked scores", "weights": "weights"}
    for stage, name in names.items():
        if page.large.get_attribute("data-stage") != stage:
            with page.drawn(".attention"):
                page.page.get_by_role("radio", name=name, exact=True).check()
        assert page.large.get_attribute("data-stage") == stage
        seen[stage] = page.page.evaluate(values)
    empty = {
        stage: sum(cell is None or cell != cell for row in z for cell in row)
        for stage, z in seen.items()
    }
    size = len(seen["scores"])
    assert empty == {"scores": 0, "masked": size * (size - 1) // 2, "weights": empty["masked"]}
    assert sum(seen["weights"][4][:5]) == pytest.approx(1, abs=1e-5)
    with page.drawn(".attention"):
        page.page.get_by_role("radio", name="boost small weights").check()
    assert sum(page.page.evaluate(values)[4][:5]) > 1  # square roots of the same weights


def test_a_clicked_token_becomes_the_query_and_arrow_keys_walk(still: Visit) -> None:
    page = still
    page.tokens.nth(3).click()
    assert page.large.get_attribute("data-row") == "3"
    assert page.tokens.nth(3).get_attribute("aria-pressed") == "true"
    assert page.page.locator(".band.row").is_visible()
    page.page.keyboard.press("ArrowRight")
    assert page.large.get_attribute("data-row") == "4"
    assert page.page.locator(".top-key").count() > 0
    page.page.keyboard.press("Escape")
    assert page.large.get_attribute("data-row") == ""


def test_a_picture_offers_zoom_and_saving_and_nothing_that_sends_it_away(still: Visit) -> None:
    page = still
    names = "() => document.querySelector('.large')._fullLayout._modeBar.buttonsNames"
    assert "save" in page.page.evaluate(names)
    assert "sendChartToCloud" not in page.page.evaluate(names)
    assert page.page.locator(".axis-labels .yaxis").count() > 1
    ticks = page.page.locator(".colour-bar .tick")
    assert ticks.all_inner_texts() == ["0", "0.01", "0.05", "0.2", "0.5", "1"]
    heights = [tick.evaluate("it => it.getBoundingClientRect().top") for tick in ticks.all()]
    assert heights == sorted(heights, reverse=True)
    with page.page.expect_download() as saved:
        page.page.mouse.move(*page.cell(1, 0))
        page.page.locator(".modebar-btn[data-title='Save as a picture']").click()
    assert saved.value.suggested_filename == "attention.png"


def test_arrow_keys_move_among_the_heads(still: Visit) -> None:
    page = still
    page.head(0, 0).focus()
    with page.drawn(".attention"):
        page.page.keyboard.press("ArrowDown")
    with page.drawn(".attention"):
        page.page.keyboard.press("ArrowRight")
    assert page.large.get_attribute("data-site") == "decoder.1.self"
    assert page.large.get_attribute("data-head") == "1"
    for key in ("ArrowLeft", "ArrowUp"):
        with page.drawn(".attention"):
            page.page.keyboard.press(key)
    assert page.large.get_attribute("data-site") == "decoder.0.self"
    assert page.large.get_attribute("data-head") == "0"


def test_the_bundled_model_is_chosen_drawn_and_generates(visit: Open) -> None:
    page = visit()
    page.choose_model("stories")
    page.page.wait_for_function("document.querySelectorAll('.head-grid canvas').length === 48")
    assert "6 layers × 8 heads" in page.page.locator("#headline").inner_text()
    one_glance_holds_text_grid_head_and_numbers(page)
    page.set_length(20)
    page.generate("Once upon a time")
    assert page.page.locator("#tokens .generated").count() > 0


def one_glance_holds_text_grid_head_and_numbers(page: Visit) -> None:
    page.page.evaluate("window.scrollTo(0, 0)")
    for selector in ("#text", ".head-grid", ".large", ".readout", "#tokens"):
        box = page.page.locator(selector).bounding_box()
        assert box is not None
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 900, selector
