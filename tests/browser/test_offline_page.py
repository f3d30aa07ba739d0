"""The self-contained page in a browser: it draws a run's numbers without asking anyone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictured import HOSTILE, relabelled
from playwright.sync_api import expect
from visit import axe_complaints

from transformer import Model, Run, with_lens
from transformer.views.drawing import style
from transformer.views.export import html
from transformer.views.positions.inputs import input_parts

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module", params=["light", "dark"])
def opened(browser: Any, scripted_page: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The scripted_page, opened from disk; no other request gets through, and none may be tried."""
    context = browser.new_context(color_scheme=request.param)
    tab = context.new_page()
    refused: list[str] = []
    complaints: list[str] = []

    def guard(route: Any) -> None:
        if route.request.url == scripted_page.as_uri():
            route.continue_()
        else:
            refused.append(route.request.url)
            route.abort()

    tab.route("**/*", guard)
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto(scripted_page.as_uri())
    tab.wait_for_selector(".attention[data-rev]")
    yield tab
    context.close()
    assert refused == []
    assert complaints == []


def shown(tab: Any) -> np.ndarray:
    """What the cells of the large heatmap are coloured by; NaN comes as None."""
    cells = tab.evaluate(
        """() => document.querySelector('.large').data[0].z.map(
             (row) => Array.from(row, (v) => (Number.isNaN(v) ? null : v)))"""
    )
    return np.array(cells, dtype=np.float64)


def choose(tab: Any, layer: int, head: int) -> None:
    revision = tab.get_attribute(".attention", "data-rev")
    tab.get_by_role("button", name=f"Layer {layer}, head {head}", exact=True).click()
    expect(tab.locator(".attention")).not_to_have_attribute("data-rev", revision)


def point_at(tab: Any, query: int, key: int) -> None:
    tab.locator(".large").scroll_into_view_if_needed()
    x, y = tab.evaluate(
        """([row, column]) => { const box = document.querySelector('.large');
           const { xaxis, yaxis } = box._fullLayout;
           const edge = box.getBoundingClientRect();
           return [edge.left + xaxis._offset + xaxis.l2p(column),
                   edge.top + yaxis._offset + yaxis.l2p(row)]; }""",
        [query, key],
    )
    tab.mouse.move(x, y)


def see_all(tab: Any, pictures: str) -> None:
    """Open those that are closed, and go from one to the next until all are drawn."""
    for picture in tab.locator(pictures).all():
        picture.evaluate("box => { if ('open' in box) box.open = true; box.scrollIntoView(); }")
        expect(picture.locator(".js-plotly-plot")).to_have_count(1)
        expect(picture).to_have_attribute("data-rev", re.compile("."))
        expect(picture).not_to_have_attribute("aria-busy", "true")


def field(tab: Any, name: str) -> Any:
    """A number of the cell that is pointed at."""
    return tab.locator(f".readout [data-field={name}]")


def test_a_click_on_a_head_draws_its_numbers(opened: Any, scripted: Run) -> None:
    opened.select_option("[name=scale]", "linear")
    before = opened.locator(".large").screenshot()
    for layer, head in ((1, 1), (0, 1), (1, 0)):
        choose(opened, layer, head)
        record = scripted.trace["decoder", layer, "self"]
        allowed = record.allowed[0].numpy()
        z = shown(opened)
        np.testing.assert_allclose(z[allowed], record.pattern[0, head].numpy()[allowed], atol=1e-5)
        assert np.isnan(z[~allowed]).all()
    assert opened.locator(".large").screenshot() != before
    assert opened.locator(".head-grid button[aria-pressed='true']").count() == 1


def test_stages_switch_and_the_pointer_reads_numbers(opened: Any, scripted: Run) -> None:
    choose(opened, 0, 1)
    choose(opened, 0, 0)
    revision = opened.get_attribute(".attention", "data-rev")
    opened.select_option("[name=stage]", "scores")
    expect(opened.locator(".attention")).not_to_have_attribute("data-rev", revision)
    record = scripted.trace["decoder.0.self"]
    np.testing.assert_allclose(shown(opened), record.scores[0, 0].numpy(), atol=1e-4)
    for query, key in ((5, 3), (3, 5)):
        point_at(opened, query, key)
        labels = scripted.queries("decoder")
        expect(field(opened, "query")).to_have_text(f"{labels[query]} at {query}")
        expect(field(opened, "key")).to_have_text(f"{labels[key]} at {key}")
        for name, values in {"score": record.scores, "weight": record.pattern}.items():
            number = float(field(opened, name).inner_text())
            assert number == pytest.approx(float(values[0, 0, query, key]), abs=2e-4)
        expect(field(opened, "allowed")).to_have_text("hidden" if key > query else "allowed")


def test_arrow_keys_walk_from_cell_to_cell(opened: Any) -> None:
    opened.mouse.move(0, 0)
    opened.focus(".large")
    opened.keyboard.press("Home")
    start = int(field(opened, "query").inner_text().rsplit(" ", 1)[1])
    for key in ("ArrowUp", "ArrowRight", "ArrowRight"):
        opened.keyboard.press(key)
    expect(field(opened, "query")).to_have_text(re.compile(rf" at {max(0, start - 1)}$"))
    expect(field(opened, "key")).to_have_text(re.compile(" at 2$"))
    expect(opened.locator(".said")).to_contain_text(f"query {max(0, start - 1)} ")


