"""The journey and the next-word bars: what is seen is what the server says; a press leads on."""

import re
from typing import Any

import pytest
import torch
from kit.browser import Visit, every
from playwright.sync_api import Locator, expect


@pytest.fixture
def page(still: Visit) -> Visit:
    still.go("model=tiny&tab=journey&site=decoder.0.self&head=0")
    still.wait_drawn(".next-words")
    still.wait_drawn(".journey")
    return still


def message(page: Visit, name: str = "journey", **given: Any) -> Any:
    """What is answered about the shown run, by a server or by the network in the browser."""
    return page.page.evaluate(
        "([name, data]) => viz.ask(name, data)", [name, {"run": page.shown_run(), **given}]
    )


def bars(page: Visit) -> Locator:
    return page.page.locator(".next-word")


def beginning(page: Visit, token: dict[str, Any], place: int) -> str:
    """The word that goes on with a token after `place`, or begins with it."""
    labels, special = page.page.evaluate("[viz.run.labels, viz.run.special]")
    word, at = "", place
    while token["joins"] and at >= 0 and at not in special:
        if at == place and labels[at].endswith((".", ",", ":", ";", "!", "?", "…")):
            break
        word = labels[at] + word
        if labels[at].startswith("␣"):
            break
        at -= 1
    return (word + token["label"]).replace("␣", "")


def choose(page: Visit, place: int) -> None:
    """A token as the last one read."""
    page.press(page.tokens.nth(place), draws=".next-words")
    page.page.wait_for_function(
        "place => document.querySelector('.journey').dataset.place === String(place)", arg=place
    )


@pytest.mark.without_server
def test_the_journey_and_bars_match_the_server_and_a_bar_forces_its_token(page, server):
    choose(page, 4)
    said = message(page, position=4)
    config = server.model.config
    expect(page.page.locator(".picture-of .head")).to_have_count(config.n_layers * config.n_heads)
    words = page.page.locator(".picture-of .lens bdi").all_inner_texts()
    assert words == [beginning(page, one, 4) for one in said["lens"][1:]]
    assert said["target_label"] == said["likeliest"][0]["label"] == said["lens"][-1]["label"]
    shown = bars(page).locator("bdi").all_inner_texts()
    assert len(shown) == 5
    assert shown[:3] == [beginning(page, one, 4) for one in said["likeliest"][:3]]
    came = bars(page).filter(has_text="✓").locator("bdi").inner_text()
    assert came == beginning(page, said["next"], 4)
    adds = page.page.locator(".head-card li").filter(has_text=re.compile("adds"))
    expect(adds).to_contain_text(said["target_label"].removeprefix("␣"))
    asked = page.page.evaluate("viz.controls.max_new_tokens")
    for n_forced in (1, asked + 1):  # the first new token, and one more than were asked for
        last = page.page.evaluate("viz.run.n_prompt") + n_forced - 2
        choose(page, last)
        bar = bars(page).and_(page.page.locator("[aria-disabled=false]")).first
        wanted = int(bar.get_attribute("data-id") or "")
        bar.click()
        page.page.wait_for_function("n => viz.run.forced_tokens.length === n", arg=n_forced)
        assert page.page.evaluate("viz.run.ids")[last + 1] == wanted


