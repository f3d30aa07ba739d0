"""The page in a language in which every sentence of the catalogue stands in ⟦ ⟧."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import httpx
import pytest
import serving
from playwright.sync_api import Request, expect
from visit import OPEN, SECTIONS, Visit

from transformer.views.declaration import tab_name

XX = {"Accept-Language": "eo-CH, en;q=0.5"}
# Names of the field and of the code, what the tests' models say of themselves, Gradio's own slider.
NAMES = re.compile(
    r"softmax|exp|top-k|The boy saw a cat\. He ran after the"
    r"|Decoder|Encoder|English|Esperanto|decoder\.0\.self0|[\d, ]+, top-k [\d; ]+"
    r"|aria-label: (?:Reset to default value|(?:number input|range slider) for )"  # Gradio's
    r"|gpt2432|transformer/\S+\.py|· [\w.]+|2For tests alone\..*"
)
# What a visitor sees or is read outside of ⟦ ⟧: texts in the page's order, and attributes. Tokens
# and texts of models are not the page's own words.
UNSAID = """() => {
  const found = [];
  // tokens, the texts and the names of models, and what Gradio and Plotly say themselves
  const notOurs = "script, style, noscript, textarea, bdi, [hidden], #chips, #card, code, .token," +
    ".axis-labels, g[class*=tick], .heatmap-label, footer, .modebar, .overflow-menu, " +
    "[role=tooltip], .glossary-list, .learn-controls option, .checkpoints-sentence option";
  let depth = 0;
  const outside = (text) => [...text].filter((c) => {
    if (c === "⟦") depth += 1;
    const is = depth === 0;
    if (c === "⟧") depth = Math.max(0, depth - 1);
    return is;
  }).join("");
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) {
      const text = outside(node.data).replace(/\\u2068[^\\u2069]*\\u2069/g, "").trim();
      const range = document.createRange();
      range.selectNodeContents(node);
      const option = node.parentElement.closest("option");
      const shown = (option?.parentElement ?? range).getClientRects().length;
      if (/[a-z]{2}/.test(text) && shown) found.push(text);
    } else if (node.nodeType === Node.ELEMENT_NODE && !node.matches(notOurs)) {
      const names = node.matches(".token") || node.querySelector("bdi") ? [] : undefined;
      for (const name of names ?? ["aria-label", "title", "placeholder"]) {
        const text = (node.getAttribute(name) ?? "")
          .replace(/⟦[^⟧]*⟧|\\u2068[^\\u2069]*\\u2069/g, "");
        if (/[a-z]{2}/.test(text)) found.push(`${name}: ${text}`);
      }
      node.childNodes.forEach(walk);
    }
  };
  walk(document.body);
  return found;
}"""


def visible(page: Visit) -> list[str]:
    """What is said outside of the catalogue, each once."""
    said = page.page.evaluate(UNSAID)
    return sorted({text for text in said if not NAMES.fullmatch(text)})


def test_nothing_on_the_page_is_said_outside_the_catalogue(visit: Callable[..., Visit]) -> None:
    page = visit(own={"extra_http_headers": XX}, tab="Journey")
    tabs = page.page.locator("#right > .tabs > .tab-wrapper [role=tab]")
    assert tabs.all_inner_texts()[:2] == ["⟦Journey⟧", "⟦Attention⟧"]
    found = {"Journey": visible(page)}
    for tab, drawn in {
        "Attention": ".attention[data-rev]",
        "Masks": ".masks [data-picture=combined]",
        "Positions": ".position-curves",
        "Prediction": ".prediction .coming li",
        "What if?": ".ablation",
        "Learn": ".learn-curves .js-plotly-plot, .learn-curves.js-plotly-plot",
        "Model": "[data-picture=architecture] text",
    }.items():
        tabs.filter(has_text=f"⟦{tab}⟧").click()
        if drawn in SECTIONS:
            page.wait_drawn(drawn)
        page.page.wait_for_selector(drawn)
        if tab != "Attention":  # which a link without a tab means
            page.wait_for_address(f"tab={tab_name(tab)}")
        found[tab] = visible(page)
    page.enter(" ")
    assert page.wait_for_alert().startswith("⟦the text is empty")
    left = {tab: texts for tab, texts in found.items() if texts}
    assert not left, json.dumps(left, indent=1, ensure_ascii=False)


def test_the_menu_brings_the_page_in_another_language_with_all_that_stands_on_it(
    visit: Callable[..., Visit],
) -> None:
    page = visit(own={})
    visits: set[str] = set()  # that the server is told of, as long as the page lives

    def note(one: Request) -> None:
        visits.update(re.findall(r'session_hash["=:]+(\w+)', f"{one.url} {one.post_data}"))

    page.page.on("request", note)
    page.set_length(3)
    page.generate("Once there was")
    page.press(page.head(1, 2), draws=".attention")
    page.page.locator("#text textarea").fill("not yet sent")
    page.tab("Masks")
    page.wait_for_link()
    run = page.page.evaluate("viz.run.ids")
    page.menu()
    menu = page.page.locator(".language-menu")
    assert menu.locator("option").all_inner_texts() == ["English", "Esperanto"]
    menu.select_option("eo")
    page.page.wait_for_selector("#generate:has-text('⟦')")
    page.page.wait_for_function(OPEN)
    page.page.wait_for_function("ids => String(viz.run.ids) === String(ids)", arg=run)
    expect(page.page.locator("#text textarea")).to_have_value("not yet sent")
    assert page.page.evaluate("[viz.head.layer, viz.head.head]") == [1, 2]
    assert page.page.locator("#right [role=tab][aria-selected=true]").inner_text() == "⟦Masks⟧"
    assert "lang" not in page.page.url
    page.page.locator("#generate").click()
    page.page.wait_for_function("viz.run.text === 'not yet sent'")
    assert len(visits) == 1, "the visit goes on"
    again = page.page.context.new_page()  # the next visit in this browser
    again.goto(page.page.url.partition("#")[0])
    again.wait_for_selector("#generate:has-text('⟦')")
    again.locator(".menu-button").click()
    again.locator(".language-menu").select_option("en")
    again.wait_for_selector("#generate:not(:has-text('⟦'))")


@pytest.mark.parametrize(("headers", "told"), [({}, "'{}'"), (XX, "'⟦{}⟧'")])
def test_an_error_of_the_api_comes_in_the_language_that_was_asked_for(
    server: serving.Server, headers: dict[str, str], told: str
) -> None:
    with httpx.Client(base_url=server.url, headers=headers) as client:
        body = {"text": " ", "model": "tiny"}
        event = client.post("gradio_api/call/v2/generate", json=body).json()["event_id"]
        said = client.get(f"gradio_api/call/v2/generate/{event}").text
    said = re.sub(r"\\u(....)", lambda found: chr(int(found[1], 16)), said)
    assert told.format("the text is empty: write something in it first") in said


def test_a_word_of_the_field_is_explained_on_hover_focus_and_touch(
    visit: Callable[..., Visit],
) -> None:
    page = visit(own={"has_touch": True}).page
    tip, mark = page.locator("[role=tooltip]"), page.locator("#right .term:visible").first
    mark.hover()
    expect(tip).to_contain_text(".")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    mark.focus()
    expect(tip).to_contain_text(".")
    expect(mark).to_have_attribute("aria-describedby", str(tip.get_attribute("id")))
    mark.blur()
    expect(tip).to_be_hidden()
    mark.tap()
    expect(tip).to_contain_text(".")
