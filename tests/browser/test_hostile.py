"""Tokens and texts that look like markup, templates and scripts stay text in every view, in every
box and on a phone; what is impossible is answered with a sentence, and nothing is lost."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, urlencode, urlparse

from playwright.sync_api import expect
from serving import MARKUP
from visit import PARTS, Visit

from transformer import Run, with_lens

TEXT = "".join(MARKUP) + "<s><b>x</b><s>"  # some of them again
SETTINGS = {"max_new_tokens": 6, "temperature": 0.7, "top_k": 40, "seed": 3}
SEARCH = {"max_new_tokens": 6, "beams": 4}
ATTACKS = (
    "<img src=x onerror=alert(1)>",
    "${alert(2)}{{value}}<b>x</b>",
    "</script><script>alert(3)",
)
COMPARED = (".compare", ".compare-texts", ".compare-outcomes", ".compare-weighed",
            ".compare-attention")  # fmt: skip
NAMELESS = {  # parts in which no token stands
    ".ranking", ".ablation", ".contribution", ".maskedit", ".breaks", ".positions",
    ".position-curves", ".position-formula", ".position-shift", ".architecture", ".equations",
    ".mask-scores", ".removal", ".compare-outcomes", ".compare-attention", ".compare", ".journey",
    ".learn",
}  # fmt: skip
ASKED_FOR = {  # a button, and when its answer is there
    ".ablation": (".matter", ".ablation[data-matter]"),
    ".contribution": (".contributes", ".contribution[data-total]"),
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
HOVERED = """text => document.querySelector("[data-picture=lens] .hoverlayer")
    .textContent.replaceAll(/[\u2068\u2069]/g, "").includes(text)"""


class Hostile:
    """A page that shows a run of hostile tokens, and what of it can be read there."""

    def __init__(self, visit: Visit, run: Run) -> None:
        self.visit, self.page, self.run = visit, visit.page, run
        self.before = self.page.evaluate(STRAY)
        asked = {"model": run.model, "text": TEXT, "length": str(SETTINGS["max_new_tokens"])}
        visit.go(urlencode(asked))
        self.visit.tab("Attention")
        self.visit.wait_drawn(".attention")
        assert self.texts("#tokens .text-tokens button.token") == list(run.labels)

    def texts(self, selector: str) -> list[str]:
        """The texts of what can be seen, without direction marks and spaces of a number's width."""
        found = self.page.evaluate(TEXTS, selector)
        return [re.sub("[\u2068\u2069\u2007\u2008]", "", text).strip() for text in found]

    def is_clean(self, part: str) -> None:
        """Nothing but text was made of a token, and nothing is wider than the window."""
        assert self.page.evaluate(STRAY) == self.before, part
        width = self.page.evaluate("document.documentElement.scrollWidth")
        assert width <= (self.page.viewport_size or {})["width"], part
        assert self.page.evaluate(CUT_OFF) == [], part

    def through_all_parts(self) -> None:
        """Each section of each tab, opened and asked."""
        more = {"What if?": COMPARED, "Prediction": (".tree-box",)}
        for tab, parts in PARTS.items():
            self.visit.tab(tab)
            for part in (*parts, *more.get(tab, ())):
                self.visit.wait_drawn(part)
                if part == ".masks":
                    self.visit.show_masks(TEXT, "<s></script><b>x</b>")
                if part in ASKED_FOR:
                    button, answer = ASKED_FOR[part]
                    if part == ".patching":
                        self.page.locator(".patch-text").fill("".join(MARKUP[::-1]))
                    self.page.locator(button).click()
                    self.page.wait_for_selector(answer)
                self.is_clean(part)
                if part not in NAMELESS:
                    assert "<b>x</b>" in "".join(self.texts(part)), part


def test_every_view_of_a_text_and_its_translation_on_a_phone(visit, server):
    translator = server.hostile_translator
    run = with_lens(translator, translator.generate(TEXT, **SEARCH))
    assert set(MARKUP) <= set(run.source_labels or ())  # else what follows says nothing
    assert set(run.labels[run.n_prompt :]) & set(MARKUP)
    page = Hostile(visit(width=390, height=2400), run)
    assert page.texts("#tokens .source-tokens button.token") == list(run.source_labels or ())
    page.visit.tokens.nth(run.n_prompt).click()
    page.visit.attention("decoder cross")
    page.visit.switch("pictures", "alignment")
    assert {"<b>x</b>", "{{value}}"} <= set(page.texts(".lines .textpoint text"))
    page.visit.attention("encoder self")
    for picture in ("mean", "rollout", "joint", "lines", "heatmap"):
        page.visit.switch("pictures", picture)
        page.is_clean(picture)
    long = run.source_labels.index("w" * 300)
    page.visit.point_at(0, long)
    assert page.texts("[data-field=key]") == [f"{run.source_labels[long]} at {long}"]
    page.page.locator(".attention .large").press("Home")
    assert f"reads key 0 “{run.source_labels[0]}”" in page.page.locator(".said").inner_text()
    page.through_all_parts()
    script = run.labels.index("</script>")
    page.visit.tab("Prediction")
    page.visit.wait_drawn(".lens-box")
    page.page.mouse.move(*page.visit.place_in("lens", script, 1), steps=3)
    page.page.wait_for_function(HOVERED, arg="</script>")
    page.is_clean("lens")
    assert page.page.locator(".architecture-drawing").is_visible()


def test_what_is_typed_into_any_box_is_text_there_and_in_what_is_made_of_it(still, server):
    page, encode = still, server.model.tokenizer.encode
    page.go("model=tiny&tab=attention")
    page.set_length(3)
    before = page.page.evaluate(STRAY)
    text = "".join((*ATTACKS, "🦊💃", "\x01\x7f a"))
    page.generate(text)
    prompt = server.model.tokenizer.labels(encode(text))
    assert "".join(page.labels()).count("".join(prompt)) == 1
    page.tab("Masks")
    page.wait_drawn(".masks")
    page.show_masks(*ATTACKS)
    assert page.page.locator(".sentence bdi").all_inner_texts() == list(ATTACKS)
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
    link = page.wait_for_address("alter=", "script")
    (altered,) = json.loads(parse_qs(urlparse(link).fragment)["alter"][0])
    assert altered["text"] == ATTACKS[2]
    assert page.page.evaluate(STRAY) == before
