"""The page and the API in another language, and words explained."""

from kit.browser import OPEN
from playwright.sync_api import Request, expect


def test_the_language_menu_keeps_text_run_and_selection(visit):
    page = visit(own={})
    visits: set[str] = set()  # sessions that the server sees while the page lives

    def note(one: Request) -> None:
        visits.update({one.headers.get("x-session", "")} - {""})

    page.page.on("request", note)
    page.set_length(3)
    page.generate("Once there was")
    page.press(page.head(1, 2), draws=".attention")
    page.text_box().fill("not yet sent")
    page.tab("Masks")
    page.wait_for_link()
    run = page.page.evaluate("viz.run.ids")
    page.menu()
    menu = page.page.locator(".language-menu")
    expect(menu.locator("option")).to_have_text(["English", "Esperanto"])
    menu.select_option("eo")
    page.page.wait_for_selector("#generate:has-text('⟦')")
    page.page.wait_for_function(OPEN)
    page.page.wait_for_function("ids => String(viz.run.ids) === String(ids)", arg=run)
    expect(page.page.locator("#text textarea")).to_have_value("not yet sent")
    assert page.page.evaluate("[viz.head.layer, viz.head.head]") == [1, 2]
    expect(page.page.locator("#right [role=tab][aria-selected=true]")).to_have_text("⟦Masks⟧")
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


def test_a_word_of_the_field_is_explained_on_hover_focus_and_touch(visit):
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


def test_a_word_that_comes_with_an_answer_is_explained_too(visit):
    page = visit(tab="Journey").page
    expect(page.locator(".head-card .term").filter(has_text="ayer")).to_have_count(1)
    legend = page.locator(".flow-legend .term")
    expect(legend).to_have_text("direct logit attribution")
    legend.hover()
    expect(page.locator("[role=tooltip]")).to_contain_text("direct logit attribution")


# What a browser that translates does to the page: other elements in place of its texts, in one of
# two ways.
TRANSLATE = """way => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const text of texts) {
    const inside = text.parentElement.closest("[translate=no], font, script, style, textarea, svg");
    if (inside || !text.data.trim()) continue;
    const [outer, inner] = [document.createElement("font"), document.createElement("font")];
    outer.append(inner);
    if (way === "moved") {
      text.before(outer);
      inner.append(text);
    } else {
      inner.append(`«${text.data}»`);
      text.replaceWith(outer);
    }
  }
}"""
UNMARKED = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const { data, parentElement: at } = walker.currentNode;
    const out = at.closest("[translate=no], font, script, style, textarea, svg");
    const isNumber = /^[^\\p{L}]*\\d[^\\p{L}]*$/u.test(at.textContent);
    const unmarked = isNumber || /[␣⏎]|<\\|/u.test(data);
    if (!out && unmarked && data.trim() && at.checkVisibility())
      found.push(`${at.className || at.localName}: ${data}`);
  }
  return found;
}"""
SHOWN = "[...document.querySelectorAll('#tokens, #journey, .next-words, .journey, .token-says')]"


SAID = (
    f"""{SHOWN}.map(one => one.innerText.replace(/[«»]/g, ""))"""  # without a translation's marks
)


def test_a_page_translated_by_the_browser_still_updates(visit):
    """Tokens and numbers are left out of a translation; no sentence stays that of another text."""
    pages = {"not": visit(), "replaced": visit(), "moved": visit()}
    for text in ("The dog ran home.", "A fox"):
        for way, page in pages.items():
            for tab in ("Prediction", "Journey", "Attention"):
                page.tab(tab)
            assert page.page.evaluate(UNMARKED) == []
            if way != "not":
                page.page.evaluate(TRANSLATE, way)
            page.generate(text)
            page.tokens.nth(1).click()
            page.wait_drawn(".attention")
            page.tab("Journey")
            for part in (".journey", ".next-words"):
                page.wait_drawn(part)
        wanted = pages["not"].page.evaluate(SAID)
        for way in ("replaced", "moved"):
            same = f"wanted => JSON.stringify({SAID}) === JSON.stringify(wanted)"
            pages[way].page.wait_for_function(same, arg=wanted)
            expect(pages[way].page.locator("font font").first).to_be_attached()  # it was translated
