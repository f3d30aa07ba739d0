"""The self-contained page: numbers are the trace's, text stays text, and it needs no network."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import struct
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from pictured import HOSTILE, relabelled
from playwright.sync_api import expect

import transformer
from transformer import Model, Run
from transformer.figures import VIEWS, html
from transformer.figures.darkness import in_the_dark
from transformer.figures.gallery import gallery
from transformer.figures.inputs import input_parts
from transformer.figures.packing import Pack

LARGEST = 3_000_000  # bytes of the page of a run of 6 layers x 8 heads x 128 tokens
TEXT = "the fox </script><script>document.title='broken'</script><b>x</b> {{value}}"


@pytest.fixture(scope="module")
def run(tiny_model: Model) -> Run:
    """What the page below is made from."""
    return tiny_model.generate(TEXT, max_new_tokens=6, temperature=1.5, top_k=5, seed=2)


@pytest.fixture(scope="module")
def page(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the run."""
    path = tmp_path_factory.mktemp("pages") / "run.html"
    html.write(run, path)
    return path


class Scripts(HTMLParser):
    """Collects the script elements, and every address that the page could load from."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.addresses: list[str | None] = []
        self._open = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._open = tag == "script"
        if self._open:
            self.scripts.append((dict(attributes), ""))
        self.addresses += [value for name, value in attributes if name in ("src", "href")]

    def handle_data(self, text: str) -> None:
        if self._open:
            attributes, sofar = self.scripts[-1]
            self.scripts[-1] = (attributes, sofar + text)

    def handle_endtag(self, tag: str) -> None:
        self._open = False


def parsed(page: Path) -> Scripts:
    result = Scripts()
    result.feed(page.read_text(encoding="utf-8"))
    return result


def data_of(page: Path) -> dict[str, Any]:
    """The page's content, with a numpy array in the place of each packed one."""
    (text,) = [text for attributes, text in parsed(page).scripts if attributes.get("id") == "data"]
    raw = gzip.decompress(base64.b64decode(text))
    length = struct.unpack("<I", raw[:4])[0]
    said, arrays, at = json.loads(raw[4 : 4 + length]), [], 4 + length
    for kind, count in said["arrays"]:
        size = int(kind[1:])
        planes = np.frombuffer(raw[at : at + count * size], np.uint8).reshape(size, count)
        arrays.append(np.frombuffer(planes.T.tobytes(), f"<{kind}"))
        at += count * size
    assert at == len(raw)

    def whole(value: Any) -> Any:
        if isinstance(value, list):
            return [whole(part) for part in value]
        if not isinstance(value, dict):
            return value
        if "array" in value:
            flat = arrays[value["array"]][: int(np.prod(value["shape"]))]
            return flat.reshape(value["shape"])
        return {key: whole(part) for key, part in value.items()}

    return whole(said["content"])


# --- the page's content ---------------------------------------------------------------------------


def test_the_page_holds_the_numbers_of_the_trace(page: Path, run: Run) -> None:
    (found,) = data_of(page)["attention"]
    for layer, heads in enumerate(found["layers"]):
        record = run.trace["decoder", layer, "self"]
        np.testing.assert_array_equal(found["allowed"], record.allowed[0].numpy())
        np.testing.assert_array_equal(heads["queries"], record.queries[0].numpy())
        np.testing.assert_array_equal(heads["keys"], record.keys[0].numpy())
        assert heads.keys() == {"queries", "keys"}
    assert found["query_labels"] == list(run.queries("decoder"))


def test_heads_that_were_changed_travel_as_recorded(run: Run) -> None:
    record = run.trace["decoder.1.self"]
    other = dataclasses.replace(record, scores=record.scores + 1)
    assert html.heads_of(other, Pack()).keys() == {"scores"}
    other = dataclasses.replace(record, weights=record.weights.flip(-1))
    assert html.heads_of(other, Pack()).keys() == {"queries", "keys", "weights"}
    other = dataclasses.replace(record, queries=None)
    assert html.heads_of(other, Pack()).keys() == {"scores"}


def test_an_altered_run_says_so_and_shows_what_was_recorded(
    tiny_model: Model, tmp_path: Path
) -> None:
    uniform = [{"type": "break", "what": "uniform-attention"}]
    run = tiny_model.generate("the fox", max_new_tokens=3, interventions=uniform)
    html.write(run, tmp_path / "altered.html")
    found = data_of(tmp_path / "altered.html")
    assert "altered: " in found["summary"]
    for layer, heads in enumerate(found["attention"][0]["layers"]):
        weights = run.trace["decoder", layer, "self"].weights[0].numpy()
        np.testing.assert_array_equal(heads["weights"], weights)
    assert "altered" not in html.summary(tiny_model.trace("the fox"))


