"""A mask taken away and the positions lab, on the page: numbers read and held against the trace."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from serving import Server
from visit import Visit

from transformer.analysis.mask_removal import without_mask
from transformer.ui.examples import EXAMPLES
from transformer.views.masks.removal import sentence_of
from transformer.views.positions.inputs import input_parts
from transformer.views.positions.positions import formula_difference
from transformer.views.positions.rotation import shift

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
EXAMPLE = EXAMPLES["decoder"]
CELLS = """([name, trace]) => document.querySelector(`[data-picture=${name}]`)._fullData[trace].z
    .map(row => [...row])"""


def seen(page: Visit, selector: str) -> None:
    """Scroll there and wait until it is drawn."""
    page.wait_drawn(selector)


def test_a_mask_is_taken_away_and_positions_are_measured(visit: Open, server: Server) -> None:
    page = visit()
    page.tab("Masks")
    seen(page, ".removal")
    batch = server.model.trace(list(EXAMPLE.batch))
    says = page.page.locator(".removal-says")
    found = without_mask(batch, 0, "decoder.0.self", 0, "causal")
    assert says.inner_text() == sentence_of(found)
    shown = np.array(page.page.evaluate(CELLS, ["without", 0]), dtype=float)
    np.testing.assert_allclose(shown[found.freed], found.weights[found.freed], atol=1e-6)
    changes = np.array(page.page.evaluate(CELLS, ["changes", 0]), dtype=float)
    np.testing.assert_allclose(changes[0, 0], found.weights[0, 0] - found.real[0, 0], atol=1e-6)
    with page.drawn(".removal"):
        page.page.locator(".removal .switch label").nth(0).click()
    assert "already hides it from the text" in says.inner_text()
    with page.drawn(".removal"):
        page.page.locator(".removal .pick-head").select_option("2")
    assert page.page.locator(".removal").get_attribute("data-which") == "padding"
    page.tab("Positions")
    strips_and_the_chosen_tokens_lines_are_the_runs_own(page, server)
    learned_positions_stand_beside_the_formula_and_get_a_fit(page, server)


def test_a_translators_masks_and_positions(visit: Open, server: Server) -> None:
    page = visit()
    page.choose_model("tiny-translator")
    page.tab("Masks")
    seen(page, ".removal")
    assert page.page.locator(".removal .switch label").all_inner_texts() == ["padding mask"]
    with page.drawn(".removal"):
        page.page.locator(".pick-kind").select_option("decoder self")
    assert page.page.locator(".removal .switch label").count() == 2
    with page.drawn(".removal"):
        page.page.locator(".pick-kind").select_option("decoder cross")
    assert page.page.locator(".removal .switch label").all_inner_texts() == ["padding mask"]
    page.tab("Positions")
    sinusoidal_positions_are_the_formula_and_turn(page, server)


def strips_and_the_chosen_tokens_lines_are_the_runs_own(page: Visit, server: Server) -> None:
    seen(page, ".position-inputs")
    run = server.model.generate(EXAMPLE.text, **EXAMPLE.settings)
    parts = input_parts(run)
    for trace, name in enumerate(("token", "position", "sum")):
        shown = page.page.evaluate(CELLS, ["strips", trace])
        np.testing.assert_allclose(shown, parts.part(name), atol=1e-6)
    lengths = page.page.locator(".input-lengths").inner_text()
    told = [float(number) for number in re.findall(r"\d+\.\d\d", lengths)]
    assert told == [round(parts.mean_length(name), 2) for name in ("token", "position", "sum")]
    with page.drawn(".position-inputs"):
        page.tokens.nth(3).click()
    lines = (
        "() => document.querySelector('[data-picture=token]').calcdata.map(l => l.map(p => p.y))"
    )
    for line, name in zip(page.page.evaluate(lines), ("token", "position", "sum"), strict=True):
        np.testing.assert_allclose(line, parts.part(name)[3], atol=1e-6)
    assert run.labels[3] in page.page.locator(".input-title").inner_text()


def learned_positions_stand_beside_the_formula_and_get_a_fit(page: Visit, server: Server) -> None:
    seen(page, ".position-formula")
    run = server.model.generate(EXAMPLE.text, **EXAMPLE.settings)
    assert page.page.locator(".formula-use").inner_text() == "not used by this model"
    formula = page.page.locator(".position-formula")
    assert float(str(formula.get_attribute("data-difference"))) == formula_difference(run)
    seen(page, ".position-shift")
    says = page.page.locator(".shift-says")
    assert f"{100 * shift(run, 1).relative_miss:.1f} %" in says.inner_text()
    with page.drawn(".position-shift"):
        page.page.locator(".steps-k").fill("7")
        page.page.locator(".steps-k").press("Enter")
    found = shift(run, 7)
    np.testing.assert_allclose(page.page.evaluate(CELLS, ["shift", 0]), found.matrix, atol=1e-5)
    assert f"{100 * found.relative_miss:.1f} %" in says.inner_text()
    assert f"{100 * found.chance:.1f} %" in says.inner_text()
    page.page.locator(".steps-k").fill("24")  # 48 positions of 24 dimensions: 23 is the most
    page.page.locator(".steps-k").press("Enter")
    assert "from 1 to 23; got 24" in page.wait_for_alert()


def sinusoidal_positions_are_the_formula_and_turn(page: Visit, server: Server) -> None:
    seen(page, ".position-formula")
    assert "largest difference 0" in page.page.locator(".formula-says").inner_text()
    seen(page, ".position-shift")
    with page.drawn(".position-shift"):
        page.page.locator(".steps-k").fill("5")
        page.page.locator(".steps-k").press("Enter")
    example = EXAMPLES["encoder-decoder"]
    run = server.translator.generate(example.text, **example.settings)
    found = shift(run, 5, "encoder")
    moved = page.page.locator(".position-shift")
    assert float(str(moved.get_attribute("data-miss"))) == pytest.approx(found.largest_miss)
    assert "Tried on all 35 pairs" in page.page.locator(".shift-says").inner_text()
    seen(page, ".position-inputs")
    with page.drawn(".position-inputs"):
        page.page.locator(".positions .kinds button").nth(1).click()
    shown = page.page.evaluate(CELLS, ["strips", 0])
    np.testing.assert_allclose(shown, input_parts(run, "decoder").token, atol=1e-6)
