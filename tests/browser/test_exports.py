"""The Export place: pictures and files of the run that is shown, by keyboard."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from kit.browser import Visit
from playwright.sync_api import Download, expect

import transformer

SVG = "{http://www.w3.org/2000/svg}"
FORMS = ("json", "npz", "csv", "html", "py")
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
