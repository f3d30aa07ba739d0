"""The self-contained page of a run, opened from disk without a network."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.browser import PLACE, complaints, every
from kit.models import tiny
from kit.runs import HOSTILE, relabelled
from kit.windows import opened_alone
from playwright.sync_api import Browser, expect

from transformer import Ablate, with_lens
from transformer.analysis.attention_flow import flow_allowed, flow_weights
from transformer.analysis.head_metrics import head_metrics
from transformer.analysis.row_arithmetic import row_arithmetic
from transformer.views.attention.lines import alignment, query_lines
from transformer.views.drawing import style
from transformer.views.export import html
from transformer.views.positions.inputs import input_parts
from transformer.views.positions.rotation import shift

INKS = """() => [...document.querySelectorAll('.js-plotly-plot:not(:empty)')].map(
    (box) => box._fullLayout.font.color)"""
# Of a picture by its name.
CELLS = """([name, trace]) => document.querySelector(`[data-picture="${name}"]`).data[trace].z
    .map((row) => Array.from(row))"""
# Whether the large picture hides so many cells, has these numbers, lines, hover labels.
HIDES = """(count) => document.querySelector('.large').data[0].z
    .flatMap((row) => [...row].filter(Number.isNaN)).length === count"""
SHOWS = """(rows) => { const z = document.querySelector('.large')?.data?.[0].z;
    return z && rows.every((row, at) => row.every(
        (one, to) => Math.abs((z[at]?.[to] || 0) - one) < 1e-5)); }"""
MASKS = """(count) => document.querySelector('[data-picture=combined]')?.data?.[0].customdata
    .flatMap((row) => [...row]).filter(Boolean).length === count"""
DRAWS = """(count) => document.querySelector('.lines')?.data?.filter(({ mode }) => mode === 'lines')
    .reduce((sum, { x }) => sum + x.length / 3, 0) === count"""
SAYS = """(labels) => JSON.stringify(labels) === JSON.stringify(document.querySelector('.lines')
    ?.data?.filter(({ customdata }) => customdata).map(({ customdata }) => customdata))"""
# Of the open tab; the page empties those of others.
EMPTY = """() => [...document.querySelectorAll('.tabitem:not([hidden]) .js-plotly-plot')].filter(
    (box) => !box.querySelector('.cartesianlayer .trace, .cartesianlayer image')).length"""


@pytest.fixture(scope="module")
def page(browser: Browser, scripted_page: Path) -> Iterator[Any]:
    with opened_alone(browser, scripted_page) as tab:
        tab.wait_for_selector(".attention[data-rev]")
        yield tab


def shown(tab: Any) -> np.ndarray:
    """Values of the large heatmap's cells; NaN arrives as None."""
    cells = tab.evaluate(
        """() => document.querySelector('.large').data[0].z.map(
             (row) => Array.from(row, (v) => (Number.isNaN(v) ? null : v)))"""
    )
    return np.array(cells, dtype=np.float64)


def choose(tab: Any, layer: int, head: int) -> None:
    revision = tab.get_attribute(".attention", "data-rev")
    tab.get_by_role("button", name=f"Layer {layer}, head {head}", exact=True).click()
    expect(tab.locator(".attention")).not_to_have_attribute("data-rev", revision)


def see_all(tab: Any, name: str) -> None:
    """Open a tab and all its sections, and go from one picture to the next until all are drawn."""
    tab.locator(f"[data-tab-id={name}]").click()
    panel = tab.locator(f"#panel-{name}")
    for section in every(panel.locator(".section > summary")):
        section.click()
    for picture in every(panel.locator(".picture:not([hidden])")):
        picture.evaluate("box => box.scrollIntoView({ block: 'center' })")
        expect(picture).to_have_class(re.compile("js-plotly-plot"))
    expect(panel.locator("[aria-busy]")).to_have_count(0)


