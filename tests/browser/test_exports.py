"""The Export place: pictures and files of the run that is shown, by keyboard."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Download, expect
from visit import Visit

import transformer

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<b>x</b> =1+1 {{value}} ${value} </script>"


@pytest.fixture
def page(still: Visit) -> Visit:
    """By keyboard: the place is a disclosure."""
    still.go("model=tiny&tab=attention&site=decoder.0.self&head=0")
    if still.page.locator(".exports").get_attribute("open") is None:
        still.page.locator(".exports summary").focus()
        still.page.keyboard.press("Enter")
    expect(still.page.locator(".exports [data-form=json]")).to_be_visible()
    expect(still.page.locator(".which option")).not_to_have_count(0)
    return still


def saved(page: Visit, button: str) -> Download:
    with page.page.expect_download() as found:
        page.page.locator(f".exports {button}").press("Enter")
    note = page.page.locator(".export-note")
    expect(note).to_contain_text(f"Saved {found.value.suggested_filename}")
    return found.value


def test_pictures_are_those_of_the_open_tab_and_are_saved_as_png_and_svg(page: Visit) -> None:
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


def test_the_run_is_saved_as_json_npz_csv_and_a_page_and_a_refusal_is_told(page: Visit) -> None:
    page.set_length(6)
    page.generate(HOSTILE)
    page.press(page.head(1, 2), draws=".attention")
    labels = page.labels()
    found = transformer.from_json(saved(page, "[data-form=json]").path().read_text("utf-8"))
    assert (list(found.labels), found.request.text) == (labels, HOSTILE)
    download = saved(page, "[data-form=npz]")
    assert download.suggested_filename == "tiny-b-x-b-1-1-value-value-script.npz"
    read = transformer.read_npz(Path(download.path()))
    assert list(read.labels) == labels
    download = saved(page, "[data-form=csv]")
    assert download.suggested_filename.endswith("-decoder-1-self-head-2.csv")
    written = Path(download.path()).read_bytes().decode("utf-8-sig")
    assert written == read.attention_csv("decoder.1.self", 2)
    text = saved(page, "[data-form=html]").path().read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert HOSTILE not in text
    page.page.evaluate("viz.run = { ...viz.run, run: 'gone' }")
    page.page.locator(".exports [data-form=npz]").click()
    assert "no longer keeps this run" in page.wait_for_alert()
    expect(page.page.locator(".exports [data-form=npz]")).to_be_enabled()
