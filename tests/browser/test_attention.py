"""The tab Attention: what is pointed at, pressed and switched, with the numbers of the trace.

The numbers behind a picture are held to Python's in tests/static and tests/views; here one of each
says that it is the right one."""

import dataclasses
import itertools

import numpy as np
import pytest
from kit.browser import every
from kit.serving import Shared
from playwright.sync_api import expect

from benchmarks import scale
from transformer import Run
from transformer.analysis.attention_flow import flow_weights
from transformer.analysis.head_measures import ALL
from transformer.analysis.head_metrics import head_metrics
from transformer.analysis.row_arithmetic import row_arithmetic
from transformer.inference.engines.compiled import engine_of
from transformer.server.kept.page_models import EXAMPLES

EXAMPLE = EXAMPLES["decoder"]
# The values of the large picture, the row's dotted line and all.
Z = "() => document.querySelector('.attention .large').calcdata[0][0].z.map(row => [...row])"
# Each small picture has seen cells and masked ones.
PAINTED = """() => [...document.querySelectorAll(".head-grid canvas")].filter(canvas => {
    const { width, height } = canvas;
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    return data.some((value, place) => place % 4 === 3 && value === 255)
        && data.some((value, place) => place % 4 === 3 && value === 0); }).length"""


@pytest.fixture(scope="module")
def run(server: Shared) -> Run:
    """The stored example, read by the engine that the page has: another sums in another order."""
    model = dataclasses.replace(server.model, engine=engine_of(server.model.network))
    return model.generate(EXAMPLE.text, **EXAMPLE.settings)


@pytest.mark.without_server
def test_every_token_is_named_beside_the_cells_where_small_type_fits(page):
    page.set_length(26)
    page.generate("Once upon a time")
    count = len(page.labels())
    assert 28 <= count <= 32
    for axis in "xy":
        expect(page.page.locator(f".attention .{axis}tick text")).to_have_count(count)
    boxes = page.page.locator(".attention .ytick text").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(({ top, bottom }) => [top, bottom])"
    )
    boxes.sort()
    overlaps = [before[1] - after[0] for before, after in itertools.pairwise(boxes)]
    assert max(overlaps) < 4  # px: boxes are higher than the letters in them


def test_a_run_is_asked_for_once_and_its_numbers_are_those_of_python(page, server):
    expect(page.page.locator(".head-grid canvas")).to_have_count(2 * 3)
    page.page.wait_for_function(f"({PAINTED})() === 6")
    page.set_length(15)
    page.generate("The dog ran")
    settings = {**EXAMPLE.settings, "max_new_tokens": 15}
    run = server.model.generate("The dog ran", **settings)
    expect(page.tokens).to_have_text(list(run.tokens))
    requests: list[str] = []
    page.page.on("request", lambda one: requests.append(one.url))
    page.head(1, 2).hover()
    with page.drawn(".attention"):
        with page.page.expect_request(lambda one: "resources/heatmap" in one.url):
            page.page.mouse.down()  # before it is a click
        page.page.mouse.up()
    assert sum("resources/heatmap" in one for one in requests) == 1
    record = run.trace["decoder.1.self"]
    for row, column in [(5, 3), (3, 6)]:
        page.point_at(row, column)
        for field, values in (("weight", record.pattern), ("score", record.scores)):
            value = float(values[0, 2, row, column])
            assert float(page.read(field)) == pytest.approx(value, abs=2e-4)
        assert page.read("allowed") == ("allowed" if column <= row else "hidden")
        assert page.read("query").startswith(run.tokens[row])
        assert page.read("key").startswith(run.tokens[column])
    seed = page.page.locator(".seed-says")
    page.page.get_by_role("button", name="Write on", exact=True).click()
    expect(seed).to_have_text("Seed 3 again: the same text.")
    page.page.get_by_role("button", name="New seed").click()
    page.page.wait_for_function("() => viz.run.seed !== 3")
    settings["seed"] = page.page.evaluate("viz.run.seed")
    expect(page.tokens).to_have_text(list(server.model.generate("The dog ran", **settings).tokens))


