"""Tokens and texts that look like markup, templates and scripts stay text in every view, in every
box and on a phone; what is impossible is answered with a sentence, and nothing is lost."""

import json
import re
from urllib.parse import parse_qs, urlencode, urlparse

from kit.browser import PARTS, Visit
from kit.serving import MARKUP
from playwright.sync_api import expect

from transformer import with_lens

TEXT = "".join(MARKUP) + "<s><b>x</b><s>"  # some of them again
ATTACKS = (
    "<img src=x onerror=alert(1)>",
    "${alert(2)}{{value}}<b>x</b>",
    "</script><script>alert(3)",
)
COMPARED = (".compare", ".compare-texts", ".compare-outcomes",
            ".compare-attention")  # fmt: skip
NAMELESS = {  # parts without tokens
    ".ranking", ".ablation", ".maskedit", ".breaks", ".positions",
    ".position-curves", ".position-shift", ".architecture", ".equations",
    ".mask-scores", ".removal", ".compare-outcomes", ".compare-attention", ".compare", ".journey",
    ".learn",
}  # fmt: skip
ASKED_FOR = {  # a button, and when its answer is there
    ".ablation": (".matter", ".ablation[data-matter]"),
    ".patching": (".show-map", "[data-picture=patching][data-place]"),
}

# What a page that took a token for more than text would hold; b elements of the page's own are
# numbers and titles.
STRAY = """() => [
    ...document.querySelectorAll("s, img[src=x], script:not([src]), iframe, object"),
    ...[...document.querySelectorAll("b, tspan")].filter(one => one.textContent === "x"),
].map(one => one.outerHTML.slice(0, 80))"""
TEXTS = """selector => [...document.querySelectorAll(selector)]
    .filter(one => one.getClientRects().length).map(one => one.textContent)"""
# Headings and sentences that run out of their place.
CUT_OFF = """() => [...document.querySelectorAll(".html-container :is(h3, h4, p)")]
    .filter(one => one.scrollWidth > one.clientWidth + 1 && !one.matches(".unseen, .for-keys"))
    .map(one => one.className)"""


def texts(page: Visit, selector: str) -> list[str]:
    """The texts of what can be seen, without direction marks and spaces of a number's width."""
    found = page.page.evaluate(TEXTS, selector)
    return [re.sub("[\u2068\u2069\u2007\u2008]", "", text).strip() for text in found]


def assert_clean(page: Visit, before: list[str], part: str) -> None:
    """Nothing but text was made of a token, and nothing is wider than the window."""
    assert page.page.evaluate(STRAY) == before, part
    width = page.page.evaluate("document.documentElement.scrollWidth")
    assert width <= (page.page.viewport_size or {})["width"], part
    assert page.page.evaluate(CUT_OFF) == [], part


def test_every_view_of_a_text_and_its_translation_on_a_phone(visit, server):
    translator = server.hostile_translator
    run = with_lens(translator, translator.generate(TEXT, max_new_tokens=6, beams=4))
    assert set(MARKUP) <= set(run.source_labels)  # else what follows says nothing
    assert set(run.labels[run.n_prompt :]) & set(MARKUP)
    page = visit(width=390, height=2400)
    before = page.page.evaluate(STRAY)
    page.go(
        urlencode({"model": run.model, "text": TEXT, "max_new_tokens": "6", "tab": "attention"})
    )
    page.wait_drawn(".attention")
    assert texts(page, "#tokens .text-tokens button.token") == list(run.labels)
    assert texts(page, "#tokens .source-tokens button.token") == list(run.source_labels)
    page.tokens.nth(run.n_prompt).click()
    page.attention("decoder cross")
    page.switch("pictures", "alignment")
    assert {"<b>x</b>", "{{value}}"} <= set(texts(page, ".lines .textpoint text"))
    page.attention("encoder self")
    assert page.page.locator(".more-button").get_attribute("aria-expanded") == "true"
    for picture in ("flow", "lines", "heatmap"):
        page.switch("pictures", picture)
        assert_clean(page, before, picture)
    long = run.source_labels.index("w" * 300)
    page.point_at(0, long)
    assert texts(page, "[data-field=key]") == [f"{run.source_labels[long]} at {long}"]
    page.page.locator(".attention .large").press("Home")
    expect(page.page.locator(".said")).to_contain_text(f"reads key 0 “{run.source_labels[0]}”")
    page.attention("decoder self")
    page.switch("pictures", "lines")  # with whole labels
    more = {"What if?": COMPARED, "Prediction": (".tree-box",)}
    for tab, parts in PARTS.items():  # each section of each tab, opened and asked
        page.tab(tab)
        for part in (*parts, *more.get(tab, ())):
            page.wait_drawn(part)
            if part == ".masks":
                page.show_masks(TEXT, "<s></script><b>x</b>")
            if part in ASKED_FOR:
                button, answer = ASKED_FOR[part]
                if part == ".patching":
                    page.page.locator(".patch-text").fill("".join(MARKUP[::-1]))
                page.page.locator(button).click()
                page.page.wait_for_selector(answer)
            assert_clean(page, before, part)
            if part not in NAMELESS:
                assert "<b>x</b>" in "".join(texts(page, part)), part


def test_text_typed_into_any_box_is_never_markup(still, server):
    page, encode = still, server.model.tokenizer.encode
    page.go("model=tiny&tab=attention")
    page.set_length(3)
    before = page.page.evaluate(STRAY)
    text = "".join((*ATTACKS, "🦊💃", "\x01\x7f a"))
    page.generate(text)
    prompt = server.model.tokenizer.labels(encode(text))
    said = "".join(page.labels())
    assert said.count("".join(prompt)) == 1
    page.tab("Masks")
    page.wait_drawn(".masks")
    page.show_masks(*ATTACKS)
    expect(page.page.locator(".sentence bdi")).to_have_text(list(ATTACKS))
    page.page.locator("#lines textarea").fill("\n".join(["a"] * 9))
    page.page.locator("#show-masks").click()
    assert "from 1 to 8 texts; got 9" in page.wait_for_alert()
    page.tab("Positions")
    page.wait_drawn(".position-curves")
    page.page.locator(".dimensions").fill(ATTACKS[0])
    page.page.locator(".dimensions").press("Enter")
    assert "got <img src=x" in page.wait_for_alert()
    page.tab("Attention")
    page.generate("The fox")
    page.tab("What if?")
    # a patch: in its box, in what the run is said to have been altered by, and in the link to it
    page.wait_drawn(".patching")
    page.page.locator(".patch-text").fill(ATTACKS[2])
    page.press(page.page.locator(".show-map"), draws=".patching")
    page.page.locator("[data-picture=patching]").focus()
    page.page.keyboard.press("ArrowRight")
    expect(page.page.locator(".patch-said")).not_to_be_empty()
    page.page.keyboard.press("Enter")
    page.page.wait_for_function("viz.run.interventions.length === 1")
    (patch,) = page.page.evaluate("viz.run.interventions")
    assert patch["is"]["text"] == ATTACKS[2]
    expect(page.page.locator(".altered")).to_contain_text(patch["says"])
    link = page.wait_for_address("interventions=", "script")
    (altered,) = json.loads(parse_qs(urlparse(link).fragment)["interventions"][0])
    assert altered["text"] == ATTACKS[2]
    assert page.page.evaluate(STRAY) == before
