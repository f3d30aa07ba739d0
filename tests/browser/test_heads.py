"""Heads as numbers, heads put together, lines between tokens, and the heatmap by keyboard."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from serving import Server
from visit import Visit, complaints

import transformer
from transformer import Run
from transformer.analysis.attention_flow import joint_weights, mean_weights, rollout_weights
from transformer.analysis.head_measures import ALL
from transformer.analysis.head_metrics import strongest
from transformer.inference.engines.choice import engine_of
from transformer.ui.examples import EXAMPLES, example_of
from transformer.views import head_metrics, query_links
from transformer.views.head_metrics import DID

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
EXAMPLE = EXAMPLES["decoder"]
Z = "document.querySelector('.large').calcdata[0][0].z.map(row => [...row])"
INSIDE = """one => { const { top, bottom } = one.getBoundingClientRect();
    return top >= -1 && bottom <= innerHeight + 1; }"""
LINKS = "document.querySelector('.lines').layout.meta.links"


@pytest.fixture
def page(visit: Open) -> Visit:
    return visit()


@pytest.fixture(scope="module")
def run(server: Server) -> Run:
    """The stored example, read by the engine that the page has: another sums in another order."""
    model = dataclasses.replace(server.model, engine=engine_of(server.model.network))
    return model.generate(EXAMPLE.text, **EXAMPLE.settings)


def switch(page: Visit, group: str, value: str) -> None:
    """Choose one of the switches above the picture."""
    page.show_more()
    with page.drawn(".attention"):
        page.page.locator(f".{group} input[value='{value}']").check()


def ranking(page: Visit) -> list[list[str]]:
    """The rows of the table of heads, cell by cell."""
    page.wait_drawn(".ranking")
    rows = page.page.locator(".ranking-table .rows tr")
    return [row.locator("th, td").all_inner_texts() for row in rows.all()]


def number(text: str) -> float:
    """A cell of the table: "–" where there is no number."""
    return math.nan if text == "–" else float(text)


# --- the table ------------------------------------------------------------------------------------


def test_the_table_has_every_heads_numbers_and_the_baseline(still: Visit, run: Run) -> None:
    page = still
    found = head_metrics(run, "decoder", "self")
    rows = ranking(page)
    assert [row[0] for row in rows] == [f"layer {h.layer}, head {h.head}" for h in found.heads]
    for row, head in zip(rows, found.heads, strict=True):
        assert [number(text) for text in row[1:-1]] == pytest.approx(
            [head.values[metric.name] for metric in found.metrics], abs=0.0051, nan_ok=True
        )
        assert row[-1].startswith(head.label or "")
        assert bool(row[-1]) == bool(head.label)
    even = page.page.locator(".baselines tr").first.locator("td").all_inner_texts()
    assert [number(text) for text in even[: len(found.metrics)]] == pytest.approx(
        [found.even[metric.name] for metric in found.metrics], abs=0.0051, nan_ok=True
    )
    said = page.page.locator(".definitions").inner_text()
    assert all(f"{metric.definition}." in said for metric in found.metrics)
    assert "at least 3 times that of an even head" in said


def test_a_click_on_a_column_sorts_and_a_row_chooses_its_head(page: Visit, run: Run) -> None:
    found = head_metrics(run, "decoder", "self")
    ranking(page)
    entropy = page.page.get_by_role("button", name="Entropy (bits)")
    entropy.click()
    down = [head.values["entropy"] for head in found.heads]
    values = [float(row[1]) for row in ranking(page)]
    assert values == sorted(values, reverse=True)
    assert values == pytest.approx(sorted(down, reverse=True), abs=0.0051)
    header = page.page.locator("th", has=page.page.locator("[data-by=entropy]"))
    assert header.get_attribute("aria-sort") == "descending"
    entropy.click()
    assert header.get_attribute("aria-sort") == "ascending"
    upwards = sorted(found.heads, key=lambda head: head.values["entropy"])
    at, other = next((n, h) for n, h in enumerate(upwards) if (h.layer, h.head) != (0, 0))
    row = page.page.locator(".rows tr").nth(at)
    assert row.locator("th").inner_text() == f"layer {other.layer}, head {other.head}"
    with page.drawn(".attention"):
        row.get_by_role("button").press("Enter")
    assert page.large.get_attribute("data-site") == f"decoder.{other.layer}.self"
    assert page.large.get_attribute("data-head") == str(other.head)
    assert page.head(other.layer, other.head).get_attribute("aria-pressed") == "true"
    assert "chosen" in str(row.get_attribute("class"))
    assert page.page.locator(".metric-map").get_attribute("data-metric") == "entropy"


def test_a_head_chosen_far_down_brings_the_picture_into_view_and_keeps_the_focus(
    visit: Open,
) -> None:
    page = visit(width=390, height=844, reduced_motion="reduce")
    page.wait_drawn(".ranking")
    button = page.page.get_by_role("button", name="Show layer 1, head 2", exact=True)
    button.scroll_into_view_if_needed()
    large = page.page.locator(".large")
    assert not large.evaluate(INSIDE)
    with page.drawn(".attention"):
        button.press("Enter")
    assert large.evaluate(INSIDE)
    assert button.evaluate("button => button === document.activeElement")
    assert page.large.get_attribute("data-site") == "decoder.1.self"


def test_each_kind_of_attention_has_its_own_pictures_and_table(page: Visit, server: Server) -> None:
    page.choose_model("tiny-translator")
    assert page.large.get_attribute("data-site") == "decoder.0.cross"  # a translator opens on it
    page.show_more()
    offered = page.page.locator(".pictures label:visible").all_inner_texts()
    assert offered == ["heatmap", "alignment", "lines", "mean of heads"]
    with page.drawn(".attention"):
        page.page.locator(".pictures label", has_text="alignment").click()
    page.attention("decoder self")
    offered = page.page.locator(".pictures label:visible").all_inner_texts()
    assert offered == ["heatmap", "lines", "mean of heads", "through all layers", "joint"]
    assert page.large.get_attribute("data-picture") == "heatmap"
    each_kind_of_attention_has_its_own_table(page, server)


def each_kind_of_attention_has_its_own_table(page: Visit, server: Server) -> None:
    example = EXAMPLES["encoder-decoder"]
    run = server.translator.generate(example.text, **example.settings)
    page.attention("decoder cross")  # the table of the first kind may still be on its way
    page.wait_drawn(".ranking")
    page.page.wait_for_selector(f".ranking[data-run='{page.shown_run()}'][data-kind=cross]")
    found = head_metrics(run, "decoder", "cross")
    for row, head in zip(ranking(page), found.heads, strict=True):
        shown = [number(text) for text in row[1:-1]]
        expected = [head.values[metric.name] for metric in found.metrics]
        np.testing.assert_allclose(shown, expected, atol=0.0051)


def test_of_many_heads_the_clearest_is_said_in_words_and_each_label_stands_in_the_grid(
    page: Visit,
) -> None:
    page.choose_model("stories")
    page.wait_drawn(".ranking")
    page.page.wait_for_function("document.querySelectorAll('.rows tr').length === 24")
    page.page.get_by_role("button", name="Show all 48 heads").click()
    assert page.page.locator(".rows tr").count() == 48
    model = transformer.load("stories")
    example = example_of(model)
    assert example.only_read
    run = model.trace(example.text)
    found = head_metrics(run, "decoder", "self")
    best = strongest(run, found)
    assert best is not None
    page.wait_drawn(".head-finding")
    said = page.page.locator(".finding").inner_text()
    assert said.startswith(f"Layer {best.layer}, head {best.head} {DID[best.metric.name]}.")
    assert f"{best.value:.2f} on average over {best.n_rows} tokens" in said
    assert f"“{run.labels[best.query]}”: it reads “{run.labels[best.key]}”" in said
    for head in found.heads:
        sign = page.head(head.layer, head.head).locator(".sign")
        assert sign.count() == (head.label is not None)
        assert head.label is None or sign.inner_text() == ALL[str(head.named_after)].sign
    words = page.page.locator(".signs").inner_text()
    assert all(ALL[h.named_after].short in words for h in found.heads if h.named_after)
    with page.drawn(".attention"):
        page.head(0, 0).click()
    with page.drawn(".attention"):
        page.page.locator(".finding button").click()
    assert page.large.get_attribute("data-site") == f"decoder.{best.layer}.self"
    assert page.large.get_attribute("data-head") == str(best.head)
    assert page.large.get_attribute("data-row") == str(best.query)
    assert complaints(page, ".attention") == []


# --- many heads in one picture, colours, lines ----------------------------------------------------


def same_links(shown: list[list[float]], wanted: Sequence[tuple[int, int, float]]) -> None:
    """The same lines in the same order, their weights to 1e-5, as kernels differ."""
    assert [link[:2] for link in shown] == [list(link[:2]) for link in wanted]
    assert [link[2] for link in shown] == pytest.approx([link[2] for link in wanted], abs=1e-5)


def test_each_picture_of_many_heads_has_its_own_numbers(page: Visit, run: Run) -> None:
    rollout_joint_and_mean_show_their_own_numbers(page, run)
    an_own_range_ends_at_the_heads_largest_weight(page, run)
    with page.drawn(".attention"):
        page.head(0, 0).click()
    lines_follow_the_chosen_token_and_the_threshold(page, run)


def lines_follow_the_chosen_token_and_the_threshold(page: Visit, run: Run) -> None:
    switch(page, "pictures", "lines")
    site = "decoder.0.self"
    same_links(page.page.evaluate(LINKS), query_links(run, site, 0))
    with page.drawn(".attention"):
        page.tokens.nth(5).click()
    for threshold in (0.05, 0.2):
        if threshold != 0.05:
            switch(page, "thresholds", str(threshold))
        expected = query_links(run, site, 0, 5, threshold)
        same_links(page.page.evaluate(LINKS), expected)
    with page.drawn(".attention"):
        page.page.keyboard.press("Escape")
    assert len({query for query, *_ in page.page.evaluate(LINKS)}) > 1


def rollout_joint_and_mean_show_their_own_numbers(page: Visit, run: Run) -> None:
    switch(page, "scales", "linear")
    expected = {
        "rollout": rollout_weights(run, "decoder"),
        "joint": joint_weights(run, "decoder"),
        "mean": mean_weights(run, "decoder", "self"),
    }
    for picture, weights in expected.items():
        switch(page, "pictures", picture)
        shown = np.array(page.page.evaluate(Z), dtype=float)
        allowed = run.trace["decoder.0.self"].allowed[0].numpy()
        np.testing.assert_allclose(shown[allowed], weights[allowed], atol=1e-5)
        assert np.isnan(shown[~allowed]).all()
        page.point_at(6, 2)
        assert float(page.read("weight")) == pytest.approx(weights[6, 2], abs=6e-5)
        assert page.read("score") == "–"
        assert page.page.locator(".picture-note").is_visible()
    with page.drawn(".attention"):
        page.page.locator(".depths label").first.click()
    shown = np.array(page.page.evaluate(Z), dtype=float)
    np.testing.assert_allclose(
        shown[6, :7], mean_weights(run, "decoder", "self", 0)[6, :7], atol=1e-5
    )


def an_own_range_ends_at_the_heads_largest_weight(page: Visit, run: Run) -> None:
    switch(page, "pictures", "heatmap")
    with page.drawn(".attention"):
        page.head(1, 1).click()
    switch(page, "ranges", "own")
    largest = float(run.trace["decoder.1.self"].pattern[0, 1].max())
    top = page.page.evaluate("document.querySelector('.large').data[0].zmax")
    assert top == pytest.approx(largest, abs=1e-5)


# --- the keyboard ---------------------------------------------------------------------------------


def test_the_heatmap_is_walked_pinned_and_let_go_by_keyboard(still: Visit, run: Run) -> None:
    page = still
    large = page.page.locator(".large")
    said = page.page.locator(".said")
    large.focus()  # on the row of the last token read
    for key in ("ArrowUp",) * len(run.tokens) + ("ArrowDown",) * 4 + ("ArrowRight",) * 2:
        page.page.keyboard.press(key)
    record = run.trace["decoder.0.self"]

    def words(row: int, column: int) -> str:
        return (
            f"query {row} “{run.tokens[row]}” reads key {column} “{run.tokens[column]}”: "
            f"weight {float(record.pattern[0, 0, row, column]):.4f}, "
            f"score {float(record.scores[0, 0, row, column]):.2f}, "
        )

    assert said.inner_text() == words(4, 2) + "allowed"
    assert page.large.get_attribute("data-row") == "4"
    assert page.page.locator(".band.cell").is_visible()
    page.page.keyboard.press("End")
    last = len(run.tokens) - 1
    assert said.inner_text() == words(4, last) + "hidden by the mask"
    page.page.keyboard.press("Home")
    page.page.keyboard.press("Enter")
    assert said.inner_text() == "Pinned: " + words(4, 0) + "allowed"
    assert page.tokens.nth(4).get_attribute("aria-pressed") == "true"
    assert page.page.locator(".pin-note").inner_text().startswith("Pinned. Esc lets go.")
    page.page.keyboard.press("Shift+Enter")
    assert page.page.locator(".pin-note").inner_text() == "Row pinned. Esc lets go."
    assert page.large.get_attribute("data-column") == ""
    page.page.keyboard.press("Escape")
    assert "Point at" in page.page.locator(".pin-note").inner_text()
    assert page.large.get_attribute("data-row") == ""


def test_a_click_on_a_rows_label_pins_the_row(still: Visit, run: Run) -> None:
    page = still
    label = page.page.locator(".axis-labels .yaxis:not(.title)").nth(3)
    words = label.inner_text().strip("\u2068\u2069")
    label.click()
    row = int(str(page.large.get_attribute("data-row")))
    assert words == run.tokens[row]
    assert page.page.locator(".pin-note").inner_text() == "Row pinned. Esc lets go."
    assert float(page.read("sum")) == pytest.approx(1, abs=1e-4)
    page.page.keyboard.press("Escape")
    assert page.large.get_attribute("data-row") == ""