def test_heads_stages_and_pointer_have_the_runs_numbers(page, scripted):
    page.locator(".more-button").click()
    page.get_by_role("radio", name="even").check()
    choose(page, 1, 1)
    record = scripted.trace["decoder.1.self"]
    allowed = record.allowed[0].numpy()
    weights = record.pattern[0, 1].numpy()
    np.testing.assert_allclose(shown(page)[allowed], weights[allowed], atol=1e-5)
    assert np.all(np.isnan(shown(page)[~allowed]))
    expect(page.locator(".head-grid button[aria-pressed='true']")).to_have_count(1)
    revision = page.get_attribute(".attention", "data-rev")
    page.get_by_role("radio", name="scores", exact=True).check()
    expect(page.locator(".attention")).not_to_have_attribute("data-rev", revision)
    np.testing.assert_allclose(shown(page), record.scores[0, 1].numpy(), atol=1e-4)
    large = page.locator(".large")
    large.scroll_into_view_if_needed()
    page.mouse.move(*large.evaluate(PLACE, [3, 5]))
    weight = f"{float(record.pattern[0, 1, 5, 3]):.4f}"
    expect(page.locator(".readout [data-field=weight]")).to_have_text(weight)
    page.mouse.click(*large.evaluate(PLACE, [3, 5]))
    expect(page.locator(".pin-note")).to_contain_text("Esc lets go")
    page.mouse.move(1, 1)
    page.keyboard.press("Escape")
    expect(page.locator(".readout [data-field=weight]")).to_have_text("–")


def test_a_rows_arithmetic_has_the_numbers_of_python(page, scripted):
    choose(page, 0, 1)
    page.locator("#tokens button.token").nth(scripted.trace_start + 6).click()
    page.locator("[data-section=attention_math] > summary").click()
    worked = page.locator(".attention-math[data-site='decoder.0.self'][data-query='6']")
    expect(worked).to_have_attribute("data-head", "1")
    found = row_arithmetic(scripted, "decoder.0.self", 1, 6)
    columns = zip(found.dots, found.scores, found.exps, found.weights, strict=True)
    shown = worked.locator("tr[data-key]")
    expect(shown).to_have_count(min(32, len(found.weights)))
    for line, expected in zip(every(shown)[:7], columns, strict=False):
        dot, score, _, *rest = line.locator("td").all_inner_texts()[:5]
        got = [float(one.replace("−", "-")) for one in (dot, score, *rest)]
        np.testing.assert_allclose(got, expected, atol=1e-3)
    output = worked.locator(".row-steps .reckoning").last.inner_text().rpartition("= ")[2]
    assert abs(float(output.replace("−", "-")) - found.output[0]) < 1e-3


def test_the_address_says_which_head_and_token_are_chosen(page, scripted):
    choose(page, 1, 0)
    token = scripted.trace_start + 4
    page.locator("#tokens button.token").nth(token).click()
    expect(page).to_have_url(re.compile(f"#site=decoder.1.self&.*read={token}"))
    page.evaluate("token => (location.hash = `#head=1&read=${token}`)", token + 1)
    attention = page.locator(".attention[data-site='decoder.0.self'][data-head='1']")
    expect(attention).to_have_attribute("data-row", "5")


def test_hostile_text_is_shown_as_text_and_a_token_opens_its_step(page, scripted):
    tokens = page.locator("#tokens button.token")
    expect(tokens).to_have_text(list(scripted.labels))
    assert page.title() != "broken"
    expect(page.locator("#tokens b")).to_have_count(0)
    page.wait_for_selector(".large .xtick", state="attached")
    expect(page.locator(".large .xtick text").filter(has_text="<")).not_to_have_count(0)
    tokens.nth(scripted.n_prompt + 1).click()
    page.locator("[data-tab-id=prediction]").click()
    expect(page.locator("#step")).to_have_value("2")
    expect(page.locator("#candidates tr.chosen")).to_have_count(1)


def test_pictures_computed_in_the_page_are_those_of_python(page, scripted):
    for tab, count in (("masks", 8), ("positions", 6)):
        see_all(page, tab)
        expect(page.locator(f"#panel-{tab} .js-plotly-plot")).to_have_count(count)
    matrix = scripted.position_matrices["decoder"].numpy()
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    similar = np.array(page.evaluate(CELLS, ["similarity", 0]))
    np.testing.assert_allclose(similar, unit @ unit.T, atol=1e-5)
    entering = np.array(page.evaluate(CELLS, ["strips", 2]))
    np.testing.assert_allclose(entering, input_parts(scripted).sum, atol=2e-5)
    inks = page.evaluate(INKS)
    assert len(inks) >= 4
    assert set(inks) == {style.LIGHT.text}