def test_the_page_holds_tokens_and_candidates(page: Path, run: Run) -> None:
    found = data_of(page)
    assert [token["label"] for token in found["tokens"]] == list(run.labels)
    assert [token["step"] for token in found["tokens"][run.n_prompt :]] == list(range(6))
    for shown, step in zip(found["steps"], run.steps, strict=True):
        assert shown["token"] == step.token
        assert [c["probability"] for c in shown["candidates"]] == [
            c.probability for c in step.candidates
        ]


def test_token_text_cannot_leave_the_data(page: Path) -> None:
    source = page.read_text(encoding="utf-8")
    assert "document.title='broken'" not in source
    found = parsed(page)
    assert len(found.scripts) == 2
    assert found.addresses == []
    assert data_of(page)["text"].startswith(TEXT)


def test_an_encoder_decoder_has_its_three_kinds_in_the_page(
    tiny_encoder_decoder: Model, tmp_path: Path
) -> None:
    run = tiny_encoder_decoder.generate("the fox said", max_new_tokens=4)
    html.write(run, tmp_path / "cross.html")
    found = data_of(tmp_path / "cross.html")
    kinds = [(part["stack"], part["kind"]) for part in found["attention"]]
    assert kinds == run.trace.kinds()
    cross = found["attention"][kinds.index(("decoder", "cross"))]
    assert cross["key_labels"] == list(run.source_labels) == found["source"]
    keys = run.trace["decoder.1.cross"].keys[0].numpy()
    np.testing.assert_array_equal(cross["layers"][1]["keys"], keys)


def test_the_page_of_six_layers_eight_heads_and_128_tokens_is_small(tmp_path: Path) -> None:
    model = transformer.load("stories")
    run = model.generate("Once upon a time", max_new_tokens=123, temperature=0.8, top_k=40, seed=3)
    assert (model.config.n_layers, model.config.n_heads, len(run.labels)) == (6, 8, 128)
    html.write(run, tmp_path / "long.html")
    assert (tmp_path / "long.html").stat().st_size < LARGEST


def in_dark(value: Any) -> Any:
    """A light figure's colours changed as the page changes them in the dark."""
    table = in_the_dark()
    if isinstance(value, dict):
        return {key: in_dark(part) for key, part in value.items()}
    if isinstance(value, list):
        return [in_dark(part) for part in value]
    if not isinstance(value, str):
        return value
    start, comma, end = value.rpartition(",")
    return table.get(value) or (table.get(start + comma, start + comma) + end)


def test_light_pictures_become_the_dark_ones_by_their_colours_alone(
    tiny_model, tiny_encoder, tiny_encoder_decoder
):
    for made in (
        tiny_model.generate("the fox said", max_new_tokens=4),
        tiny_encoder.trace("the fox"),
        tiny_encoder_decoder.generate("the fox", beams=2, max_new_tokens=4),
    ):
        for light, dark in zip(gallery(made), gallery(made, dark=True), strict=True):
            found = in_dark(json.loads(light.figure.to_json()))
            assert found == json.loads(dark.figure.to_json()), light.view


def test_a_page_has_every_kind_of_picture_that_its_script_can_draw(
    tiny_model, tiny_encoder_decoder
):
    source = (Path(html.__file__).parent / "export" / "marks.js").read_text(encoding="utf-8")
    assert "viz.TRACES = { heatmap, bar: bars, scatter };" in source
    for made in (
        tiny_model.generate("the fox said", max_new_tokens=4),
        tiny_encoder_decoder.generate("the fox", beams=2, max_new_tokens=4),
    ):
        found = html.content(made, Pack())
        for figure in found["masks"] + found["positions"] + found["more"]:
            assert {trace["type"] for trace in figure["data"]} <= {"heatmap", "bar", "scatter"}
            shapes = figure["layout"].get("shapes", [])
            assert {shape["type"] for shape in shapes} <= {"path", "rect", "line", "circle"}


