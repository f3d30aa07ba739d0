"""The self-contained page in a browser: it draws a run's numbers without asking anyone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from pictured import HOSTILE, relabelled
from playwright.sync_api import expect

from transformer import Model, Run
from transformer.figures import html
from transformer.figures.inputs import input_parts

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
    tab.wait_for_selector("#heatmap[data-rev]")
    yield tab
    context.close()
    assert refused == []
    assert complaints == []


def shown(tab: Any) -> np.ndarray:
    """What the cells of the large heatmap are coloured by; NaN comes as None."""
    cells = tab.evaluate(
        """() => { const z = document.getElementById('heatmap').scene.figure.data[0].z;
           return [z.shape, Array.from(z, (v) => (Number.isNaN(v) ? null : v))]; }"""
    )
    return np.array(cells[1], dtype=np.float64).reshape(cells[0])


def choose(tab: Any, layer: int, head: int) -> None:
    revision = tab.get_attribute("#heatmap", "data-rev")
    tab.click(f"#grid button[data-layer='{layer}'][data-head='{head}']")
    expect(tab.locator("#heatmap")).not_to_have_attribute("data-rev", revision)


def point_at(tab: Any, query: int, key: int) -> None:
    tab.locator("#heatmap").scroll_into_view_if_needed()
    x, y = tab.evaluate(
        """([row, column]) => { const { frame, canvas } = document.getElementById('heatmap').scene;
           const edge = canvas.getBoundingClientRect();
           return [edge.left + frame.x('x', column), edge.top + frame.y('y', row)]; }""",
        [query, key],
    )
    tab.mouse.move(x, y)


def test_a_click_on_a_head_draws_its_numbers(opened: Any, scripted: Run) -> None:
    opened.select_option("#scale", "linear")
    before = opened.locator("#heatmap").screenshot()
    for layer, head in ((1, 1), (0, 1), (1, 0)):
        choose(opened, layer, head)
        record = scripted.trace["decoder", layer, "self"]
        allowed = record.allowed[0].numpy()
        z = shown(opened)
        np.testing.assert_allclose(z[allowed], record.weights[0, head].numpy()[allowed], atol=1e-5)
        assert np.isnan(z[~allowed]).all()
    assert opened.locator("#heatmap").screenshot() != before
    assert opened.locator("#grid button[aria-pressed='true']").count() == 1


def test_stages_switch_and_the_pointer_reads_numbers(opened: Any, scripted: Run) -> None:
    choose(opened, 0, 1)
    choose(opened, 0, 0)
    opened.select_option("#stage", "scores")
    record = scripted.trace["decoder.0.self"]
    np.testing.assert_allclose(shown(opened), record.scores[0, 0].numpy(), atol=1e-4)
    for query, key in ((5, 3), (3, 5)):
        point_at(opened, query, key)
        expect(opened.locator("#readout")).to_contain_text(f"query {query} ")
        said = opened.inner_text("#readout")
        numbers = dict(zip(("score", "weight"), (record.scores, record.weights), strict=True))
        for name, values in numbers.items():
            number = float(said.split(f"{name} ")[1].split(",")[0].split(";")[0])
            assert number == pytest.approx(float(values[0, 0, query, key]), abs=2e-4)
        assert ("hidden by the mask" in said) == (key > query)
        assert f"reads key {key}" in said
        assert scripted.queries("decoder")[query] in said
        assert scripted.queries("decoder")[key] in said


def test_arrow_keys_walk_from_cell_to_cell(opened: Any) -> None:
    opened.focus("#heatmap")
    point_at(opened, 4, 2)
    expect(opened.locator("#readout")).to_contain_text("query 4 ")
    opened.keyboard.press("ArrowDown")
    opened.keyboard.press("ArrowRight")
    expect(opened.locator("#readout")).to_contain_text("query 5 ")
    expect(opened.locator("#readout")).to_contain_text("reads key 3")


def test_hostile_text_is_shown_as_text(opened: Any, scripted: Run) -> None:
    assert opened.locator("#tokens button").all_inner_texts() == list(scripted.labels)
    assert opened.title() != "broken"
    assert opened.locator("main b").count() == 0
    ticks = opened.evaluate(
        "document.getElementById('heatmap').scene.frame.axes.x.ticks.map(({ text }) => text)"
    )
    assert len(ticks) <= 32
    assert "<" in "".join(ticks)
    assert opened.locator("#masks canvas, #positions canvas").count() == 3
    opened.click(f"#tokens button:nth-child({scripted.n_prompt + 3})")
    assert opened.input_value("#step") == "2"
    assert opened.locator("#candidates tr.chosen").count() == 1


def test_pictures_worked_out_in_the_page_are_what_python_draws(opened: Any, scripted: Run) -> None:
    for details in opened.locator("#more details").all():
        details.evaluate("box => { box.open = true; }")
    expect(opened.locator("#more .figure[data-rev]")).to_have_count(
        opened.locator("#more details").count()
    )

    def cells(title: str, trace: int) -> np.ndarray:
        values = opened.evaluate(
            """([title, trace]) => { const box = [...document.querySelectorAll('#more details')]
               .find((one) => one.innerText.startsWith(title)).querySelector('.figure');
               return Array.from(viz.values(box.scene.figure.data[trace].z)); }""",
            [title, trace],
        )
        return np.array(values)

    matrix = scripted.position_matrices["decoder"].numpy()
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    np.testing.assert_allclose(cells("Similarity", 0), (unit @ unit.T).ravel(), atol=1e-5)
    np.testing.assert_array_equal(cells("What enters", 2), input_parts(scripted).sum.ravel())


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
    tab, complaints = opened_alone(browser, relabelled(found, HOSTILE), tmp_path / "odd.html")
    tab.wait_for_selector("#grid[data-rev]")
    tab.evaluate("for (const box of document.querySelectorAll('details')) box.open = true")
    expect(tab.locator("#more .figure[data-rev]")).to_have_count(tab.locator("details").count())
    empty = tab.evaluate(
        """() => [...document.querySelectorAll('.figure canvas')].filter((canvas) => {
             const { width, height } = canvas;
             const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
             return !data.some((value) => value); }).length"""
    )
    assert empty == 0
    said = tab.evaluate(
        """() => { const box = [...document.querySelectorAll('details')]
             .find((one) => one.innerText.startsWith('Logit lens')).querySelector('.figure');
           const { figure } = box.scene;
           return viz.lines(viz.filled(figure.data[0].hovertemplate, figure.data[0], 4, 5)); }"""
    )
    assert HOSTILE[4] in said[0]
    assert Axe().run(tab).response["violations"] == []
    assert any(line.startswith(f"\u2068{HOSTILE[0]}") for line in said)
    assert complaints == []
    tab.context.close()
