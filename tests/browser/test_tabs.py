"""Positions, Prediction and Model: each tab's controls, against Python's own numbers."""

import numpy as np
import pytest
from kit.browser import Visit
from kit.serving import Shared
from playwright.sync_api import expect

from transformer import Run, with_lens
from transformer.analysis.layer_at_position import layer_at_position
from transformer.server.kept.page_models import EXAMPLES
from transformer.views.positions.inputs import input_parts
from transformer.views.positions.rotation import shift

EXAMPLE = EXAMPLES["decoder"]
# A clock asks for thirty frames in this time.
RESTS = """() => new Promise(done => {
    const frame = window.requestAnimationFrame.bind(window);
    let asked = 0;
    window.requestAnimationFrame = tick => { asked += 1; return frame(tick); };
    setTimeout(() => { window.requestAnimationFrame = frame; done(asked < 3); }, 500); })"""
BITS = "() => document.querySelector('[data-picture=surprisal]').calcdata[0].map(b => b.s ?? null)"
TOPIC = """([topic, query]) => { const d = document.querySelector(".equations")?.dataset ?? {};
    return d.topic === topic && d.query === String(query); }"""
NUMBERS = """part => [...document.querySelectorAll(
    `.equation-tensor[data-part=${part}] li:not(.is-more)`)].map(cell => [
        parseInt(cell.firstChild.textContent),
        Number(cell.lastChild.textContent.replace("−", "-"))])"""
LIT = """() => ["formula", "code", "tensors"].map(side =>
    [...document.querySelectorAll(`.equation-${side} .is-lit`)].map(one => one.textContent))"""


@pytest.fixture(scope="module")
def run(server: Shared) -> Run:
    return with_lens(server.model, server.model.generate(EXAMPLE.text, **EXAMPLE.settings))


def type_into(page: Visit, box: str, text: str) -> None:
    page.page.locator(box).fill(text)
    page.page.locator(box).press("Enter")


@pytest.mark.without_server
def test_positions_are_those_of_the_chosen_dimensions_token_and_step(page, run):
    page.tab("Positions")
    page.wait_drawn(".positions")
    page.wait_drawn(".position-curves")
    with page.drawn(".position-curves"):
        type_into(page, ".dimensions", "2, 5")
    type_into(page, ".dimensions", "2, 999")
    assert "from 0 to 23" in page.wait_for_alert()
    page.wait_drawn(".position-inputs")
    page.press(page.tokens.nth(3), draws=".position-inputs")
    lines = "document.querySelector('[data-picture=token]').calcdata.map(l => l.map(p => p.y))"
    np.testing.assert_allclose(page.page.evaluate(lines)[2], input_parts(run).sum[3], atol=1e-6)


def test_the_shift_of_positions_is_that_of_the_chosen_step(page, run):
    page.tab("Positions")
    page.wait_drawn(".position-shift")
    type_into(page, ".steps-k", "0")
    assert "got 0" in page.wait_for_alert()
    with page.drawn(".position-shift"):
        type_into(page, ".steps-k", "7")
    expect(page.page.get_by_role("alert")).to_be_hidden()
    found = shift(run, 7)
    expect(page.page.locator(".shift-says")).to_contain_text(f"{100 * found.relative_miss:.1f} %")


@pytest.mark.without_server
def test_candidates_surprisal_and_lens_are_of_the_chosen_token(page, run):
    page.tab("Prediction")
    page.tokens.nth(run.n_prompt + 1).click()  # after which step 2 chose
    step = run.steps[2]
    page.page.wait_for_selector(".prediction[data-step='2']:not([aria-busy])")
    title = page.page.locator(".step-title")
    expect(title).to_contain_text("Step 3 of")
    expect(title).to_contain_text(f"{step.chosen.probability:.3f}")
    expect(title.locator("bdi")).to_have_text(run.labels[run.n_prompt + 2])
    page.press(page.page.locator(".next"), draws=".prediction")
    expect(page.page.locator(".prediction")).to_have_attribute("data-step", "3")
    expect(page.tokens.nth(run.n_prompt + 2)).to_have_attribute("aria-pressed", "true")
    # a bar of surprisal chooses the token before
    page.wait_drawn(".surprisal-box")
    shown = page.page.evaluate(BITS)
    assert shown[1:] == pytest.approx(list(run.surprisal[1:]), abs=1e-4)
    place = max(range(1, len(shown)), key=lambda index: shown[index])
    middle = page.place_in("surprisal", place, shown[place] / 2)
    page.page.mouse.move(*middle, steps=3)
    pointed = "document.querySelector('[data-picture=surprisal]')._hoverdata?.[0].x"
    page.page.wait_for_function(f"at => Math.round({pointed}) === at", arg=place)
    page.page.mouse.click(*middle)
    page.page.wait_for_function("at => viz.query.index === at", arg=place - 1)
    # and a column of the lens its token
    page.wait_drawn(".lens-box")
    middle = page.place_in("lens", 3, 1)
    page.page.mouse.move(*middle, steps=3)
    pointed = "document.querySelector('[data-picture=lens]')._hoverdata?.[0].x"
    page.page.wait_for_function(f"() => Math.round({pointed}) === 3")
    page.page.mouse.click(*middle)
    page.page.wait_for_function("at => viz.query.index === at", arg=3 + run.trace_start)