def test_all_of_a_hostile_search_is_drawn_in_the_dark(browser, tiny_encoder_decoder, tmp_path):
    found = tiny_encoder_decoder.generate("the fox", beams=2, max_new_tokens=5)
    odd = relabelled(with_lens(tiny_encoder_decoder, found), HOSTILE)
    html.write(odd, tmp_path / "odd.html")
    with opened_alone(browser, tmp_path / "odd.html", color_scheme="dark") as tab:
        tab.wait_for_selector(".attention[data-rev]")
        see_all(tab, "prediction")
        assert tab.evaluate(EMPTY) == 0
        assert set(tab.evaluate(INKS)) == {style.DARK.text}
        lens = tab.locator("[data-picture=lens]")
        lens.scroll_into_view_if_needed()
        tab.mouse.move(*lens.evaluate(PLACE, [4, 0]))
        expect(lens.locator(".hovertext")).to_have_count(1)
        said = lens.locator(".hoverlayer").text_content()
        assert HOSTILE[4] in said
        assert f"\u2068{HOSTILE[0]}" in said
        assert complaints(tab, "html") == []
        tab.locator("[data-tab-id=attention]").click()
        tab.get_by_role("radio", name="decoder self").click()
        tab.get_by_role("group", name="Source").get_by_role("button").nth(1).hover()
        weights = odd.trace.weights("encoder", "self")[:, 0, :, 1].mean((0, 1))
        expect(tab.locator(".reading")).to_contain_text("The mean of all heads reads")
        expect(tab.locator(".reading")).to_contain_text(f"({float(weights.max()):.2f})")


def test_each_layer_is_hidden_by_the_mask_of_its_own(browser, tokenizer, tmp_path):
    changes = dict(window=2, layer_types=("full_attention", "sliding_attention"))
    run = tiny("windowed", "decoder", tokenizer, **changes).trace("the fox said hello to the dog")
    run.to_html(tmp_path / "windowed.html")
    with opened_alone(browser, tmp_path / "windowed.html") as tab:
        tab.wait_for_selector(".attention[data-rev]")
        choose(tab, 1, 1)
        weights = run.trace["decoder.1.self"].pattern[0, 1].numpy()
        np.testing.assert_allclose(np.nan_to_num(shown(tab)) ** 2, weights, atol=2e-5)  # √ colours
        expect(tab.locator("#summary")).to_have_text("decoder, 2 layers × 2 heads × 16")
        tab.locator(".more-button").click()
        tab.get_by_role("radio", name="heads combined").check()
        tab.get_by_role("radio", name="Rollout").check()
        hidden = int((~flow_allowed(run, "decoder", "rollout")).sum())
        tab.wait_for_function(HIDES, arg=hidden)
        tab.locator("[data-tab-id=masks]").click()
        for layer, record in enumerate(run.trace):
            tab.locator(".pick-layer").first.select_option(str(layer))
            shown_mask = tab.locator(
                f".masks[data-site='decoder.{layer}.self'] [data-picture=combined]"
            )
            shown_mask.wait_for()
            tab.wait_for_function(MASKS, arg=int(record.allowed.sum()))


def test_lines_and_many_heads_together_are_those_of_python(browser, tiny_encoder_decoder, tmp_path):
    off = [Ablate("decoder", 0, heads=[0, 1]), Ablate("decoder", 1, heads=[1])]
    run = tiny_encoder_decoder.generate("the fox said", max_new_tokens=5, interventions=off)
    html.write(run, tmp_path / "off.html")
    with opened_alone(browser, tmp_path / "off.html") as tab:
        tab.wait_for_selector(".attention[data-rev]")
        tab.get_by_role("radio", name="decoder self").click()
        tab.locator(".more-button").click()
        tab.get_by_role("radio", name="heads combined").check()
        tab.get_by_role("radio", name="even").check()
        for name, which in (("Rollout", "rollout"), ("Joint", "joint"), ("Mean", "mean")):
            tab.get_by_role("radio", name=re.compile(f"^{name}")).check()
            tab.wait_for_function(SHOWS, arg=flow_weights(run, "decoder", which).tolist())
        tab.get_by_role("radio", name="decoder cross").click()
        choose(tab, 1, 0)
        tab.get_by_role("radio", name="alignment").check()
        tab.wait_for_function(DRAWS, arg=len(run.labels) - 1)
        tab.get_by_role("radio", name="all heads").check()
        figure = alignment(run, "mean", "mean")
        hover = [list(trace.customdata) for trace in figure.data if trace.customdata]
        tab.wait_for_function(SAYS, arg=hover)
        tab.get_by_role("radio", name="lines", exact=True).check()
        tab.locator("#tokens [data-stack=decoder] [data-index='2']").click()
        wanted = query_lines(run, "decoder.1.cross", 0, 2).layout.meta["links"]
        tab.wait_for_function(DRAWS, arg=len(wanted))


