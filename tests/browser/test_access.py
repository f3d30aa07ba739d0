"""For everybody: axe-core's rules on every tab with its sections open, Gradio's own controls too,
without exceptions; and on all of it no word that a visitor could not read in his own language."""

import re

from kit.browser import COLOURS, PARTS, Visit, complaints
from playwright.sync_api import expect

from transformer.views.drawing import style

MORE_OF_A_TRANSLATOR = ("Journey", "Attention", "Prediction")
INK = "document.querySelector('.attention .large')._fullLayout.font.color"
# Names of the field and of the code, what the tests' models say of themselves, Gradio's own slider.
NAMES = re.compile(
    r"softmax|exp|top-k|Python|The boy saw a cat\. He ran after the"
    r"|Decoder|Encoder|English|Esperanto|decoder\.0\.self0|[\d, ]+, top-k [\d; ]+"
    r"|aria-label: (?:Reset to default value|(?:number input|range slider) for )"  # Gradio's
    r"|gpt2432|transformer/\S+\.py|· [\w.]+|2For tests alone\..*"
)
# Texts and attributes that are visible or read aloud outside ⟦ ⟧, in the page's order. Tokens
# and texts of models are not the page's own words.
UNSAID = """() => {
  const found = [];
  // tokens, the texts and the names of models, and what Gradio and Plotly say themselves
  const notOurs = "script, style, noscript, textarea, bdi, [hidden], #chips, #card, code, .token," +
    "g[class*=tick], .heatmap-label, .modebar, .overflow-menu, " +
    "[role=tooltip], .glossary-list, .learn-controls option";
  const NOT_SAID = /[a-z]{2}|^\\s*[,;:]|[,;:]\\s*$/; // words, and what joins them in English
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
      if (NOT_SAID.test(text) && shown) found.push(text);
    } else if (node.nodeType === Node.ELEMENT_NODE && !node.matches(notOurs)) {
      const names = node.matches(".token") || node.querySelector("bdi") ? [] : undefined;
      for (const name of names ?? ["aria-label", "title", "placeholder"]) {
        const text = (node.getAttribute(name) ?? "")
          .replace(/⟦[^⟧]*⟧|\\u2068[^\\u2069]*\\u2069/g, "");
        if (NOT_SAID.test(text)) found.push(`${name}: ${text}`);
      }
      node.childNodes.forEach(walk);
    }
  };
  walk(document.body);
  return found;
}"""

# Of each kind of control: what it is, where one that disappears leaves the focus to the whole page.
LOST = """async (part) => {
  const found = [], kinds = new Set();
  const isLost = () => document.activeElement === document.body;
  const frame = () => new Promise(requestAnimationFrame);
  const settled = async () => {
    await frame().then(frame);
    for (let frames = 0; frames < 60 && isLost(); frames += 1) await frame();
  };
  const controls = `${part} :is(button, summary, select, input, [role=treeitem])`;
  for (const one of document.querySelectorAll(controls)) {
    const kind = `${one.localName} ${one.className}`;
    const isSeen = one.isConnected && one.checkVisibility({ visibilityProperty: true });
    if (kinds.has(kind) || !isSeen || one.disabled) continue;
    one.focus({ preventScroll: true });
    if (document.activeElement !== one) continue;
    kinds.add(kind);
    one.style.setProperty("display", "none", "important");
    await settled();
    if (isLost()) found.push(kind);
    one.style.removeProperty("display");
    await frame().then(frame);
  }
  return found;
}"""


def visible(page: Visit) -> list[str]:
    """What is said outside of the catalogue, each once."""
    said = page.page.evaluate(UNSAID)
    return sorted({text for text in said if not NAMES.fullmatch(text)})


def test_the_page_is_accessible_and_entirely_translated(visit, server):
    """In a language in which every sentence of the catalogue is in ⟦ ⟧. All of the page on the
    first tab, then only each tab, since nothing else changes; for a translator those with more
    on."""
    page = visit(language="eo-CH, en;q=0.5", tab="Journey")
    page.page.get_by_role("button", name="⟦Settings⟧").click()
    for tab, (_, *sections) in PARTS.items():
        look_at(page, tab)
        assert visible(page) == [], tab
        for part in sections:  # of which one at a time is open
            page.wait_drawn(part)
            if part == ".ablation":  # its map is drawn only on request
                page.press(page.page.locator(".matter"), draws=part)
            assert complaints(page.page, part) == [], part
            assert visible(page) == [], part
    page.tab("Attention")
    page.choose_model(server.translator.name)
    for tab in MORE_OF_A_TRANSLATOR:
        look_at(page, tab)
    page.enter(" ")
    assert page.wait_for_alert().startswith("⟦the text is empty")


def look_at(page: Visit, tab: str) -> None:
    page.tab(tab)
    page.wait_drawn(next(iter(PARTS[tab])))
    if tab == "Journey":
        page.page.locator(".journey .head").last.hover()
        page.page.wait_for_selector(".next-words[data-without]")
    assert complaints(page.page, "body" if tab == "Journey" else "#right") == [], tab
    # A button that is disabled would lose the focus.
    expect(page.page.locator(".html-container button:disabled")).to_have_count(0)


def test_dark_colours_are_not_too_pale_and_no_control_loses_the_focus(visit):
    page = visit(color_scheme="dark")
    page.page.get_by_role("button", name="Settings").click()
    paper = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, paper.removeprefix("rgb(").rstrip(")").split(","))) < 150
    assert page.page.evaluate(INK) == style.DARK.text
    for tab, (first, *_) in PARTS.items():
        page.tab(tab)
        page.wait_drawn(first)
        whole = "body" if tab == "Journey" else "#right"
        assert complaints(page.page, whole, rules=COLOURS) == [], tab
        assert page.page.evaluate(LOST, whole) == [], tab
    page.tab("Attention")
    with page.drawn(".attention"):
        page.page.evaluate("document.body.classList.remove('dark')")
    assert page.page.evaluate(INK) == style.LIGHT.text
