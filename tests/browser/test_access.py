"""For everybody: axe-core's rules on every tab, tables behind pictures, the keyboard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pytest
from serving import Server
from visit import COLOURS, Visit, complaints

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
DRAWN = {
    "Journey": ".journey", "Attention": ".attention", "Masks": ".masks", "Positions": ".positions",
    "Prediction": ".prediction", "What if?": ".breaks", "Learn": ".learn",
    "Model": ".architecture",
}  # fmt: skip


MORE_OF_A_TRANSLATOR = ("Journey", "Attention", "Masks", "Prediction")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_whole_page(visit: Open, server: Server, scheme: str) -> None:
    """Gradio's own controls included, without exceptions: all of the page on the first tab, then
    the tabs, beside which nothing changes; of a translator those that it has more on. Every rule in
    the light; in the dark, where nothing but colours differs, those of colours."""
    page = visit(color_scheme=scheme)
    page.page.get_by_role("button", name="Settings").click()
    look_at(page, DRAWN, rules=COLOURS if scheme == "dark" else ())
    if scheme == "light":
        page.tab("Attention")
        page.choose_model(server.translator.name)
        look_at(page, MORE_OF_A_TRANSLATOR)


def look_at(page: Visit, tabs: Iterable[str], rules: Sequence[str] = ()) -> None:
    for tab in tabs:
        page.tab(tab)
        page.wait_drawn(DRAWN[tab])
        whole = "body" if tab == "Journey" else "#right"
        assert complaints(page, whole, rules=rules) == [], tab


def test_axe_sees_a_text_that_is_too_pale(still: Visit) -> None:
    """One of many that stand alike is looked at, and one alone that does not."""
    still.page.evaluate("""() => document.body.insertAdjacentHTML("beforeend",
        '<p id=pale style="background: white">' + "<b>dark</b>".repeat(9)
        + '<b style="color: #bbb">pale</b>'.repeat(3) + "</p>")""")
    try:
        (told,) = complaints(still, "#pale", rules=COLOURS)
        assert told.startswith('color-contrast: <b style="color: #bbb"')
    finally:
        still.page.locator("#pale").evaluate("it => it.remove()")


def test_the_table_behind_the_large_heatmap_has_the_weights(still: Visit, server: Server) -> None:
    page = still
    run = server.model.generate(**page.example_request())
    page.page.locator(".large-side .as-table summary").first.click()
    table = page.page.locator(".large-side .as-table table")
    weights = run.trace["decoder.0.self"].pattern[0, 0]
    assert f"5 {run.tokens[5]}" in table.locator("tbody tr").nth(5).locator("th").inner_text()
    cells = table.locator("tbody tr").nth(5).locator("td").all_inner_texts()
    assert [float(text) for text in cells[:6]] == pytest.approx(weights[5, :6].tolist(), abs=6e-5)
    assert set(cells[6:]) == {"hidden"}


def test_a_table_larger_than_a_page_can_be_leafed_through(still: Visit, server: Server) -> None:
    page = still
    page.tab("Positions")
    page.wait_drawn(".positions")
    matrix = server.model.network.embedding.positions.matrix
    box = page.page.locator("section", has=page.page.locator("[data-picture=matrix]"))
    box.locator(".as-table summary").click()
    box.get_by_role("button", name="Next rows").click()
    cells = box.locator("tbody tr").first.locator("td").all_inner_texts()
    assert [float(text) for text in cells] == pytest.approx(matrix[24, :12].tolist(), abs=6e-5)
