"""The self-contained page: numbers are the trace's, text stays text, and it needs no network."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from transformer import Model, Run
from transformer.figures import VIEWS, atlas, html
from transformer.figures.gallery import gallery

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
    (text,) = [text for attributes, text in parsed(page).scripts if attributes.get("id") == "data"]
    return json.loads(text)


def numbers(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


# --- the page's content ---------------------------------------------------------------------------


def test_the_page_holds_the_numbers_of_the_trace(page: Path, run: Run) -> None:
    (found,) = data_of(page)["attention"]
    n = len(run.queries("decoder"))
    allowed = numbers(found["allowed"], "u1").reshape(n, n)
    for layer in range(2):
        record = run.trace["decoder", layer, "self"]
        np.testing.assert_array_equal(allowed, record.allowed[0].numpy())
        for head in range(2):
            scores = numbers(found["scores"][layer][head], "<f4").reshape(n, n)
            np.testing.assert_array_equal(scores, record.scores[0, head].numpy())
    small = atlas(run, "decoder", "self")
    assert found["thumbnails"]["shape"] == list(small.pixels.shape)
    assert numbers(found["thumbnails"]["pixels"], "u1").tobytes() == small.pixels.tobytes()
    assert found["query_labels"] == list(run.queries("decoder"))


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
    assert "document.title='broken'" not in re.sub(r'id="data">.*?</script>', "", source)
    found = parsed(page)
    assert len(found.scripts) == 3
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
    scores = numbers(cross["scores"][1][0], "<f4")
    np.testing.assert_array_equal(scores, run.trace["decoder.1.cross"].scores[0, 0].numpy().ravel())


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
    """The z of the large heatmap as Plotly has it; NaN comes as None."""
    cells = tab.evaluate(
        "document.getElementById('heatmap').data[0].z.map((row) => Array.from(row, (v) => "
        "Number.isNaN(v) ? null : v))"
    )
    return np.array(cells, dtype=np.float64)


def choose(tab: Any, selector: str, layer: int, head: int) -> None:
    revision = tab.get_attribute("#heatmap", "data-rev")
    tab.click(f"{selector}[data-layer='{layer}'][data-head='{head}']")
    expect(tab.locator("#heatmap")).not_to_have_attribute("data-rev", revision)


@pytest.mark.browser
def test_a_click_on_a_head_draws_its_numbers(opened: Any, run: Run) -> None:
    picture = opened.locator("#heatmap .hm image")
    before = picture.get_attribute("href")
    opened.select_option("#stage", "weights")
    for layer, head in ((1, 1), (0, 1), (1, 0)):
        choose(opened, "#grid button", layer, head)
        record = run.trace["decoder", layer, "self"]
        allowed = record.allowed[0].numpy()
        z = shown(opened)
        np.testing.assert_allclose(z[allowed], record.weights[0, head].numpy()[allowed], atol=1e-6)
        assert np.isnan(z[~allowed]).all()
    assert picture.get_attribute("href") != before
    assert opened.locator("#grid button[aria-pressed='true']").count() == 1


@pytest.mark.browser
def test_stages_switch_and_the_pointer_reads_numbers(opened: Any, run: Run) -> None:
    choose(opened, "#grid button", 0, 1)
    choose(opened, "#grid button", 0, 0)
    opened.select_option("#stage", "scores")
    np.testing.assert_allclose(shown(opened), run.trace["decoder.0.self"].scores[0, 0].numpy())
    opened.locator("#heatmap").scroll_into_view_if_needed()
    box = opened.locator("#heatmap .nsewdrag").bounding_box()
    n = len(run.queries("decoder"))
    opened.mouse.move(box["x"] + box["width"] * 3.5 / n, box["y"] + box["height"] * 5.5 / n)
    expect(opened.locator("#readout")).to_contain_text("query 5")
    said = opened.inner_text("#readout")
    record = run.trace["decoder.0.self"]
    assert f"score {record.scores[0, 0, 5, 3]:.4f}" in said
    assert f"weight {record.weights[0, 0, 5, 3]:.4f}" in said
    assert "reads key 3" in said


@pytest.mark.browser
def test_hostile_text_is_shown_as_text(opened: Any, run: Run) -> None:
    assert opened.locator("#tokens button").all_inner_texts() == list(run.labels)
    assert opened.title() != "broken"
    assert opened.locator("main b").count() == 0
    ticks = opened.locator("#heatmap .xtick text").all_text_contents()
    assert len(ticks) <= 32
    assert "<" in "".join(ticks)
    assert opened.locator("#masks .js-plotly-plot, #positions .js-plotly-plot").count() == 3
    opened.click(f"#tokens button:nth-child({run.n_prompt + 3})")
    assert opened.input_value("#step") == "2"
    assert opened.locator("#candidates tr.chosen").count() == 1


def test_every_picture_that_needs_no_choice_is_inside_and_named(tiny_model):
    run = tiny_model.generate("the fox said", max_new_tokens=4)
    shown = html.content(run)["more"]
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
