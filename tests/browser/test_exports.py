"""The Export place: pictures and files of the run that is shown, by keyboard."""

import io
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from kit.browser import Visit
from PIL import Image
from playwright.sync_api import Download, expect

import transformer

SVG = "{http://www.w3.org/2000/svg}"
FORMS = ("json", "npz", "csv", "html", "py")
HOSTILE = "<b>x</b> =1+1 {{value}} ${value} </script>"

# Hides what a picture of the page leaves out; where the picture begins, and words' boxes in it.
PICTURED = """words => {
    document.body.classList.add("pictured");
    const root = document.querySelector("#columns").getBoundingClientRect();
    const wide = [...document.querySelectorAll(words)].filter(word => word.offsetWidth > 8);
    const boxes = wide.map(word => {
        const { left, top, right, bottom } = word.getBoundingClientRect();
        return [left - root.x, top - root.y, right - root.x, bottom - root.y].map(Math.round);
    });
    return [root.x, root.y + scrollY, boxes];
}"""


@pytest.fixture
def page(still: Visit) -> Visit:
    still.go("model=tiny&tab=attention&site=decoder.0.self&head=0")
    open_place(still)
    expect(still.page.locator(".exports [data-form=json]")).to_be_visible()
    return still


def open_place(visit: Visit) -> None:
    """By keyboard: it is a disclosure."""
    if visit.page.locator(".exports").get_attribute("open") is None:
        visit.page.locator(".exports summary").focus()
        visit.page.keyboard.press("Enter")
    expect(visit.page.locator(".which option")).not_to_have_count(0)


def saved(page: Visit, button: str) -> Download:
    with page.page.expect_download() as found:
        page.page.locator(f".exports {button}").press("Enter")
    note = page.page.locator(".export-note")
    expect(note).to_contain_text(f"Saved {found.value.suggested_filename}")
    expect(page.page.locator(f".exports {button}")).to_be_focused()
    return found.value


def test_pictures_are_those_of_the_open_tab_and_are_saved_as_png_and_svg(page):
    which = page.page.locator("select.which")
    names = which.locator("option").all_inner_texts()
    assert names[0].startswith("Layer 0, head 0: decoder self-attention, weights")
    for name in (names[0], "Every head"):
        which.select_option(name)
        image = saved(page, "[data-picture=png]").path()
        assert image.read_bytes().startswith(b"\x89PNG")
        assert image.stat().st_size > 5_000
        drawing = ElementTree.fromstring(saved(page, "[data-picture=svg]").path().read_bytes())
        assert drawing.tag == f"{SVG}svg"
        assert drawing.findall(f".//{SVG}image")
        assert not drawing.findall(f".//{SVG}script")
    page.tab("Positions")
    page.wait_drawn(".positions")
    which.focus()
    expect(which.locator("option").first).to_have_text("The matrix: position by dimension")
    name = saved(page, "[data-picture=svg]").suggested_filename
    assert name == "tiny-the-matrix-position-by-dimension.svg"


@pytest.mark.without_server
def test_the_journey_is_saved_as_the_browser_paints_it(still):
    still.go("model=tiny&tab=journey&site=decoder.0.self&head=0")
    page = still.page
    page.locator(".card-kinds button").nth(1).click()
    expect(page.locator(".word-card")).to_have_attribute("aria-busy", "false")
    expect(page.locator("#tokens .token:is(.helps, .hinders)")).not_to_have_count(0)
    expect(page.locator(".word-texts strong")).not_to_have_count(0)  # what is drawn last
    expect(page.locator(".bars-legend .without")).not_to_have_count(0)
    expect(page.locator(".ghost.awaited")).to_have_count(0)
    open_place(still)
    expect(page.locator(".which option")).to_have_text(["Journey"])
    text = Path(saved(still, "[data-picture=svg]").path()).read_text("utf-8")
    drawing = ElementTree.fromstring(text)
    written = {letters.text for letters in drawing.iter(f"{SVG}text")}
    labels = page.locator("#tokens .token:not(.special) bdi").all_inner_texts()
    words = {label.lstrip("␣⏎ \n") for label in labels} - {""}
    title = page.locator(".next-words h2").inner_text()
    assert len(words) > 3
    assert words | {title} <= written
    assert not drawing.findall(f".//{SVG}foreignObject")  # other programs show none
    assert not re.search(r"color\(|oklab|var\(", text)
    image = Image.open(saved(still, "[data-picture=png]").path())

    left, top, width, height = map(int, drawing.attrib["viewBox"].split())
    assert image.size == (2 * width, 2 * height)
    # As the browser itself paints it: words with their shades, and all of it.
    x, y, boxes = page.evaluate(PICTURED, "#tokens .token:is(.helps, .hinders)")
    clip = {"x": x + left, "y": y + top, "width": width, "height": height}
    screen = Image.open(io.BytesIO(page.screenshot(clip=clip, full_page=True)))
    page.evaluate("document.body.classList.remove('pictured')")
    drawn = image.resize((width, height), Image.Resampling.BOX)
    both = np.array([np.asarray(one.convert("RGB"), dtype=float) for one in (drawn, screen)])
    for word_left, word_top, right, bottom in boxes:
        word = both[:, word_top - top : bottom - top, word_left - left : right - left]
        np.testing.assert_allclose(*word.mean((1, 2)), atol=8)
    paper = both[1, 0, 0]
    assert np.abs(both[0] - both[1]).mean() < 0.3 * np.abs(both[1] - paper).mean()


def test_the_run_is_saved_in_five_formats_and_a_refusal_is_shown(page):
    page.set_length(6)
    page.generate(HOSTILE)
    page.press(page.head(1, 2), draws=".attention")
    labels = page.labels()
    files = {form: saved(page, f"[data-form={form}]") for form in FORMS}
    name = "tiny-b-x-b-1-1-value-value-script"
    assert files["npz"].suggested_filename == f"{name}.npz"
    assert files["csv"].suggested_filename == f"{name}-decoder-1-self-head-2.csv"
    read = transformer.read_npz(Path(files.pop("npz").path()))
    text = {form: one.path().read_bytes().decode("utf-8-sig") for form, one in files.items()}
    found = transformer.from_json(text["json"])
    assert (list(found.labels), found.request.text) == (labels, HOSTILE)
    assert text["csv"] == read.attention_csv("decoder.1.self", 2)
    assert text["html"].startswith("<!doctype html>")
    assert HOSTILE not in text["html"]
    address = page.page.evaluate("location.origin + location.pathname")
    assert f"client = Client({address!r})" in text["py"]
    assert f"{HOSTILE!r}" in text["py"]
    page.page.locator(".exports .with-network").check()
    whole = saved(page, "[data-form=html]").path().read_bytes()
    assert all(f'data-file="{one}"'.encode() in whole for one in ("kernel.wasm", "site.json.gz"))
    gone = {"status": 410, "json": {"detail": "gone"}}
    page.page.route("**/resources/export*", lambda route: route.fulfill(**gone))
    page.page.locator(".exports [data-form=npz]").click()
    assert "no longer keeps this run" in page.wait_for_alert()
    expect(page.page.locator(".exports [data-form=npz]")).to_be_enabled()
    saved(page, "[data-picture=svg]")
    expect(page.page.get_by_role("alert")).to_be_hidden()
