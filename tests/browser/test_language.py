"""The page in a language in which every sentence of the catalogue stands in ⟦ ⟧."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable

import serving
from playwright.sync_api import Request
from visit import OPEN, SECTIONS, Visit, complaints

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
    "[role=tooltip], .glossary-list, .learn-controls option, .moments-sentence option";
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
    page.page.locator("#text textarea").fill(" ")
    page.page.locator("#generate").click()
    page.page.wait_for_function("document.querySelector('#status .problem')?.innerText")
    problem = page.page.locator("#status .problem").inner_text()
    assert problem.startswith("⟦the text is empty"), problem
    left = {tab: texts for tab, texts in found.items() if texts}
    assert not left, json.dumps(left, indent=1, ensure_ascii=False)


def test_the_menu_brings_the_page_in_another_language_with_all_that_stands_on_it(
    visit: Callable[..., Visit],
) -> None:
    page = visit(own={})
    page.wait_drawn(".attention")
    visits = sessions_of(page)
    menu = page.page.locator(".language-menu")
    assert menu.locator("option").all_inner_texts() == ["English", "Esperanto"]
    page.set_length(3)
    page.generate("Once there was")
    page.page.evaluate("viz.setHead({...viz.head, layer: 1, head: 2})")
    page.page.locator("#text textarea").fill("not yet sent")
    page.tab("Masks")
    page.wait_for_link()
    run = page.page.evaluate("viz.run.ids")
    page.menu()
    menu.select_option("eo")
    page.page.wait_for_selector("#generate:has-text('⟦')")
    page.page.wait_for_function(OPEN)
    page.page.wait_for_function("ids => String(viz.run.ids) === String(ids)", arg=run)
    page.page.wait_for_function("document.querySelector('#text textarea').value === 'not yet sent'")
    assert page.page.evaluate("[viz.head.layer, viz.head.head]") == [1, 2]
    assert page.page.locator("#right [role=tab][aria-selected=true]").inner_text() == "⟦Masks⟧"
    assert "lang" not in page.page.url
    assert page.page.evaluate("navigator.language") == "eo"
    page.page.locator("#generate").click()
    page.page.wait_for_function("viz.run.text === 'not yet sent'")
    assert len(visits) == 1, "the visit goes on"
    again = page.page.context.new_page()  # the next visit in this browser
    again.goto(page.page.url.partition("#")[0])
    again.wait_for_selector("#generate:has-text('⟦')")
    again.wait_for_function("!location.search")
    again.locator(".menu-button").click()
    again.locator(".language-menu").select_option("en")
    again.wait_for_selector("#generate:not(:has-text('⟦'))")


def sessions_of(page: Visit) -> set[str]:
    """The visits that the server is told of, as long as the page lives."""
    found: set[str] = set()

    def note(request: Request) -> None:
        found.update(re.findall(r'session_hash["=:]+(\w+)', f"{request.url} {request.post_data}"))

    page.page.on("request", note)
    return found


def test_an_error_of_the_api_comes_in_the_language_that_was_asked_for(
    server: serving.Server,
) -> None:
    def error(**headers: str) -> str:
        base = f"{server.url}gradio_api/call/generate"
        settings = [4, None, None, None, None, 0, 1, 1.0, None, None]
        body = json.dumps({"data": [" ", "tiny", *settings]}).encode()
        asked = {"Content-Type": "application/json", **headers}
        with urllib.request.urlopen(urllib.request.Request(base, body, asked)) as answer:
            event = json.load(answer)["event_id"]
        with urllib.request.urlopen(f"{base}/{event}", timeout=60) as stream:
            return re.sub(
                r"\\u(....)", lambda found: chr(int(found[1], 16)), stream.read().decode()
            )

    sentence = "the text is empty: write something in it first"
    assert f"'{sentence}'" in error()
    assert f"'⟦{sentence}⟧'" in error(**XX)


def test_a_word_of_the_field_is_explained_on_hover_focus_and_touch(
    visit: Callable[..., Visit],
) -> None:
    page = visit(own={"has_touch": True, "extra_http_headers": {"Accept-Language": "en"}}).page
    page.wait_for_selector(".attention[data-rev]")
    tip = page.locator("[role=tooltip]")
    mark = page.locator("#right .term").first
    mark.hover()
    page.wait_for_selector("[role=tooltip]:has-text('.')")
    page.keyboard.press("Escape")
    page.wait_for_selector("[role=tooltip]", state="hidden")
    mark.focus()
    page.wait_for_selector("[role=tooltip]:has-text('.')")
    assert tip.evaluate("tip => document.activeElement.getAttribute('aria-describedby') === tip.id")
    assert complaints(Visit(page)) == []
    mark.blur()
    page.wait_for_selector("[role=tooltip]", state="hidden")
    mark.tap()
    page.wait_for_selector("[role=tooltip]:has-text('.')")
    marked = page.locator("dfn.term").evaluate_all(
        "all => all.map((one) => Boolean(one.closest('button, a, label, bdi, code, summary')))"
    )
    assert marked
    assert not any(marked)
    changed = page.evaluate(
        """async () => {
            const text = document.createElement("p");
            text.textContent = "a token, a head";
            document.body.append(text);
            const [node] = text.childNodes; // all that a component knows of it
            viz.markTerms(text);
            const marks = text.children.length;
            node.data = "nothing";
            await viz.nextPaint();
            return [marks, text.textContent];
        }"""
    )
    assert changed == [2, "nothing"]