@pytest.mark.without_server
def test_a_text_longer_than_the_context_is_reported_once(page, server):
    page.set_length(60)
    page.generate("The dog")
    page.tab("Prediction")
    page.wait_drawn(".prediction")
    count, most = page.tokens.count(), server.model.config.max_len
    assert page.page.evaluate("viz.run.trace_start") == count - most > 0
    page.tokens.nth(count - 2).click()
    expect(page.page.locator(".step-head")).to_contain_text("earlier ones no longer fit")
    # Gradio's sign of loading swings for some seconds after it is gone.
    page.page.wait_for_function(RESTS, polling=100)


def test_card_settings_list_and_drawing_follow_the_model(page, server):
    page.tab("Model")
    page.wait_drawn(".architecture")
    page.page.get_by_role("button", name="Model card, settings, words").click()
    for model in (server.model, server.translator):
        if model is server.translator:
            page.tab("Attention")
            page.choose_model(model.name)
            page.tab("Model")
        expect(page.page.locator("#card")).to_contain_text(model.name)
        expect(page.page.locator("#settings-table")).to_contain_text(f"{model.n_parameters:,}")
    page.wait_drawn(".architecture")
    expect(page.page.locator(".architecture-title")).to_have_text(
        f"Architecture: encoder and decoder, {model.n_parameters:,} parameters"
    )
    formula = page.page.locator(".formula-of[data-equation=feed-forward]")
    expect(formula).to_contain_text("ReLU")
    formula.focus()
    expect(page.page.locator(".block.is-here")).to_contain_text("Feed-forward")
    cross = page.page.locator(".block[data-block='decoder.cross']")
    cross.focus()
    expect(page.page.locator(".formula-of.is-here")).to_contain_text("Attention")
    says = page.page.locator(".architecture-says")
    expect(says).to_contain_text("Each token of the decoder gathers from the encoder's output")
    cross.press("Enter")
    page.page.wait_for_selector(".attention[data-site='decoder.0.cross']")
    expect(page.page.get_by_role("tab", name="Attention", selected=True)).to_be_visible()


def test_formula_code_and_numbers_are_gone_through(page, server, run):
    page.go("model=tiny&tab=model&equation=mask")
    root, last = page.page.locator(".equations"), len(run.ids) - 1

    def until(topic: str, query: int) -> None:
        page.wait_drawn(".equations")
        page.page.wait_for_function(TOPIC, arg=[topic, query])

    until("mask", last)
    # hovering lights a tensor's symbol and its code; they stay lit to be read
    root.locator(".tensor-name").last.hover()
    expect(root).to_have_attribute("data-lit", "filled")
    formula, code, tensors = page.page.evaluate(LIT)
    assert (formula, "".join(code).count("where"), len(tensors)) == (["s′j"], 1, 1)
    says = root.locator(".equation-lit")
    expect(says).to_contain_text("scores after the mask · B × H × Tq × Tk")
    page.page.mouse.move(2, 2)
    expect(root).to_have_attribute("data-lit", "filled")

    # the keyboard: another formula, then from name to name
    root.get_by_role("radio", name="Mask").press("ArrowRight")
    until("positions", last)
    page.wait_for_address("equation=positions")
    root.get_by_role("radio", name="Attention").check()
    until("attention", last)
    root.locator(".tensor-name").first.focus()
    assert page.page.evaluate(LIT)[0] == ["q"]
    for _ in range(3):
        page.page.keyboard.press("Tab")
    assert page.page.evaluate(LIT)[0] == ["s", "s"]
    page.page.keyboard.press("Escape")
    assert page.page.evaluate(LIT) == [[], [], []]

    # another token
    page.tokens.nth(4).click()
    root.get_by_role("radio", name="Norm and residual").check()
    until("norm", 4)
    part = layer_at_position(server.model, run, "decoder", 0, 4).part("self")
    for at, value in page.page.evaluate(NUMBERS, "out"):
        assert value == pytest.approx(float(part.out[at]), abs=6e-4)