# --- the page in a browser ------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["light", "dark"])
def opened(browser: Any, page: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The page, opened from disk; no other request gets through, and none may be tried."""
    context = browser.new_context(color_scheme=request.param)
    tab = context.new_page()
    refused: list[str] = []
    complaints: list[str] = []

    def guard(route: Any) -> None:
        if route.request.url == page.as_uri():
            route.continue_()
        else:
            refused.append(route.request.url)
            route.abort()

    tab.route("**/*", guard)
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto(page.as_uri())
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


@pytest.mark.browser
def test_a_click_on_a_head_draws_its_numbers(opened: Any, run: Run) -> None:
    opened.select_option("#scale", "linear")
    before = opened.locator("#heatmap").screenshot()
    for layer, head in ((1, 1), (0, 1), (1, 0)):
        choose(opened, layer, head)
        record = run.trace["decoder", layer, "self"]
        allowed = record.allowed[0].numpy()
        z = shown(opened)
        np.testing.assert_allclose(z[allowed], record.weights[0, head].numpy()[allowed], atol=1e-5)
        assert np.isnan(z[~allowed]).all()
    assert opened.locator("#heatmap").screenshot() != before
    assert opened.locator("#grid button[aria-pressed='true']").count() == 1


@pytest.mark.browser
def test_stages_switch_and_the_pointer_reads_numbers(opened: Any, run: Run) -> None:
    choose(opened, 0, 1)
    choose(opened, 0, 0)
    opened.select_option("#stage", "scores")
    record = run.trace["decoder.0.self"]
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
        assert run.queries("decoder")[query] in said
        assert run.queries("decoder")[key] in said


@pytest.mark.browser
def test_arrow_keys_walk_from_cell_to_cell(opened: Any) -> None:
    opened.focus("#heatmap")
    point_at(opened, 4, 2)
    expect(opened.locator("#readout")).to_contain_text("query 4 ")
    opened.keyboard.press("ArrowDown")
    opened.keyboard.press("ArrowRight")
    expect(opened.locator("#readout")).to_contain_text("query 5 ")
    expect(opened.locator("#readout")).to_contain_text("reads key 3")


@pytest.mark.browser
def test_hostile_text_is_shown_as_text(opened: Any, run: Run) -> None:
    assert opened.locator("#tokens button").all_inner_texts() == list(run.labels)
    assert opened.title() != "broken"
    assert opened.locator("main b").count() == 0
    ticks = opened.evaluate(
        "document.getElementById('heatmap').scene.frame.axes.x.ticks.map(({ text }) => text)"
    )
    assert len(ticks) <= 32
    assert "<" in "".join(ticks)
    assert opened.locator("#masks canvas, #positions canvas").count() == 3
    opened.click(f"#tokens button:nth-child({run.n_prompt + 3})")
    assert opened.input_value("#step") == "2"
    assert opened.locator("#candidates tr.chosen").count() == 1


@pytest.mark.browser
def test_pictures_worked_out_in_the_page_are_what_python_draws(opened: Any, run: Run) -> None:
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

    matrix = run.position_matrices["decoder"].numpy()
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    np.testing.assert_allclose(cells("Similarity", 0), (unit @ unit.T).ravel(), atol=1e-5)
    np.testing.assert_array_equal(cells("What enters", 2), input_parts(run).sum.ravel())


def opened_alone(browser: Any, made: Run, path: Path, script: str = "") -> tuple[Any, list[str]]:
    html.write(made, path)
    tab = browser.new_context(offline=True).new_page()
    complaints: list[str] = []
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.add_init_script(script)
    tab.goto(path.as_uri())
    return tab, complaints


@pytest.mark.browser
def test_a_browser_that_cannot_unpack_gets_a_sentence(
    browser: Any, run: Run, tmp_path: Path
) -> None:
    tab, complaints = opened_alone(
        browser, run, tmp_path / "old.html", "delete window.DecompressionStream"
    )
    assert "cannot unpack" in tab.get_by_role("alert").inner_text()
    assert not tab.locator("main").is_visible()
    assert complaints == []
    tab.context.close()


@pytest.mark.browser
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


def test_every_picture_that_needs_no_choice_is_inside_and_named(tiny_model):
    run = tiny_model.generate("the fox said", max_new_tokens=4)
    shown = html.content(run, Pack())["more"]
    assert [one["title"] for one in shown] == [
        picture.figure.layout.title.text for picture in gallery(run)
    ]
    assert {"architecture", "surprise", "lens", "worked", "rollout", "inputs"} <= {
        picture.view for picture in gallery(run)
    }
    assert all(one["help"] for one in shown)


def test_the_gallery_has_what_each_family_has(tiny_encoder, tiny_encoder_decoder):
    read = {picture.view for picture in gallery(tiny_encoder.trace("the fox"))}
    assert "surprise" not in read
    searched = tiny_encoder_decoder.generate("the fox", beams=2, max_new_tokens=4)
    views = {picture.view for picture in gallery(searched)}
    assert {"alignment", "beams", "surprise", "shift"} <= views
    assert views <= set(VIEWS)
