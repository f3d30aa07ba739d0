"""Views that a folder declares: on the page, in its link, as a table, asked for by a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import own_view
import pytest
import serving
from gradio_client import Client
from playwright.sync_api import expect
from serving import Server
from visit import Visit

pytestmark = pytest.mark.browser
PICTURE = "#view-label_lengths [data-picture=label_lengths]"


@pytest.fixture(scope="module")
def address(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a server with those views listens."""
    folder = own_view.write(tmp_path_factory.mktemp("views"))
    port, log = serving.free_port(), folder / "server.log"
    offered = [str(server.log.parent / "tiny")]
    process = serving.started(port, offered, log, more=["--views", str(folder)])
    yield f"http://127.0.0.1:{port}/"
    serving.stop(process)


def test_a_declared_view_has_controls_a_picture_a_table_and_fields_in_the_link(
    visit: Callable[..., Visit], address: str, tmp_path: Path
) -> None:
    page = visit(address)
    page.tab("Prediction")
    page.wait_drawn("#view-label_lengths .panel")
    panel = page.page.locator("#view-label_lengths")
    expect(panel.get_by_role("heading", name="Length of labels")).to_be_visible()
    bars = f"document.querySelector('{PICTURE}').calcdata[0].length"
    labels = page.page.evaluate("viz.run.labels")
    assert page.page.evaluate(bars) == len(labels)
    with page.drawn("#view-label_lengths .panel"):
        panel.get_by_label("Longer than").fill("3")
        panel.get_by_label("Longer than").blur()
    with page.drawn("#view-label_lengths .panel"):
        panel.get_by_label("Counted in").select_option("bytes")
    wanted = [len(label.encode()) for label in labels if len(label.encode()) >= 3]
    assert page.page.evaluate(bars) == len(wanted)
    panel.locator("summary", has_text="table").click()
    expect(panel.locator("table")).to_contain_text(str(wanted[0]))
    link = page.wait_for_address("label_lengths.least=3", "label_lengths.unit=bytes")
    other = visit(link)
    other.wait_for_link()
    other.wait_drawn("#view-label_lengths .panel")
    expect(other.page.locator("#view-label_lengths").get_by_label("Longer than")).to_have_value("3")
    assert other.page.evaluate(bars) == len(wanted)


def test_a_view_with_a_component_stands_on_the_page_in_links_and_in_other_languages(
    visit: Callable[..., Visit], address: str
) -> None:
    page = visit(address)
    page.tab("Letters")
    page.wait_drawn(".first-letters")
    with page.drawn(".first-letters"):
        page.page.get_by_label("At most").fill("3")
    bars = "document.querySelector('[data-picture=first_letters]').calcdata[0].length"
    assert page.page.evaluate(bars) == 3
    colour = "getComputedStyle(document.querySelector('.first-letters h3')).color"
    assert page.page.evaluate(colour) == "rgb(10, 92, 173)"
    link = page.wait_for_address("first_letters.most=3", "tab=letters")
    other = visit(link, language="de")
    other.wait_for_link()
    other.wait_drawn(".first-letters[data-most='3']")
    expect(other.page.get_by_role("tab", name="Buchstaben")).to_be_visible()
    expect(other.page.get_by_role("heading", name="Anfangsbuchstaben")).to_be_visible()
    expect(other.page.get_by_label("Höchstens")).to_have_value("3")


def test_a_program_asks_for_a_declared_view(address: str) -> None:
    client = Client(address, verbose=False)
    run = client.predict("The fox", max_new_tokens=2, api_name="/generate")
    given = {"least": 2, "unit": "characters"}
    answer = client.predict("label_lengths", run["run"], given, api_name="/view")
    wanted = [at for at, label in enumerate(run["tokens"]) if len(label) >= 2]
    assert answer["figure"]["data"][0]["x"] == wanted
    assert "label_lengths" in [view["name"] for view in client.predict(api_name="/views")]
