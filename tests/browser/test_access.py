"""For everybody: axe-core's rules on every tab, tables behind pictures, the keyboard."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from serving import Server
from visit import COLOURS, Visit, complaints

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
DRAWN = {
    "Attention": ".attention", "Masks": ".masks", "Positions": ".positions",
    "Prediction": ".prediction", "What if?": ".breaks", "Learn": ".learn",
    "Model": ".architecture",
}  # fmt: skip


@pytest.mark.parametrize(
    ("model", "scheme"), [("first", "light"), ("translator", "light"), ("first", "dark")]
)
def test_axe_finds_nothing_on_the_whole_page(
    visit: Open, server: Server, model: str, scheme: str
) -> None:
    """Gradio's own controls included, without exceptions: all of the page on the first tab, then
    the tabs, beside which nothing changes; of a translator those that it has more on. Every rule in
    the light; in the dark, where nothing but colours differs, those of colours."""
    rules = COLOURS if scheme == "dark" else ()
    page = visit(color_scheme=scheme)
    if model == "translator":
        page.choose_model(server.translator.name)
    page.page.get_by_role("button", name="Settings").click()
    for tab in ("Attention", "Masks", "Prediction") if model == "translator" else DRAWN:
        page.tab(tab)
        page.wait_drawn(DRAWN[tab])
        whole = "body" if tab == "Attention" else "#right"
        assert complaints(page, whole, rules=rules) == [], tab


def test_the_table_behind_the_large_heatmap_has_the_weights(visit: Open, server: Server) -> None:
    page = visit()
    run = server.model.generate(**page.example_request())
    page.page.locator(".large-side .as-table summary").first.click()
    table = page.page.locator(".large-side .as-table table")
    weights = run.trace["decoder.0.self"].weights[0, 0]
    assert f"5 {run.tokens[5]}" in table.locator("tbody tr").nth(5).locator("th").inner_text()
    cells = table.locator("tbody tr").nth(5).locator("td").all_inner_texts()
    assert [float(text) for text in cells[:6]] == pytest.approx(weights[5, :6].tolist(), abs=6e-5)
    assert set(cells[6:]) == {"hidden"}


def test_a_table_larger_than_a_page_can_be_leafed_through(visit: Open, server: Server) -> None:
    page = visit()
    page.tab("Positions")
    page.wait_drawn(".positions")
    matrix = server.model.network.embedding.positions.matrix
    box = page.page.locator("section", has=page.page.locator("[data-picture=matrix]"))
    box.locator(".as-table summary").click()
    box.get_by_role("button", name="Next rows").click()
    cells = box.locator("tbody tr").first.locator("td").all_inner_texts()
    assert [float(text) for text in cells] == pytest.approx(matrix[24, :12].tolist(), abs=6e-5)