@pytest.mark.without_server
def test_a_cell_is_pointed_at_pinned_and_let_go_by_pointer_and_by_keyboard(page, run):
    note, said = page.page.locator(".pin-note"), page.page.locator(".said")
    page.point_at(6, 2)
    assert page.tokens.nth(6).evaluate("e => e.classList.contains('is-query')")
    assert page.tokens.nth(2).evaluate("e => e.classList.contains('is-key')")
    page.page.mouse.click(*page.cell(6, 2))
    expect(note).to_contain_text("Pinned")
    pinned = page.read("weight")
    page.page.mouse.move(5, 5)
    page.page.wait_for_selector("#tokens .is-query", state="detached")
    assert page.read("weight") == pinned != "–"
    page.page.keyboard.press("Escape")
    expect(note).to_contain_text("Point at")
    assert page.read("weight") == ""  # no column of dashes

    page.page.locator(".attention .large").focus()  # on the row of the last token read
    for key in ("ArrowUp",) * len(run.tokens) + ("ArrowDown",) * 4 + ("ArrowRight",) * 2:
        page.page.keyboard.press(key)
    record = run.trace["decoder.0.self"]
    expect(said).to_have_text(
        f"query 4 “{run.tokens[4]}” reads key 2 “{run.tokens[2]}”: weight "
        f"{record.pattern[0, 0, 4, 2]:.4f}, score {record.scores[0, 0, 4, 2]:.2f}, allowed"
    )
    page.page.keyboard.press("End")
    expect(said).to_contain_text("hidden by the mask")
    page.page.keyboard.press("Home")
    page.page.keyboard.press("Enter")
    expect(said).to_contain_text(f"Pinned: query 4 “{run.tokens[4]}” reads key 0")
    expect(page.tokens.nth(4)).to_have_attribute("aria-pressed", "true")
    page.page.keyboard.press("Shift+Enter")
    expect(note).to_contain_text("Pinned. Esc lets go.")
    expect(page.large).to_have_attribute("data-column", "")
    page.page.keyboard.press("Escape")
    expect(page.large).to_have_attribute("data-row", "")

    page.page.locator(".attention .large .ytick text").nth(3).click()
    expect(note).to_contain_text("Pinned. Esc lets go.")
    expect(page.large).to_have_attribute("data-column", "")
    page.tokens.nth(3).click()
    page.page.keyboard.press("ArrowRight")  # the text is walked
    expect(page.large).to_have_attribute("data-row", "4")
    page.head(0, 0).focus()
    for key in ("ArrowDown", "ArrowRight"):  # so are the heads
        page.page.keyboard.press(key)
    expect(page.large).to_have_attribute("data-site", "decoder.1.self")
    expect(page.large).to_have_attribute("data-head", "1")


