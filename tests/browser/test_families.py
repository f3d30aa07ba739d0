"""Other people's networks on the page: a Llama, a BERT and a Marian through all tabs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import serving
from gradio_client import Client
from hf_tokenizers import byte_fallback, word_piece
from playwright.sync_api import expect
from published import write
from visit import Visit

from benchmarks.scale import write_model

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore")]
TABS = {
    "Attention": ".attention",
    "Masks": ".masks",
    "Positions": ".positions",
    "Prediction": ".prediction",
    "What if?": ".breaks",
    "Model": ".architecture",
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a server with three such networks listens, and with one of many layers and heads."""
    root = tmp_path_factory.mktemp("theirs")
    write(root / "tiny-llama", "llama", 3, tokenizer=byte_fallback)
    write(root / "tiny-bert", "bert", tokenizer=word_piece)
    write(root / "tiny-marian", "marian")
    write_model(root / "many-heads", 20, 18, 40, 6)
    names = ("tiny-llama", "tiny-bert", "tiny-marian", "many-heads")
    offered = [str(root / name) for name in names]
    port, log = serving.free_port(), root / "server.log"
    process = serving.started(port, offered, log)
    yield f"http://127.0.0.1:{port}/"
    serving.stop(process)


def through_all_tabs(page: Visit, instead: dict[str, str]) -> None:
    for tab, part in {**TABS, **instead}.items():
        page.tab(tab)
        page.wait_drawn(part)
        told = page.page.locator("#status .problem:not([hidden])").all_inner_texts()
        assert told == [], tab


def test_a_llama_a_bert_and_a_marian_go_through_all_tabs(
    visit: Callable[..., Visit], address: str
) -> None:
    page = visit(address)
    through_all_tabs(page, {"Positions": ".rotary"})
    assert page.page.locator(".head-grid .joined.first").count() == 3  # two heads read each key's
    expect(page.page.locator(".shared-keys")).to_have_text("This head shares its keys with head 1.")
    page.tab("Positions")
    expect(page.page.locator(".positions-lab")).to_be_hidden()
    with page.drawn(".rotary"):
        page.page.locator(".rotary-pair").fill("1")
        page.page.locator(".rotary-pair").blur()
    assert page.page.locator(".rotary").get_attribute("data-pair") == "1"
    page = visit(f"{address}#model=tiny-bert")
    page.wait_for_link()
    through_all_tabs(page, {"Prediction": ".masked", "What if?": ".compare"})
    page.tab("Prediction")
    with page.drawn(".masked"):
        page.page.locator(".masked-tokens button").nth(2).click()
    assert page.page.locator(".masked").get_attribute("data-place") == "2"
    assert page.page.get_by_role("button", name="Generate").count() == 0
    run_hidden_word(page, address)
    page = visit(f"{address}#model=tiny-marian")
    page.wait_for_link()
    through_all_tabs(page, {})


def run_hidden_word(page: Visit, address: str) -> None:
    """A word hidden in the text box: the page chooses its place; the API says the same of it."""
    client = Client(address, verbose=False, analytics_enabled=False)
    told = client.predict("the dog [MASK] to the hill", "tiny-bert", 3, api_name="/fill")
    client.close()
    with page.drawn(".masked"):
        page.enter("the dog [MASK] to the hill")
    masked = page.page.locator(".masked")
    expect(masked).to_have_attribute("data-place", str(told["places"][0]))
    bars = "it => it.querySelector('.js-plotly-plot').data[0].x"
    shown = masked.evaluate(bars)
    assert sorted(shown, reverse=True)[:3] == pytest.approx(
        [guess["probability"] for guess in told["guesses"][0]], abs=1e-5
    )


def test_a_grid_of_many_heads_is_one_picture_that_scrolls_to_the_chosen_head(
    visit: Callable[..., Visit], address: str
) -> None:
    page = visit(f"{address}#model=many-heads")
    page.wait_for_link()
    page.wait_drawn(".attention")
    page.wait_drawn(".heads-side")
    grid = page.page.locator(".head-grid")
    assert grid.locator("canvas").count() == 0
    assert grid.evaluate("it => it.style.getPropertyValue('--all-heads')").startswith("url(data:")
    assert grid.evaluate("it => it.scrollTop + it.scrollLeft") == 0
    page.page.locator(".zoom").click()
    with page.drawn(".attention"):
        grid.locator("button").last.evaluate("it => it.click()")  # without Playwright's scrolling
    assert page.page.locator(".attention").get_attribute("data-site") == "decoder.19.self"
    expect(page.page.locator(".shared-keys")).to_have_text(
        "This head shares its keys with heads 15, 16."
    )
    inside, around = grid.locator("button").last.bounding_box(), grid.bounding_box()
    assert inside is not None
    assert around is not None
    for place, size in (("x", "width"), ("y", "height")):
        assert around[place] < inside[place]
        assert inside[place] + inside[size] < around[place] + around[size]