@pytest.mark.without_server
def test_readers_work_by_keyboard_and_parts_open_their_tabs(page):
    choose(page, 6)
    page.page.get_by_role("button", name="Who reads what?").press("Enter")
    expect(page.page.get_by_role("button", name="Now choose a second token")).to_be_visible()
    page.tokens.nth(6).focus()
    for place in (5, 4, 3, 2):
        page.page.keyboard.press("ArrowLeft")
        expect(page.tokens.nth(place)).to_be_focused()
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector(".readers")
    said = message(page, "readers", stack="decoder", query=6, kind="self", key=2)
    rows = page.page.locator(".reader")
    weights = [float(row.locator(".value").inner_text()) for row in every(rows)]
    assert weights == pytest.approx([one["weight"] for one in said["ranked"][:5]], abs=0.006)
    rows.first.click()
    best = said["ranked"][0]
    expect(page.head(best["layer"], best["head"])).to_have_attribute("aria-pressed", "true")
    page.page.keyboard.press("Escape")
    expect(page.page.locator(".readers")).to_have_count(0)
    page.head(0, 0).focus()
    page.page.keyboard.press("ArrowRight")
    page.page.keyboard.press("ArrowDown")
    expect(page.head(1, 1)).to_be_focused()
    expect(page.page.locator(".head-card h3")).to_contain_text("Layer 1, head 1")
    for part, tab in (
        (".embedding", "Positions"),
        (".next-head .to-tab:last-child", "Prediction"),
        (".to-masks", "Masks"),
    ):
        page.tab("Journey")
        if part == ".to-masks":  # beside the head that is large, where the picture was
            page.page.locator(".enlarge").click()
            expect(page.page.locator(".journey-body .chosen-head")).to_be_in_viewport(ratio=0.9)
        page.page.locator(part).first.click()
        expect(page.page.get_by_role("tab", name=tab, exact=True, selected=True)).to_be_visible()
    page.tab("Journey")
    page.page.locator(".all-tools[aria-expanded=true]").click()  # the tabs are hidden here again
    page.page.locator(".to-masks").first.click()
    back = page.page.get_by_role("tab", name="Journey")
    back.press("Enter")
    page.page.wait_for_selector("body.first")
    page.page.evaluate("viz.nextPaint()")
    expect(back).to_be_focused()


@pytest.mark.without_server
def test_a_translator_has_its_source_above_and_a_phone_one_layer_at_a_time(page):
    page.go("model=tiny-translator&tab=journey")
    page.wait_drawn(".journey")
    expect(page.page.locator(".picture-of .head")).to_have_count(2 * 2 * 2)
    page.page.locator(".source-stream").click()
    expect(page.page.locator(".picture-of .head")).to_have_count(2 * 2)
    page.page.set_viewport_size({"width": 390, "height": 844})
    page.page.get_by_role("button", name="Next layer").click()
    expect(page.page.locator(".layer-steps strong")).to_have_text("Layer 1 (0 to 1)")
    expect(page.page.locator(".one-layer .head")).to_have_count(2)
    # what the layer adds flows into the stream here, too
    page.page.get_by_role("radio", name="decoder cross").click()
    expect(page.page.locator(".one-layer .flow :is(.adds, .takes)").first).to_be_visible()


@pytest.mark.without_server
def test_each_word_is_left_out_in_the_card_the_text_and_the_bars(page, server):
    choose(page, 4)
    kinds, card = page.page.locator(".card-kinds button"), page.page.locator(".word-card")
    head_card = page.page.locator(".head-card:not(.word-card)")
    box = kinds.nth(1).bounding_box()
    kinds.nth(1).click()
    expect(head_card).to_have_count(0)
    target = message(page, position=4)["target"]
    said = message(page, "word_effects", position=4, target=target)
    before = said["target"]["probability"]
    expect(card).to_have_attribute("aria-busy", "false")
    rows = card.locator(".reader")
    expect(rows).to_have_count(min(5, len(said["words"])))
    size = {one["word"]: abs(one["probability"] - before) for one in said["words"]}
    names = rows.locator("bdi").all_inner_texts()
    assert names == sorted(names, key=lambda name: -size[name])
    # a word of the text is pressed: it is struck out, and the bars are without it
    word = min(said["words"], key=lambda one: size[one["word"]])
    page.tokens.nth(word["places"][0]).click()
    expect(page.page.locator(".token.left")).to_have_count(len(word["places"]))
    expect(page.page.locator(".next-words")).to_have_attribute("data-without", word["word"])
    expect(card.locator(".word-texts")).to_contain_text(word["word"])
    assert page.page.evaluate("viz.query.index") == 4  # the place is the same
    ids = page.page.evaluate("viz.run.ids")[:5]
    kept = [index for place, index in enumerate(ids) if place not in word["places"]]
    logits = server.model.network(torch.tensor([kept]))[0, -1]  # by hand
    assert word["probability"] == pytest.approx(float(logits.softmax(-1)[target]), abs=1e-4)
    assert kinds.nth(1).bounding_box() == box
    kinds.nth(0).click()
    expect(head_card).to_be_visible()
    expect(page.page.locator(".token:is(.helps, .hinders)")).to_have_count(0)