@pytest.mark.without_server
def test_stages_scales_and_pictures_of_many_heads_are_switched(page, run):
    size = len(run.tokens)
    for stage, empty in (("scores", 0), ("masked", size * (size - 1) // 2)):
        page.switch("stages", stage)
        assert np.isnan(np.array(page.page.evaluate(Z), dtype=float)).sum() == empty
    page.switch("pictures", "flow")
    page.switch("scales", "linear")
    for which in ("rollout", "joint", "mean"):
        page.switch("combining", which)
        weights = flow_weights(run, "decoder", which)
        np.testing.assert_allclose(page.page.evaluate(Z)[6][:7], weights[6, :7], atol=1e-5)
    page.press(page.page.locator(".depths label").first, draws=".attention")
    wanted = flow_weights(run, "decoder", layer=0)
    np.testing.assert_allclose(page.page.evaluate(Z)[6][:7], wanted[6, :7], atol=1e-5)
    page.switch("pictures", "heatmap")  # with masked scores, which several heads have not
    page.switch("stages", "weights")
    page.switch("ranges", "own")
    top = page.page.evaluate("document.querySelector('.attention .large').data[0].zmax")
    assert top == pytest.approx(float(run.trace["decoder.0.self"].pattern[0, 0].max()), abs=1e-5)


def test_the_table_has_every_heads_numbers_is_sorted_and_chooses_a_head(page, run):
    found = head_metrics(run, "decoder", "self")
    page.wait_drawn(".ranking")
    rows = [
        row.locator("th, td").all_inner_texts()
        for row in every(page.page.locator(".ranking-table .rows tr"))
    ]
    place = [metric.name for metric in found.metrics].index("entropy")
    for row, head in zip(rows, found.heads, strict=True):
        assert row[0] == f"layer {head.layer}, head {head.head}"
        assert float(row[1 + place]) == pytest.approx(head.values["entropy"], abs=0.0051)
        sign = page.head(head.layer, head.head).locator(".sign")
        expect(sign).to_have_text([ALL[str(head.named_after)].sign] if head.label else [])
    for order in ("descending", "ascending"):
        page.page.get_by_role("button", name="Entropy (bits)").click()
        expect(page.page.locator(f"th[aria-sort={order}]")).to_contain_text("Entropy")
    upwards = sorted(found.heads, key=lambda head: head.values["entropy"])
    at, other = next((n, h) for n, h in enumerate(upwards) if (h.layer, h.head) != (0, 0))
    with page.drawn(".attention"):
        page.page.locator(".rows tr").nth(at).get_by_role("button").press("Enter")
    expect(page.large).to_have_attribute("data-site", f"decoder.{other.layer}.self")
    expect(page.large).to_have_attribute("data-head", str(other.head))


@pytest.mark.without_server
def test_the_browser_works_out_the_row_that_is_chosen(page, run):
    page.head(1, 2).click()
    page.tokens.nth(6).click()
    page.wait_worked("decoder.1.self", 2, 6)
    found = row_arithmetic(run, "decoder.1.self", 2, 6)
    root, steps = page.page.locator(".attention-math"), page.page.locator(".row-steps")
    expect(root).to_have_attribute("data-key", str(int(found.weights.argmax())))
    key = int(found.weights.argsort()[-2])  # the second best
    page.page.locator(f".row-table tr[data-key='{key}'] button").click()
    expect(steps).to_contain_text(f"/ √8 = {found.scores[key]:.3f}".replace("-", "−"))
    expect(steps).to_contain_text(f"= {found.output[0]:.3f}".replace("-", "−"))
    page.page.locator(".row-table tr[data-key='7'] button").click()
    expect(steps).to_contain_text("the mask hides this key")


def test_every_head_of_a_layer_has_its_colour_and_its_weight_on_a_pair(door):
    door.go("model=stories&tab=attention&picture=lines&line_heads=layer&read=31&key=12")
    door.wait_drawn(".attention")
    heads = door.page.locator(".head-colour")
    expect(heads).to_have_count(8)
    expect(heads.first).to_have_text("0 0.62")
    lines = (
        "() => document.querySelector('.attention .lines')?._fullData"
        ".filter(({ mode }) => mode === 'lines').map(({ line, y }) => [line.color, y.length / 3])"
    )
    door.page.wait_for_function(f"() => ({lines})()?.length >= 4")
    drawn = door.page.evaluate(lines)
    assert sum(count for _, count in drawn) == len(drawn)  # one line of a head between two tokens
    box = door.page.locator(".attention .picture.lines").bounding_box()
    assert box is not None
    assert box["height"] < 900
    heads.nth(3).click()
    expect(heads.nth(3)).to_have_attribute("aria-pressed", "true")
    door.wait_for_address("head=3")


def test_the_benchmark_of_large_attention_finds_its_way_on_the_page(memory, server, monkeypatch):
    monkeypatch.setattr(scale, "REST_MS", 0)
    context = memory(viewport={"width": 1440, "height": 900})
    n_bytes, clicks, n_nodes = scale.measure(context.new_page(), server.url, 40, 2)
    assert n_bytes > 0
    assert len(clicks) == 2
    assert n_nodes > 0
    context.close()
