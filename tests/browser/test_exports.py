"""The Export place: pictures and files of the run that is shown, by mouse and by keyboard."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Download, expect
from serving import Server
from visit import Visit

import transformer

pytestmark = pytest.mark.browser
Open = Callable[..., Visit]
HOSTILE = "<b>x</b> =1+1 {{value}} ${value} </script>"


def opened(page: Visit) -> None:
    """By keyboard: the place is a disclosure."""
    page.page.locator(".exports summary").focus()
    page.page.keyboard.press("Enter")
    expect(page.page.locator(".exports [data-form=json]")).to_be_visible()
    expect(page.page.locator(".which option")).not_to_have_count(0)


def saved(page: Visit, button: str) -> Download:
    with page.page.expect_download() as found:
        page.page.locator(f".exports {button}").press("Enter")
    expect(page.page.locator(".export-note")).to_contain_text(
        f"Saved {found.value.suggested_filename}"
    )
    return found.value


def test_the_run_is_saved_as_json_npz_csv_and_a_page(visit: Open, server: Server) -> None:
    page = visit()
    page.set_length(6)
    page.generate(HOSTILE)
    with page.drawn(".attention"):
        page.head(1, 2).click()
    opened(page)
    labels = page.labels()
    found = transformer.from_json(saved(page, "[data-form=json]").path().read_text("utf-8"))
    assert list(found.labels) == labels
    assert found.request.text == HOSTILE
    download = saved(page, "[data-form=npz]")
    assert download.suggested_filename == "tiny-b-x-b-1-1-value-value-script.npz"
    read = transformer.read_npz(Path(download.path()))
    download = saved(page, "[data-form=csv]")
    assert download.suggested_filename.endswith("-decoder-1-self-head-2.csv")
    with Path(download.path()).open(encoding="utf-8-sig", newline="") as file:
        head, *lines = list(csv.reader(file))
    assert head[1:] == [f"[{place}] {label}" for place, label in enumerate(labels)]
    weights = read.trace["decoder.1.self"].pattern[0, 2].numpy()
    assert np.float32(lines[3][2]) == weights[3, 1]
    text = saved(page, "[data-form=html]").path().read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert HOSTILE not in text


def test_pictures_are_saved_as_png_and_svg(visit: Open, server: Server) -> None:
    page = visit()
    opened(page)
    names = page.page.locator(".which option").all_inner_texts()
    assert names[0].startswith("Layer 0, head 0: decoder self-attention, weights")
    assert "Every head" in names
    for name in (names[0], "Every head"):
        page.page.locator("select.which").select_option(name)
        image = saved(page, "[data-picture=png]")
        assert image.path().read_bytes().startswith(b"\x89PNG")
        assert image.path().stat().st_size > 5_000
        drawing = ElementTree.fromstring(saved(page, "[data-picture=svg]").path().read_bytes())
        assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
        assert drawing.findall(".//{http://www.w3.org/2000/svg}image")
        assert not drawing.findall(".//{http://www.w3.org/2000/svg}script")


def test_the_picture_list_follows_the_tab(visit: Open) -> None:
    page = visit()
    opened(page)
    page.tab("Positions")
    page.wait_drawn(".positions")
    page.page.locator("select.which").focus()
    expect(page.page.locator(".which option").first).to_have_text(
        "The matrix: position by dimension"
    )
    assert saved(page, "[data-picture=svg]").suggested_filename == (
        "tiny-the-matrix-position-by-dimension.svg"
    )


def test_a_picture_of_an_earlier_run_is_not_offered(visit: Open) -> None:
    page = visit()
    page.wait_drawn(".attention-math")
    page.page.locator(".attention").evaluate("box => (box.style.paddingBottom = '3000px')")
    page.page.evaluate("scrollTo(0, 0)")  # it is out of sight, and not drawn again
    opened(page)
    names = page.page.locator(".which option").all_inner_texts()
    worked = next(one for one in names if "worked out" in one)
    page.page.locator("select.which").select_option(worked)
    page.set_length(4)
    page.generate("The fox")
    expect(page.page.locator("select.which")).to_have_value(
        "Layer 0, head 0: decoder self-attention, weights"
    )
    assert "worked out" not in page.page.locator("select.which").inner_text()


def test_a_refusal_of_the_server_is_shown_as_its_sentence(visit: Open) -> None:
    page = visit()
    opened(page)
    page.page.evaluate("viz.run = { ...viz.run, run: 'gone' }")
    page.page.locator(".exports [data-form=npz]").click()
    assert "no longer keeps this run" in page.wait_for_alert()
    expect(page.page.locator(".exports [data-form=npz]")).to_be_enabled()