def test_hostile_text_is_shown_as_text(opened: Any, scripted: Run) -> None:
    assert opened.locator("#tokens button.token").all_inner_texts() == list(scripted.labels)
    assert opened.title() != "broken"
    assert opened.locator("main b").count() == 0
    ticks = opened.locator(".axis-labels .xaxis:not(.title)").all_inner_texts()
    assert 0 < len(ticks) <= 33  # at most 32, and the chosen one
    assert "<" in "".join(ticks)
    see_all(opened, ":is(#masks, #positions) > figure")
    expect(opened.locator(":is(#masks, #positions) .js-plotly-plot")).to_have_count(3)
    opened.locator("#tokens button.token").nth(scripted.n_prompt + 1).click()
    assert opened.input_value("#step") == "2"
    assert opened.locator("#candidates tr.chosen").count() == 1


def test_pictures_worked_out_in_the_page_are_what_python_draws(opened: Any, scripted: Run) -> None:
    see_all(opened, "#more > details")

    def cells(title: str, trace: int) -> np.ndarray:
        values = opened.evaluate(
            """([title, trace]) => { const box = [...document.querySelectorAll('#more > details')]
               .find((one) => one.innerText.startsWith(title)).querySelector('.figure');
               return box.data[trace].z.map((row) => Array.from(row)); }""",
            [title, trace],
        )
        return np.array(values)

    matrix = scripted.position_matrices["decoder"].numpy()
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    np.testing.assert_allclose(cells("Similarity", 0), unit @ unit.T, atol=1e-5)
    np.testing.assert_allclose(cells("What enters", 2), input_parts(scripted).sum, atol=2e-5)


def test_figures_stand_in_the_colours_of_the_mode(opened: Any) -> None:
    dark = opened.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    colours = opened.evaluate(
        """() => [...document.querySelectorAll('.js-plotly-plot')].map(
             (box) => box._fullLayout.font.color)"""
    )
    theme = style.theme(dark)
    assert len(colours) >= 4
    assert set(colours) == {theme.text}


def test_the_numbers_of_a_picture_open_as_a_table(opened: Any, scripted: Run) -> None:
    choose(opened, 1, 0)
    choose(opened, 1, 1)
    revision = opened.get_attribute(".attention", "data-rev")
    opened.select_option("[name=stage]", "masked")
    expect(opened.locator(".attention")).not_to_have_attribute("data-rev", revision)
    table = opened.locator(".large-side .as-table")
    table.locator("summary").click()
    record = scripted.trace["decoder.1.self"]
    expect(table.locator("tbody tr").nth(2).locator("td").nth(1)).to_have_text(
        f"{float(record.scores[0, 1, 2, 1]):.4f}"
    )
    expect(table.locator("tbody tr").nth(2).locator("td").nth(3)).to_have_text("hidden")


def opened_alone(browser: Any, made: Run, path: Path, script: str = "") -> tuple[Any, list[str]]:
    html.write(made, path)
    tab = browser.new_context(offline=True).new_page()
    complaints: list[str] = []
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.add_init_script(script)
    tab.goto(path.as_uri())
    return tab, complaints


def test_a_browser_that_cannot_unpack_gets_a_sentence(
    browser: Any, scripted: Run, tmp_path: Path
) -> None:
    tab, complaints = opened_alone(
        browser, scripted, tmp_path / "old.html", "delete window.DecompressionStream"
    )
    assert "cannot unpack" in tab.get_by_role("alert").inner_text()
    assert not tab.locator("main").is_visible()
    assert complaints == []
    tab.context.close()


def test_every_picture_of_a_search_with_hostile_labels_is_drawn(
    browser: Any, tiny_encoder_decoder: Model, tmp_path: Path
) -> None:
    found = tiny_encoder_decoder.generate("the fox", beams=2, max_new_tokens=5)
    odd = relabelled(with_lens(tiny_encoder_decoder, found), HOSTILE)
    tab, complaints = opened_alone(browser, odd, tmp_path / "odd.html")
    tab.wait_for_selector(".head-grid[data-rev]")
    tab.wait_for_selector(".attention[data-rev]")
    see_all(tab, "#more > details")
    empty = tab.evaluate(
        """() => [...document.querySelectorAll('.js-plotly-plot')].filter(
             (box) => !box.querySelector('.cartesianlayer .trace, .cartesianlayer image')).length"""
    )
    assert empty == 0
    lens = tab.locator("#more > details", has_text="Logit lens of").locator(".figure")
    lens.scroll_into_view_if_needed()
    x, y = lens.evaluate(
        """(box) => { const { xaxis, yaxis } = box._fullLayout;
           const edge = box.getBoundingClientRect();
           return [edge.left + xaxis._offset + xaxis.l2p(4),
                   edge.top + yaxis._offset + yaxis.l2p(0)]; }"""
    )
    tab.mouse.move(x, y)
    expect(lens.locator(".hovertext")).to_have_count(1)
    said = lens.locator(".hoverlayer").text_content()
    assert HOSTILE[4] in said
    assert f"\u2068{HOSTILE[0]}" in said
    assert axe_complaints(tab, "html") == []
    assert complaints == []
    tab.context.close()
