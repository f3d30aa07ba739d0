"""The model's own page: the drawing and the list of its blocks, its card, its settings."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from serving import Server
from visit import Visit

from transformer.model.summary import blocks

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]

SELECTED = (
    "document.querySelector('#right button[role=tab][aria-selected=true]')?.textContent.trim()"
)
BOX = "document.querySelector('[data-picture=architecture]')"
AT = """name => {
    const box = document.querySelector("[data-picture=architecture]");
    const { margin, meta } = box._fullLayout;
    const block = meta.blocks.find((one) => one.name === name);
    const place = box.getBoundingClientRect();
    return [place.left + margin.l + block.x + block.width / 2,
            place.top + margin.t + meta.height - block.y - block.height / 2];
}"""


def open_model(page: Visit) -> None:
    page.tab("Model")
    page.wait_drawn(".architecture")


def test_card_settings_list_and_drawing_follow_the_model(visit: Open, server: Server) -> None:
    page = visit()
    open_model(page)
    card = page.page.locator("#card")
    page.page.get_by_role("button", name="Model card").click()
    card.get_by_text("Random weights, for tests.").wait_for()
    assert "d_model" not in card.inner_text()
    page.page.get_by_role("button", name="All settings").click()
    table = page.page.locator("#settings-table")
    table.get_by_text(f"{server.model.n_parameters:,}").wait_for()
    page.tab("Attention")
    page.choose_model("tiny-translator")
    page.tab("Model")
    card.get_by_text("tiny-translator").wait_for()
    table.get_by_text(f"{server.translator.n_parameters:,}").wait_for()
    page.wait_drawn(".architecture")
    the_list_and_the_drawing_tell_the_networks_own_numbers(page, server)
    a_block_leads_to_its_view_by_keyboard(page)


def the_list_and_the_drawing_tell_the_networks_own_numbers(page: Visit, server: Server) -> None:
    model = server.translator
    title = page.page.locator(".architecture-title").inner_text()
    assert title == f"Architecture: encoder and decoder, {model.n_parameters:,} parameters"
    parts = page.page.locator(".part")
    assert page.page.locator(".architecture .as-table").count() == 0  # the list is its table
    found = blocks(model.config)
    assert parts.count() == len(found)
    drawn = page.page.evaluate(f"{BOX}._fullData[0].text.map(String)")
    for place, block in enumerate(found):
        assert parts.nth(place).get_attribute("data-block") == block.name
        number = f"{block.each:,} × {block.times}" if block.times > 1 else f"{block.each:,}"
        assert f"{number} parameters" in parts.nth(place).inner_text()
        assert block.kind == "softmax" or f"{block.each:,}" in drawn[place]


def a_block_leads_to_its_view_by_keyboard(page: Visit) -> None:
    cross = page.page.locator(".part[data-block='decoder.cross']")
    cross.focus()
    says = page.page.locator(".architecture-says")
    assert "Each token of the decoder gathers from the encoder's output" in says.inner_text()
    assert page.page.locator(".here").is_visible()
    with page.drawn(".attention"):
        cross.press("Enter")
    assert page.page.evaluate(SELECTED) == "Attention"
    assert page.page.evaluate("[viz.head.stack, viz.head.kind]") == ["decoder", "cross"]
    page.page.wait_for_function(
        "document.querySelector('.attention')?.dataset.site === 'decoder.0.cross'"
    )
    page.tab("Model")
    page.page.locator(".part[data-block='encoder.positions']").press("Enter")
    assert page.page.evaluate(SELECTED) == "Positions"


def test_a_block_of_the_drawing_can_be_pointed_at_and_clicked(visit: Open) -> None:
    page = visit()
    open_model(page)
    says = page.page.locator(".architecture-says")
    page.page.mouse.move(*page.page.evaluate(AT, "decoder.feed_forward"), steps=4)
    says.get_by_text("No token sees another here.").wait_for()
    assert "(T, 24) → (T, 48) → (T, 24)" in says.inner_text()
    assert page.page.locator(".architecture-drawing .hovertext").count() == 0  # it hides no block
    page.page.mouse.click(*page.page.evaluate(AT, "decoder.feed_forward"))
    page.page.wait_for_function(
        "document.querySelector('.equations')?.dataset.topic === 'feed-forward'"
    )
    assert page.page.evaluate(SELECTED) == "Model"  # its formula stands below
    page.page.locator(".architecture-title").scroll_into_view_if_needed()
    page.page.mouse.move(*page.page.evaluate(AT, "head"), steps=4)
    says.get_by_text("Press to open Prediction.").wait_for()
    page.page.mouse.click(*page.page.evaluate(AT, "head"))
    page.wait_drawn(".prediction")
    assert page.page.evaluate(SELECTED) == "Prediction"
