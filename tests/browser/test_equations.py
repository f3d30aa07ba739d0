"""Equation, code and numbers on the page: one way through, by link, pointer, keyboard and touch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from serving import Server
from visit import Visit, complaints

from transformer.analysis.layer_at_place import layer_at_place
from transformer.ui.examples import EXAMPLES
from transformer.views import row_arithmetic

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
EXAMPLE = EXAMPLES["decoder"]
SHOWN = """([topic, query]) => { const d = document.querySelector(".equations")?.dataset ?? {};
    return d.topic === topic && d.query === String(query); }"""
CELLS = """part => [...document.querySelectorAll(
    `.equation-tensor[data-part=${part}] li:not(.is-rest)`)].map(cell => [
        parseInt(cell.firstChild.textContent),
        Number(cell.lastChild.textContent.replace("−", "-"))])"""
LIT = """() => ["formula", "code", "tensors"].map(side =>
    [...document.querySelectorAll(`.equation-${side} .is-lit`)]
        .filter(one => !one.closest(".equation-symbols")).map(one => one.textContent))"""


def until(page: Visit, topic: str, query: int) -> None:
    page.wait_drawn(".equations")
    page.page.wait_for_function(SHOWN, arg=[topic, query])


def test_formula_code_and_numbers_are_gone_through(visit: Open, server: Server) -> None:
    run = server.model.generate(EXAMPLE.text, **EXAMPLE.settings)
    last = len(run.ids) - 1
    page = visit(f"{server.url}#tab=model&equation=softmax")
    root = page.page.locator(".equations")

    # a link leads there, with this run's numbers
    until(page, "softmax", last)
    assert root.get_by_role("radio", name="Softmax").is_checked()
    found = row_arithmetic(run, "decoder.0.self", 0)
    cells = page.page.evaluate(CELLS, "weights")
    assert len(cells) == 6
    for key, weight in cells:
        assert weight == pytest.approx(found.weights[key], abs=6e-4)
    assert root.locator(".equation-formula math[display=block]").count() == 2

    # the pointer lights a tensor's symbol and its code, and lets go of them
    root.locator(".tensor-name").last.hover()
    page.page.wait_for_function("document.querySelector('.equations')?.dataset.lit === 'weights'")
    formula, code, tensors = page.page.evaluate(LIT)
    assert formula == ["wj"]
    assert "".join(code).count("softmax") == 2
    assert len(tensors) == 1
    says = root.locator(".equation-lit")
    assert "weights: each one's share of the sum · B × H × Tq × Tk" in says.inner_text()
    page.page.mouse.move(2, 2)
    page.page.wait_for_function("document.querySelector('.equations')?.dataset.lit === ''")

    # the keyboard: another formula, then from symbol to symbol
    with page.drawn(".equations"):
        root.get_by_role("radio", name="Softmax").press("ArrowRight")
    until(page, "positions", last)
    page.wait_for_address("equation=positions")
    with page.drawn(".equations"):
        root.get_by_role("radio", name="Attention").check()
    until(page, "attention", last)
    stops = root.locator(".equation-formula [tabindex='0']")
    assert stops.count() == 1
    stops.focus()
    assert page.page.evaluate(LIT)[0] == ["q"]
    for _ in range(3):
        page.page.keyboard.press("ArrowRight")
    assert page.page.evaluate(LIT)[0] == ["s", "s"]
    page.page.keyboard.press("ArrowLeft")
    page.page.keyboard.press("ArrowLeft")
    page.page.keyboard.press("ArrowLeft")
    formula, code, tensors = page.page.evaluate(LIT)
    assert (formula, code[0], len(tensors)) == (["q"], "q", 1)
    page.page.keyboard.press("Escape")
    assert page.page.evaluate(LIT) == [[], [], []]
    assert complaints(page, ".equations") == []

    # another token; and on a phone the three stand below each other
    page.page.set_viewport_size({"width": 390, "height": 844})
    page.tokens.nth(4).click()
    root.get_by_role("radio", name="Norm and residual").check()
    until(page, "norm", 4)
    part = layer_at_place(server.model, run, "decoder", 0, 4).part("self")
    for at, value in page.page.evaluate(CELLS, "out"):
        assert value == pytest.approx(float(part.out[at]), abs=6e-4)
    sides = root.locator(".equation-side")
    boxes = [sides.nth(at).bounding_box() for at in range(3)]
    tops = [box["y"] + box["height"] for box in boxes if box]
    assert tops == sorted(tops)
    assert len({round(box["x"]) for box in boxes if box}) == 1
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390
    root.locator(".equation-formula math [data-part=gain]").click()
    assert "the trained scale" in says.inner_text()
