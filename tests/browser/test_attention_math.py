"""One row worked out on the page: the browser's numbers are the trace's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from serving import Server
from visit import Visit

from transformer import Run
from transformer.ui.examples import EXAMPLES
from transformer.views import row_arithmetic

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
EXAMPLE = EXAMPLES["decoder"]
LINES = """() => [...document.querySelectorAll('.row-table tr[data-key]')].map(line =>
    [Number(line.dataset.key), ...[...line.querySelectorAll('td')].slice(0, 5).map(
        cell => cell.textContent.replace('−', '-'))])"""
SHOWN = """([site, head, query]) => {
    const d = document.querySelector('.attention-math')?.dataset ?? {};
    return d.site === site && d.head === head && d.query === query; }"""


@pytest.fixture
def page(visit: Open) -> Visit:
    opened = visit()
    opened.wait_drawn(".attention-math")
    return opened


def until(page: Visit, site: str, head: int, query: int) -> None:
    """Look there, and wait until this row is worked out: what is far away is not drawn."""
    page.wait_drawn(".attention-math")
    page.page.wait_for_function(SHOWN, arg=[site, str(head), str(query)])


def check(page: Visit, run: Run, site: str, head: int, query: int) -> None:
    """Every line of the table against the arithmetic of Python, which has its own tests."""
    until(page, site, head, query)
    found = row_arithmetic(run, site, head, query)
    lines = page.page.evaluate(LINES)
    assert len(lines) == min(32, len(found.key_labels))
    for key, dot, score, mask, exp, weight in lines:
        assert float(dot) == pytest.approx(found.dots[key], abs=6e-4)
        assert float(score) == pytest.approx(found.scores[key], abs=6e-4)
        assert (mask == "+ 0") == found.allowed[key]
        assert float(exp) == pytest.approx(found.exps[key], abs=6e-4)
        assert float(weight) == pytest.approx(found.weights[key], abs=6e-4)
    root = page.page.locator(".attention-math")
    assert root.get_attribute("data-agrees") == "true"
    difference = float(str(root.get_attribute("data-weight-difference")))
    assert difference == pytest.approx(found.weight_difference, abs=1e-6)  # another trace, packed
    assert "below 1e−5" in page.page.locator(".agreement").inner_text()


def test_the_browser_reckons_the_rows_that_are_chosen(page: Visit, server: Server) -> None:
    run = server.model.generate(EXAMPLE.text, **EXAMPLE.settings)
    last = len(run.ids) - 1
    check(page, run, "decoder.0.self", 0, last)
    best = int(row_arithmetic(run, "decoder.0.self", 0, last).weights.argmax())
    assert page.page.locator(".attention-math").get_attribute("data-key") == str(best)
    page.head(1, 2).click()
    check(page, run, "decoder.1.self", 2, last)
    page.tokens.nth(5).click()
    check(page, run, "decoder.1.self", 2, 5)
    assert (
        run.labels[5]
        in page.page.locator("[data-section=attention_math] .section-finding").inner_text()
    )
    drawn = "document.querySelector('[data-picture=attention_math]').calcdata[0][0].z.length"
    assert page.page.evaluate(drawn) == len(run.ids)
    page.head(0, 0).click()
    a_chosen_key_is_written_out_with_its_numbers(page, run)
    the_table_behind_the_picture_holds_all_that_it_shows(page, run)


def a_chosen_key_is_written_out_with_its_numbers(page: Visit, run: Run) -> None:
    page.tokens.nth(6).click()
    until(page, "decoder.0.self", 0, 6)
    found = row_arithmetic(run, "decoder.0.self", 0, 6)
    key = int(found.weights.argsort()[-2])  # the second best
    assert found.weights[key] > 0.001
    page.page.locator(f".row-table tr[data-key='{key}'] button").click()
    steps = page.page.locator(".row-steps").inner_text().replace("−", "-")
    assert f"{found.q[0]:.2f}".lstrip("-") in steps
    assert f"= {found.dots[key]:.3f}" in steps
    assert f"/ √8 = {found.scores[key]:.3f}" in steps
    assert f"{found.exps.sum():.3f} = {found.weights[key]:.3f}" in steps
    assert f"= {found.output[0]:.3f}" in steps
    page.page.locator(".row-table tr[data-key='7'] button").click()
    assert "the mask hides this key" in page.page.locator(".row-steps").inner_text()


def the_table_behind_the_picture_holds_all_that_it_shows(page: Visit, run: Run) -> None:
    page.tokens.nth(4).click()
    until(page, "decoder.0.self", 0, 4)
    found = row_arithmetic(run, "decoder.0.self", 0, 4)
    behind = page.page.locator(".attention-math .as-table")
    behind.locator("summary").click()
    behind.locator("tr").first.wait_for()  # the table is filled when it opens

    def line(place: int) -> list[str]:
        return behind.locator("tr").nth(place).locator("th, td").all_text_contents()

    n_keys = len(found.key_labels)
    assert line(0) == ["vector", "score", "weight", *(f"dimension {at}" for at in range(8))]
    assert line(1)[:3] == [f"q, query 4 {run.labels[4]}", "", ""]
    assert numbers(line(1)[3:]) == pytest.approx(found.q, abs=6e-5)
    assert line(4)[0] == f"key 2 {run.labels[2]}"
    assert numbers(line(4)[1:3]) == pytest.approx([found.scores[2], found.weights[2]], abs=6e-5)
    assert numbers(line(4)[3:]) == pytest.approx(found.keys[2], abs=6e-5)
    assert line(8)[2] == "0.0000, hidden"  # key 6 stands in the future of query 4
    while behind.get_by_label("Next rows").is_enabled():
        behind.get_by_label("Next rows").click()
    last = behind.locator("tr").last.locator("th, td").all_text_contents()
    assert behind.get_by_text(f"of {n_keys + 2}").is_visible()
    assert last[0] == "output"
    assert numbers(last[3:]) == pytest.approx(found.output, abs=6e-5)


def numbers(texts: list[str]) -> list[float]:
    """Numbers as a table writes them."""
    return [float(text) for text in texts]


def test_a_translation_has_rows_of_each_kind_of_attention(visit: Open, server: Server) -> None:
    page = visit()
    page.choose_model("tiny-translator")
    example = EXAMPLES["encoder-decoder"]
    run = server.translator.generate(example.text, **example.settings)
    page.attention("encoder self")
    check(page, run, "encoder.0.self", 0, len(run.source_ids) - 1)
    page.attention("decoder cross")
    last = len(run.queries("decoder")) - 1
    check(page, run, "decoder.0.cross", 0, last)
    page.sources.nth(1).click()  # not a query of this attention: the last one stays
    until(page, "decoder.0.cross", 0, last)
    page.tokens.nth(1).click()
    check(page, run, "decoder.0.cross", 0, 1)