def test_a_batchs_page_shows_the_chosen_text(browser, batch, tmp_path):
    batch.to_html(tmp_path / "batch.html")
    with opened_alone(browser, tmp_path / "batch.html") as tab:
        tab.wait_for_selector(".attention[data-rev]")
        texts = tab.get_by_role("group", name="Sentence of the batch").get_by_role("radio")
        expect(texts).to_have_count(len(batch.texts))
        tab.get_by_role("radio", name=batch.texts[1], exact=True).check()
        tab.wait_for_selector(".attention[data-run='1'][data-rev]")
        choose(tab, 1, 1)
        expect(tab).to_have_url(re.compile("#site=decoder.1.self&head=1&row=1$"))
        tokens = tab.locator("#tokens button.token")
        expect(tokens).to_have_text(list(batch[1].labels))
        expected = batch[1].trace["decoder.1.self"].pattern[0, 1].numpy()
        np.testing.assert_allclose(np.nan_to_num(shown(tab)) ** 2, expected, atol=2e-5)  # √ colours
        assert complaints(tab, "html") == []
        tab.evaluate("location.hash = '#row=2&head=1'")
        expect(tab.locator(".attention")).to_have_attribute("data-site", "decoder.0.self")
        expect(tokens).to_have_text(list(batch[2].labels))
        expect(tab.locator(".attention")).to_have_attribute("data-head", "1")


def test_the_reader_chooses_the_language(browser, scripted, scripted_page):
    with opened_alone(browser, scripted_page) as tab:
        tab.wait_for_selector(".attention[data-rev]")
        choose(tab, 1, 1)
        for name, title, axis, summary in (
            ("fr", "Masque causal", "requête (le token qui lit)", "graine 2"),
            ("en", "Causal mask", "query (the token that reads)", "seed 2"),
        ):
            tab.get_by_role("combobox", name=re.compile("^(Language|Langue)$")).select_option(name)
            expect(tab.locator("html")).to_have_attribute("lang", name)
            expect(tab.locator(".attention")).to_have_attribute("data-head", "1")
            expect(tab.locator("#summary")).to_contain_text(f"; {summary}")
            expect(tab.locator(".large .ytitle")).to_have_text(axis)
            expect(tab.locator(".stages legend")).to_have_text("Stade" if name == "fr" else "Stage")
            assert complaints(tab, "html") == []
            tab.locator("[data-tab-id=masks]").click()
            expect(tab.get_by_role("heading", name=title, exact=True)).to_be_visible()
            tab.locator("[data-tab-id=attention]").click()
        assert tab.url.endswith("#site=decoder.1.self&head=1&lang=en")


def test_heads_and_steps_of_positions_are_measured_in_the_page(browser, scripted, scripted_page):
    with opened_alone(browser, scripted_page) as tab:
        tab.wait_for_selector(".attention[data-rev]")
        tab.locator("[data-section=head_metrics] > summary").click()
        for measured in head_metrics(scripted).heads:
            row = f".ranking tr[data-layer='{measured.layer}'][data-head='{measured.head}']"
            numbers = [f"{measured.values[name]:.2f}" for name in ("entropy", "distance")]
            cells = tab.locator(f"{row} td")
            expect(cells.nth(0)).to_have_text(numbers[0])
            expect(cells.nth(2)).to_have_text(numbers[1])
        see_all(tab, "positions")
        tab.locator(".steps-k").fill("2")
        tab.locator(".steps-k").press("Enter")
        miss = shift(scripted, 2).relative_miss
        expect(tab.locator(".shift-says")).to_contain_text(f"misses by {100 * miss:.1f} %")
