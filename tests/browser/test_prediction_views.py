"""Surprisal and the logit lens on the page: their numbers, and how they choose a token."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from serving import Server
from visit import Visit

from transformer import with_lens
from transformer.ui.examples import EXAMPLES

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
EXAMPLE = EXAMPLES["decoder"]

BITS = "() => document.querySelector('[data-picture=surprisal]').calcdata[0].map(b => b.s ?? null)"
CELLS = "() => document.querySelector('[data-picture=lens]').calcdata[0][0].z.map(r => [...r])"


@pytest.fixture(scope="module")
def page(still: Visit) -> Visit:
    still.tab("Prediction")
    still.wait_drawn(".prediction")
    return still


def show(page: Visit, name: str) -> None:
    page.wait_drawn(f".{name}-box")


def test_bars_are_the_runs_surprisal_and_choose_the_one_before(page: Visit, server: Server) -> None:
    run = with_lens(server.model, server.model.generate(EXAMPLE.text, **EXAMPLE.settings))
    show(page, "surprisal")
    shown = page.page.evaluate(BITS)
    assert shown[1:] == pytest.approx(list(run.surprisal[1:]), abs=1e-4)
    known = [bits for bits in run.surprisal if bits is not None]
    mean = sum(known) / len(known)
    says = page.page.locator(".surprisal-says").inner_text()
    assert f"Mean {mean:.2f} bits per token" in says
    assert f"perplexity {2**mean:.2f}" in says
    place = max(range(1, len(known) + 1), key=lambda index: shown[index])
    middle = page.place_in("surprisal", place, shown[place] / 2)
    page.page.mouse.move(*middle, steps=3)
    pointed = "document.querySelector('[data-picture=surprisal]')._hoverdata?.[0].x"
    page.page.wait_for_function(f"at => Math.round({pointed}) === at", arg=place)
    page.page.mouse.click(*middle)
    assert page.page.evaluate("viz.query") == {"stack": "decoder", "index": place - 1}
    assert page.tokens.nth(place - 1).get_attribute("aria-pressed") == "true"
    assert page.page.locator(".surprisal-box .band").is_visible()


def test_the_lens_is_the_runs_and_chooses_a_column(page: Visit, server: Server) -> None:
    run = with_lens(server.model, server.model.generate(EXAMPLE.text, **EXAMPLE.settings))
    show(page, "lens")
    cells = page.page.evaluate(CELLS)
    assert len(cells) == server.model.config.n_layers + 1
    for row, shown in enumerate(cells):
        assert shown == pytest.approx(run.lens.probabilities[row, :48, 0].tolist(), abs=1e-5)
    names = page.page.locator(".lens-rows span").all_inner_texts()
    assert names == ["input", "after layer 0", "model's own", "came next", "token read"]
    middle = page.place_in("lens", 3, 1)
    page.page.mouse.move(*middle, steps=3)
    page.page.mouse.click(*middle)
    assert page.page.evaluate("viz.query.index") == 3 + run.trace_start
    page.page.locator(".lens-box summary").click()
    table = page.page.locator(".lens-box .as-table table")
    best = run.candidate_labels[int(run.lens.ids[0, 0, 0])]
    cell = table.locator("tbody tr").first.locator("td").first
    assert cell.inner_text() == f"{best} {float(run.lens.probabilities[0, 0, 0]):.4f}"


def test_a_translations_lens_and_surprisal_are_of_its_own_tokens(
    visit: Open, server: Server
) -> None:
    page = visit()
    page.choose_model("tiny-translator")
    page.generate("The dog")
    model = server.translator
    run = with_lens(model, model.generate("The dog", beams=4, max_new_tokens=40, seed=3))
    page.tab("Prediction")
    drawn = "name => document.querySelector(`.${name}-box`)?.dataset.run === viz.run.run"
    show(page, "surprisal")
    page.page.wait_for_function(drawn, arg="surprisal")
    shown = page.page.evaluate(BITS)
    assert len(shown) == len(run.surprisal) <= len(run.ids)
    assert [2**-bits for bits in shown[1:]] == pytest.approx(
        [step.chosen.probability for step in run.steps][: len(shown) - 1], rel=1e-3
    )
    show(page, "lens")
    page.page.wait_for_function(drawn, arg="lens")
    cells = page.page.evaluate(CELLS)
    assert cells[-1] == pytest.approx(run.lens.probabilities[-1, :48, 0].tolist(), abs=1e-5)
    assert not math.isnan(shown[1])
